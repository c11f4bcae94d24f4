// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/suspended.  The stacks of suspended fibers are those that the
 * unwinder found there just before, whatever frames they have, and wherever they lie meanwhile.
 */

#include <unwind.h>

#include <tdt/integrate/fiber.h>

#include "lib/fibered.h"
#include "lib/frames.h"
#include "lib/test.h"
#include "registry/handle.h"

#define DEEP 60

/* --- What the unwinder finds ---------------------------------------------------------- */

static struct {
	uint64_t pc[4 * DEEP];
	unsigned n;
	uint64_t high; /* of the stack: outside of it is whatever made the context */
} found;

static _Unwind_Reason_Code find_frame(struct _Unwind_Context *context, void *arg)
{
	if (_Unwind_GetCFA(context) > found.high || _Unwind_GetIP(context) == 0)
		return _URC_END_OF_STACK;
	MUST(found.n < 4 * DEEP);
	found.pc[found.n++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

/* Note the frames outside the caller, and yield. */
static NOINLINE void note_and_yield(struct fibered *it)
{
	found.n = 0;
	found.high = (uintptr_t)it->stack + FIBERED_STACK;
	_Unwind_Backtrace(find_frame, NULL);
	fibered_yield(it);
	USE(it);
}

/* The frames of the trace without those of fibered_yield() and note_and_yield(). */
static void expect_found(struct tdt_trace *trace)
{
	uint64_t pcs[4 * DEEP];
	enum tdt_cut cut;
	size_t n;

	ck_assert_msg(trace != NULL, "%s", strerror(errno));
	n = tdt_trace_stack(trace, 0, pcs, 4 * DEEP, &cut);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	/* The unwinder begins in note_and_yield(), whose call was another one. */
	ck_assert_uint_eq(n, found.n + 1);
	for (size_t i = 2; i < n; i++)
		ck_assert_msg(pcs[i] == found.pc[i - 1], "frame %zu of %zu", i, n);
	tdt_trace_free(trace);
}

/* --- Frames of all kinds ----------------------------------------------------------------- */

extern const frames_fn frames_plain[], frames_with_fp[], frames_without_fp[];
static const frames_fn *const tables[] = { frames_plain, frames_with_fp, frames_without_fp };
#define TABLES (sizeof tables / sizeof tables[0])

struct going {
	struct frames frames; /* first */
	struct fibered *it;
};

static void go_on(struct frames *frames)
{
	const frames_fn *table = tables[frames_random(frames, TABLES)];
	unsigned n = 0;

	while (table[n] != NULL)
		n++;
	if (frames->depth == 0) {
		note_and_yield(((struct going *)frames)->it);
	} else {
		frames->depth--;
		table[frames_random(frames, n)](frames);
	}
	USE(frames);
}

static void goes_far(struct fibered *it)
{
	struct going *going = it->arg;

	go_on(&going->frames);
	USE(it);
}

CASE(frames)

TEST(the_frames_are_those_that_the_unwinder_finds)
{
	unsigned seed = seed_of_run();

	for (int i = 0; i < 400; i++) {
		struct going going = { .frames = { .next = go_on,
						   .random = random_below(&seed, 65536) + 1,
						   .depth = random_below(&seed, 12) } };
		struct fibered it = { .run = goes_far, .arg = &going };

		going.it = &it;
		fibered_init(&it, NULL);
		fibered_resume(&it);
		if (!it.ended) /* one of the frames calls nothing at random */
			expect_found(tdt_backtrace(tdt_fiber_handle(it.fiber)));
		fibered_fini(&it);
	}
}

/* --- Stacks that end before their base ---------------------------------------------------- */

/* As a library marks the outermost function for debuggers. */
#if defined(__x86_64__)
#define NO_CALLER() __asm__ volatile(".cfi_undefined rip")
#elif defined(__aarch64__)
#define NO_CALLER() __asm__ volatile(".cfi_undefined x30")
#endif

static void outermost(struct fibered *it)
{
	NO_CALLER();
	fibered_yield(it);
	USE(it);
}

TEST(a_function_without_a_caller_is_the_outermost, .to = 2)
{
	uint64_t pcs[DEEP];
	enum tdt_cut cut;
	FIBER(it, NULL, .run = outermost, .mute_base = _i == 1);

	fibered_resume(&it);
	TRACE(trace, tdt_backtrace(tdt_fiber_handle(it.fiber)));
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, pcs, DEEP, &cut), 2);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
}

