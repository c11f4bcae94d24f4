// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/entered.  Polls that are on the stacks of coroutines, which a thread of this
 * process has entered: a reader outside finds the same stack as the library itself.  And stacks
 * that were made up.
 */

#include "lib/read_self.h"
#include "lib/refused.h"
#include "lib/stuck_task.h"
#include "lib/test.h"
#include "reader/dump.h"

/* --- A poll in a coroutine in a coroutine ----------------------------------------------- */

static int ends[2];
static atomic_bool arrived, over;

static __attribute__((noinline)) void block_here(void)
{
	char byte;

	atomic_store(&arrived, true);
	ck_assert_int_ge(read(ends[0], &byte, 1), 0);
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) void spin_here(void)
{
	atomic_store(&arrived, true);
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		;
}

static int inner_coroutine(void *arg)
{
	if (arg == NULL)
		block_here();
	else
		spin_here();
	TDT_KEEP_FRAME();
	return 0;
}

static int outer_coroutine(void *arg)
{
	int error = tdt_co_await(tdt_coroutine(inner_coroutine, arg, NULL));

	TDT_KEEP_FRAME();
	return error;
}

static tdt_poll_t poll_coroutine(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = tdt_future_poll(state, cx);

	TDT_KEEP_FRAME();
	return result;
}

/* The path of the only task, as a reader outside finds it.  NULL: its stack cannot be had. */
static char *path_from_outside(struct tdt__sampling *sampling)
{
	const struct tdt__task_choice all = { .n_ids = 0 };
	const struct tdt__answers none = { 0 };
	struct tdt__findings *findings;
	struct tdt__tasks tasks;
	char *path = NULL;

	open_self();
	ck_assert_int_eq(tdt__tasks_read(&tasks, &target, &images, &found[0]), 0);
	findings = tdt__outside_dump(&tasks, &all, &none, sampling);
	ck_assert_ptr_nonnull(findings);
	ck_assert_uint_eq(findings->public.n_groups, 1);
	if (findings->public.groups[0]->trace != NULL)
		path = stuck_path(findings->public.groups[0]->trace);
	tdt__findings_free(findings);
	tdt__tasks_fini(&tasks);
	close_self();
	return path;
}

/* The thread may be seen just before it blocks, or may not run while it is sampled. */
static void expect_own_path(const struct stuck_task *task, const char *innermost)
{
	TRACE(trace, stuck_task_ask(task));
	char *own = stuck_path(trace), *path = NULL;
	struct tdt__sampling sampling = { 0 };
	uint64_t end = tdt__clock() + 40 * (uint64_t)TDT__SECOND;

	do {
		free(path);
		path = path_from_outside(&sampling);
	} while (sampling.refused == 0 && (path == NULL || strcmp(path, own) != 0) &&
		 tdt__clock() < end);
	if (sampling.refused != 0) {
		printf("# not tried: perf_event_open(2) is refused here: %s\n",
		       strerror(sampling.refused));
	} else {
		ck_assert_pstr_eq(path, own);
		ck_assert_ptr_nonnull(strstr(path, "poll_coroutine"));
		ck_assert_ptr_nonnull(strstr(path, "outer_coroutine"));
		ck_assert_ptr_nonnull(strstr(path, innermost));
		ck_assert_ptr_null(strstr(path, "cut:"));
	}
	free(path);
	free(own);
}

/* `runs`: the inner coroutine runs; otherwise it is blocked. */
static void try_in_coroutines(bool runs)
{
	struct tdt_future coroutine;
	struct stuck_task task = { 0 };

	NOT_TRIED_IF(SANITIZED, "a sanitizer's function stands between read() and the poll");
	ck_assert_int_eq(pipe(ends), 0);
	coroutine = tdt_coroutine(outer_coroutine, runs ? &task : NULL, NULL);
	ck_assert(!tdt_future_is_none(&coroutine));
	stuck_task_start(&task, poll_coroutine, &coroutine);
	while (!atomic_load(&arrived))
		usleep(1000);
	stuck_task_settle(&task, runs);
	expect_own_path(&task, runs ? "spin_here" : "block_here");
	atomic_store(&over, true);
	close(ends[1]);
	stuck_task_end(&task);
	tdt_future_drop(&coroutine);
	close(ends[0]);
}

SUITE_SKIP(reading_refused() != NULL ? reading_refused() : stuck_impossible())

CASE(polls)

TEST(a_poll_blocked_in_coroutines_has_the_stack_that_the_library_reads)
{
	try_in_coroutines(false);
}

TEST(a_poll_running_in_coroutines_has_the_stack_that_the_library_reads)
{
	try_in_coroutines(true);
}

static struct tdt_registry_thread thread;
static uint64_t slots[2];
static const struct tdt_registry registry = { .threads = (uintptr_t)slots, .n_threads = 2 };

/* Read the stacks that thread 7 says it has entered. */
static void read_made_up(struct tdt__entered *entered, const void *innermost)
{
	thread.id = 7;
	thread.entered = (uintptr_t)innermost;
	slots[1] = (uintptr_t)&thread;
	tdt__entered_read(entered, &target, &registry, 7);
}

CASE(made up)

TEST(stacks_that_form_a_ring_or_cannot_be_read_end_the_list)
{
	static struct tdt_stack ring[2] = { { .outer = &ring[1] }, { .outer = &ring[0] } };
	static struct tdt_stack astray = { .outer = (void *)8 };
	struct tdt__entered entered;

	open_self();
	read_made_up(&entered, ring);
	ck_assert_uint_eq(entered.n, TDT__ENTERED_MAX);
	read_made_up(&entered, &astray);
	ck_assert_uint_eq(entered.n, 1);
	read_made_up(&entered, (void *)8);
	ck_assert_uint_eq(entered.n, 0);
	tdt__entered_read(&entered, &target, &registry, 9); /* the slot has thread 7 */
	ck_assert_uint_eq(entered.n, 0);
	slots[1] = 8;
	tdt__entered_read(&entered, &target, &registry, 7);
	ck_assert_uint_eq(entered.n, 0);
	close_self();
}

TEST(the_innermost_stack_that_the_thread_is_on_is_found)
{
	struct tdt__entered entered = {
		.n = 3,
		.stack = { { .low = (void *)0x1000, .size = 0x1000 },
			   { .low = (void *)0x8000, .size = UINT64_MAX },
			   { .low = (void *)0x1000, .size = 0x2000 } },
	};

	ck_assert_ptr_eq(tdt__entered_at(&entered, 0x1800, 0x5000), &entered.stack[0]);
	ck_assert_ptr_null(tdt__entered_at(&entered, 0x1800, 0x1900)); /* the poll's own stack */
	ck_assert_ptr_eq(tdt__entered_at(&entered, 0x9000, 0x5000), &entered.stack[1]);
	entered.n = 1;
	ck_assert_ptr_null(tdt__entered_at(&entered, 0x2000, 0x5000));
}

TEST(a_stack_that_was_left_and_entered_again_is_another)
{
	struct tdt__entered before = { .n = 1, .stack = { { .low = (void *)1, .entry = 1 } } };
	struct tdt__entered after = before;

	ck_assert(tdt__entered_same(&before, &after));
	after.stack[0].entry = 2;
	ck_assert(!tdt__entered_same(&before, &after));
	after.n = 0;
	ck_assert(!tdt__entered_same(&before, &after));
}
