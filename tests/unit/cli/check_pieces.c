// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers cli/pieces.  Pieces that go well, fail, crash, or last for ever.  What they share with the
 * test lies in memory that children have in common.
 */

#include <poll.h>

#include "base/clock.h"
#include "cli/pieces.h"
#include "lib/test.h"

#define MINUTE (60 * (uint64_t)TDT__SECOND)
#define MANY 100
#define CROWD 20 /* more than there are children at a time */

static struct piece_limits limits;
static atomic_uint *shared; /* how often each piece was begun, and behind that, how many ended */

static void set_up(void)
{
	limits = (struct piece_limits){ MINUTE, MINUTE };
	shared = mmap(NULL, (MANY + 1) * sizeof *shared, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(shared != MAP_FAILED);
}

static int say_number(FILE *out, void *arg, size_t i)
{
	shared[i]++;
	if (i % 10 != 0) /* some have nothing to say */
		fprintf(out, "piece %zu", i);
	return (int)(i % 3);
}

CASE(pieces, .setup = set_up, .timeout = 120)

TEST(each_piece_is_done_once_and_what_it_says_is_its_own)
{
	struct work_piece *piece = pieces_do(MANY, say_number, NULL, &limits);
	char text[32];

	ck_assert_ptr_nonnull(piece);
	for (size_t i = 0; i < MANY; i++) {
		snprintf(text, sizeof text, "piece %zu", i);
		ck_assert_uint_eq(shared[i], 1);
		ck_assert_int_eq(piece[i].status, (int)(i % 3));
		ck_assert_uint_eq(piece[i].length, i % 10 != 0 ? strlen(text) : 0);
		if (i % 10 != 0)
			ck_assert_str_eq(piece[i].text, text);
	}
	pieces_free(piece, MANY);
}

TEST(no_pieces_are_done_at_once)
{
	struct work_piece *piece = pieces_do(0, say_number, NULL, &limits);

	ck_assert_ptr_nonnull(piece);
	pieces_free(piece, 0);
	pieces_free(NULL, 0);
}

static int fail_sometimes(FILE *out, void *arg, size_t i)
{
	fputs("said", out);
	if (i == 4)
		return -ENOSPC;
	if (i == 2 || i == 5) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer may have a handler */
		raise(SIGSEGV);
	}
	return 0;
}

TEST(a_piece_that_fails_or_crashes_is_reported_and_no_other)
{
	struct work_piece *piece = pieces_do(7, fail_sometimes, NULL, &limits);

	ck_assert_ptr_nonnull(piece);
	for (size_t i = 0; i < 7; i++) {
		bool crashed = i == 2 || i == 5;

		ck_assert_int_eq(piece[i].status, crashed ? -ECANCELED : i == 4 ? -ENOSPC : 0);
		if (crashed)
			ck_assert_str_eq(piece[i].why, "crashed");
		else
			ck_assert_str_eq(piece[i].text, "said");
	}
	pieces_free(piece, 7);
}

/* Piece 1 waits until all others have ended. */
static int wait_for_others(FILE *out, void *arg, size_t i)
{
	while (i == 1 && shared[MANY] != MANY - 1)
		poll(NULL, 0, 1);
	shared[MANY]++;
	return 0;
}

TEST(a_piece_that_stalls_holds_up_no_other)
{
	struct work_piece *piece = pieces_do(MANY, wait_for_others, NULL, &limits);

	ck_assert_ptr_nonnull(piece);
	for (size_t i = 0; i < MANY; i++)
		ck_assert_int_eq(piece[i].status, 0);
	pieces_free(piece, MANY);
}

/* All but the last one last for ever. */
static int last_for_ever(FILE *out, void *arg, size_t i)
{
	shared[i]++;
	while (i != *(const size_t *)arg)
		pause();
	return 0;
}

TEST(a_piece_without_an_end_is_ended_and_the_rest_is_begun)
{
	size_t last = CROWD - 1;
	struct work_piece *piece;

	limits.each_ns = TDT__SECOND / 2;
	piece = pieces_do(CROWD, last_for_ever, &last, &limits);
	ck_assert_ptr_nonnull(piece);
	for (size_t i = 0; i < last; i++) {
		ck_assert_int_eq(piece[i].status, -ECANCELED);
		ck_assert_str_eq(piece[i].why, "took too long");
	}
	ck_assert_uint_eq(shared[last], 1);
	pieces_free(piece, CROWD);
}

TEST(what_there_is_no_time_for_is_not_begun)
{
	size_t last = CROWD - 1;
	struct work_piece *piece;

	limits.all_ns = TDT__SECOND / 2;
	piece = pieces_do(CROWD, last_for_ever, &last, &limits);
	ck_assert_ptr_nonnull(piece);
	for (size_t i = 0; i < CROWD; i++)
		if (shared[i] != 0)
			ck_assert_int_eq(piece[i].status, -ECANCELED);
		else /* a child may have taken it, and have had no time to begin */
			ck_assert(piece[i].status == -ETIME || piece[i].status == -ECANCELED);
	ck_assert_uint_eq(shared[last], 0);
	pieces_free(piece, CROWD);
}