/* --- Stacks that are moved ------------------------------------------------------------- */

static NOINLINE void goes_down(struct fibered *it, int n)
{
	if (n > 0)
		goes_down(it, n - 1);
	else
		note_and_yield(it);
	USE(it);
}

static void goes_deep(struct fibered *it)
{
	goes_down(it, 10);
	it->arg = it;
	goes_down(it, 5);
	USE(it);
}

/* Bytes that AddressSanitizer may take for those around a variable. */
static __attribute__((no_sanitize("address", "thread"), noinline)) void
copy_bytes(volatile char *to, const volatile char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = from != NULL ? from[i] : (char)0xa5;
}

/* Where a stack was left: what is to be saved begins there. */
static char *left_at(const struct fibered *it)
{
	return it->inside.sp;
}

CASE(moved)

TEST(a_stack_that_was_copied_away_is_read_where_it_lies)
{
	size_t size;
	char *from, *to;
	FIBER(it, NULL, .run = goes_deep);
	struct tdt_handle *handle = tdt_fiber_handle(it.fiber);

	for (int i = 0; i < 2; i++) {
		fibered_resume(&it);
		from = left_at(&it);
		size = (size_t)(it.stack + FIBERED_STACK - from);
		to = malloc(size);
		ck_assert_ptr_nonnull(to);
		copy_bytes(to, from, size);
		tdt_fiber_moved(it.fiber, from, to, size);
		copy_bytes(from, NULL, size); /* another one runs there */
		expect_found(tdt_backtrace(handle));
		copy_bytes(from, to, size);
		tdt_fiber_moved(it.fiber, from, NULL, size);
		copy_bytes(to, NULL, size);
		expect_found(tdt_backtrace(handle));
		free(to);
	}
	fibered_resume(&it);
	ck_assert(it.ended && it.arg == &it);
}

/* Only a part of it is where it says: what is missing is not made up. */
TEST(a_stack_of_which_a_part_was_lost_is_cut_there)
{
	struct tdt_trace *trace;
	uint64_t pcs[4 * DEEP];
	enum tdt_cut cut;
	char *from, *to;
	size_t n, size;
	FIBER(it, NULL, .run = goes_deep);

	fibered_resume(&it);
	from = (char *)tdt_fiber_handle(it.fiber)->record.suspended_sp;
	size = (size_t)(it.stack + FIBERED_STACK - from) / 2;
	to = malloc(size);
	ck_assert_ptr_nonnull(to);
	copy_bytes(to, from, size);
	tdt_fiber_moved(it.fiber, from, to, size);
	copy_bytes(from, NULL, (size_t)(it.stack + FIBERED_STACK - from));
	trace = tdt_backtrace(tdt_fiber_handle(it.fiber));
	if (trace != NULL) {
		n = tdt_trace_stack(trace, 0, pcs, 4 * DEEP, &cut);
		ck_assert_int_ne(cut, TDT_CUT_NOT);
		ck_assert_uint_lt(n, found.n + 1);
		for (size_t i = 2; i + 1 < n; i++)
			ck_assert_uint_eq(pcs[i], found.pc[i - 1]);
	}
	tdt_trace_free(trace);
	free(to);
}

CASE(limits)

TEST(a_stack_of_more_frames_than_the_limit_is_cut_there)
{
	struct tdt_backtrace_options options = { .size = sizeof options, .max_frames = 5 };
	enum tdt_cut cut;
	FIBER(it, NULL, .run = goes_deep);

	fibered_resume(&it);
	TRACE(trace, tdt_backtrace_with(tdt_fiber_handle(it.fiber), &options));
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 5);
	ck_assert_int_eq(cut, TDT_CUT_LIMIT);
}
