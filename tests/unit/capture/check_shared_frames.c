// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/capture, capture/seal.  Frames that a leaf shares with the leaf before are not
 * walked again, but compared.  Here random call trees, from a seed that is printed, are captured
 * so, and each leaf once more by a capture that knows of no other leaf: both must have found the
 * same stack.  Half of the trees have a seal, as polls that answer do.
 */

#include <config.h>

#include <alloca.h>

#include "capture/capture.h"
#include "capture/chain.h"
#include "capture/seal.h"
#include "host/start.h"
#include "lib/test.h"
#include "unwind/registers.h"

static unsigned seed;
static int leaves; /* left for this tree */
static unsigned long frames, walked;
static int sealed; /* trees that were, at their end */
static struct tdt__poll sharing, fresh;

/* --- What is compared --------------------------------------------------------- */

static bool is_same(const struct tdt__frame *a, const struct tdt__frame *b)
{
	return a->pc == b->pc && a->cfa == b->cfa && a->fp == b->fp && a->guessed == b->guessed;
}

static void expect_same_stack(const struct tdt__capture *a, const struct tdt__capture *b)
{
	uint32_t i = a->last, j = b->last;

	while (tdt__is_frame(i) && tdt__is_frame(j) &&
	       is_same(&a->stacks.frames[i].frame, &b->stacks.frames[j].frame)) {
		i = a->stacks.frames[i].parent;
		j = b->stacks.frames[j].parent;
		frames++;
	}
	ck_assert_uint_eq(i, j); /* the traced future, or a cut */
	ck_assert(!tdt__is_frame(i));
}

static NOINLINE void leaf(void)
{
	struct tdt__registers at = TDT__CALLER_REGISTERS();
	uint32_t before = sharing.capture->stacks.n;

	tdt__capture_leaf(&sharing, at);
	walked += sharing.capture->stacks.n - before;
	tdt__capture_clear(fresh.capture);
	tdt__capture_leaf(&fresh, at);
	expect_same_stack(sharing.capture, fresh.capture);
}

/* --- Frames of many kinds ------------------------------------------------------ */

static void any(unsigned depth);

/* Some calls deeper, or a leaf. */
static NOINLINE void go(unsigned depth)
{
	unsigned calls = 1 + random_below(&seed, 3);

	if (depth == 0 || random_below(&seed, 12) == 0) {
		leaves--;
		leaf();
		calls = 0;
	}
	while (calls-- > 0 && leaves > 0)
		any(depth - 1);
	USE(&seed);
}

static NOINLINE void small(unsigned depth)
{
	go(depth);
	USE(&depth);
}

static NOINLINE void large(unsigned depth)
{
	char buffer[200];

	USE(buffer);
	go(depth);
	go(depth / 2); /* from another place */
	USE(buffer);
}

/* With a frame pointer. */
static NOINLINE void grows(unsigned depth)
{
	char *more = alloca(16 + 8 * random_below(&seed, 40));

	USE(more);
	go(depth);
	USE(more);
}

/* Its CFA is in memory. */
static NOINLINE void realigned(unsigned depth)
{
	_Alignas(64) char buffer[64];
	char *more = alloca(8 + 8 * random_below(&seed, 20));

	USE(buffer);
	USE(more);
	go(depth);
	USE(more);
	USE(buffer);
}

static void any(unsigned depth)
{
	static void (*const kinds[])(unsigned depth) = { go, small, large, grows, realigned };

	kinds[random_below(&seed, sizeof kinds / sizeof kinds[0])](depth);
	USE(&depth);
}

static NOINLINE void tree(void)
{
	sharing.top = fresh.top = TDT__OWN_TOP();
	go(2 + random_below(&seed, 24));
	USE(&seed);
}

CASE(random)

TEST(what_leaves_share_is_what_each_has)
{
	ck_assert_int_eq(tdt__start(), 0);
	seed = seed_of_run();
	for (int i = 0; i < 300; i++) {
		struct tdt__seal seal;

		leaves = 1 + (int)random_below(&seed, 100);
		sharing.capture =
		    tdt__capture_new(random_below(&seed, 2) == 0 ? 4 : 256, TDT_MAX_FRAMES);
		fresh.capture = tdt__capture_new(256, TDT_MAX_FRAMES);
		MUST(sharing.capture != NULL && fresh.capture != NULL);
		tdt__seal_init(&seal);
		sharing.capture->seal = i % 2 == 0 ? &seal : NULL;
		tree();
		sealed += seal.n != 0;
		tdt__capture_unref(sharing.capture);
		tdt__capture_unref(fresh.capture);
	}
	printf("# of %lu frames %lu were walked; %d trees were sealed\n", frames, walked, sealed);
	/*
	 * The walk step by step can't tell by words whether it would go the same way: it seals
	 * nothing.
	 */
	ck_assert(TDT_WALK_RULES ? sealed > 0 : sealed == 0);
}
