// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers cli/metered.  What a server of metrics remembers of processes that come and go. */

#include "cli/metered.h"
#include "lib/test.h"

static struct metered metered;

static void tear_down(void)
{
	metered_fini(&metered);
}

CASE(metered, .teardown = tear_down)

TEST(a_process_is_remembered_with_its_counts)
{
	ck_assert_ptr_null(metered_find(&metered, 7));
	metered_add(&metered, 7)->totals.counts.polls = 3;
	ck_assert_uint_eq(metered_find(&metered, 7)->totals.counts.polls, 3);
	ck_assert_ptr_eq(metered_add(&metered, 7), metered_find(&metered, 7));
	ck_assert_uint_eq(metered.n, 1);
}

/* As long as the server runs, and however many processes there were. */
TEST(processes_that_have_ended_are_forgotten)
{
	for (pid_t pid = 1; pid <= 10000; pid++) {
		metered_add(&metered, pid)->seen = true;
		metered_find(&metered, 1)->seen = true;
		metered_forget_others(&metered);
		ck_assert_uint_eq(metered.n, pid == 1 ? 1 : 2);
	}
	ck_assert_ptr_nonnull(metered_find(&metered, 1));
	ck_assert_ptr_null(metered_find(&metered, 9999));
	ck_assert_uint_le(metered.room, 64);
	metered_forget_others(&metered);
	ck_assert_uint_eq(metered.n, 0);
}

TEST(those_that_live_and_could_not_be_read_are_kept)
{
	metered_add(&metered, 7)->totals.counts.polls = 3;
	metered_find(&metered, 7)->seen = true;
	metered_add(&metered, 8); /* it lives, but uses the library no more */
	metered_forget_others(&metered);
	ck_assert_uint_eq(metered.n, 1);
	ck_assert_uint_eq(metered_find(&metered, 7)->totals.counts.polls, 3);
}

static int add_one(void *arg)
{
	int error = metered_add(&metered, 7) != NULL ? 0 : -ENOMEM;

	metered_fini(&metered);
	return error;
}

TEST(without_memory_none_is_added)
{
	NEEDS_FAILING_MEMORY();
	no_memory_each(add_one, NULL, 1);
}
