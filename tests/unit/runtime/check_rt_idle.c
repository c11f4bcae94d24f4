// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/idle, runtime/driver.  A runtime that has nothing to do does nothing; while
 * workers are blocked, others do their work; and a task that waits can be requested.
 */

#include <sys/time.h>

#include "lib/leaf.h"
#include "lib/printed.h"
#include "lib/request_waiting.h"
#include "lib/rt.h"
#include "lib/test.h"
#include "lib/threads.h"

static void rest(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/*
 * On a busy machine the threads may take a while to come to rest: so it is some second that must be
 * quiet.
 */
static void expect_quiet(void)
{
	long before, after = threads_slept("tdt-");

	do {
		before = after;
		rest(500);
		after = threads_slept("tdt-");
	} while (after != before);
}

#define TASKS 1000

CASE(idle)

TEST(nothing_wakes_while_nothing_is_to_do)
{
	static struct leaf leaves[TASKS];
	RT(rt, rt_of(4));

	expect_quiet();
	for (int i = 0; i < TASKS; i++)
		tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaves[i]), NULL));
	for (int i = 0; i < TASKS; i++)
		UNTIL(leaves[i].waker != NULL);
	expect_quiet();
	for (int i = 0; i < TASKS; i++)
		leaf_open(&leaves[i]);
	for (int i = 0; i < TASKS; i++)
		UNTIL(leaves[i].drops == 1);
	expect_quiet();
}

/* --- Blocked workers, and the watchdog ------------------------------------------ */

static atomic_int blocked;
static atomic_bool let_go;

static void block(struct leaf *leaf, struct tdt_context *cx)
{
	(void)leaf;
	(void)cx;
	blocked++;
	UNTIL(let_go);
}

static void block_workers(struct tdt_rt *rt, struct leaf *leaves, int n)
{
	for (int i = 0; i < n; i++) {
		leaves[i].on_poll = block;
		leaves[i].open = true;
		tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaves[i]), NULL));
		UNTIL(blocked == i + 1);
	}
}

/* Whose tasks are then polled by a thread in tdt_rt_block_on(). */
TEST(the_watchdog_serves_timers_while_all_workers_are_blocked, .from = 1, .to = 4)
{
	static struct leaf leaves[20][3];
	RT(rt, rt_of((unsigned)_i));

	for (int round = 0; round < 20; round++) {
		block_workers(rt, leaves[round], _i);
		ck_assert_int_eq(tdt_rt_block_on(rt, tdt_sleep_ms(1)), 0);
		ck_assert_int_eq(tdt_rt_block_on(rt, tdt_sleep_ms(3)), 0);
		ck_assert_int_eq(blocked, _i);
		let_go = true;
		for (int i = 0; i < _i; i++)
			UNTIL(leaves[round][i].drops == 1);
		blocked = 0;
		let_go = false;
		/* The workers take the role back, or have it: their own timers fire. */
		ck_assert_int_eq(tdt_rt_block_on(rt, tdt_sleep_ms(1)), 0);
	}
}

/* Its task is polled by a worker that was asleep, while the one that had its event is blocked. */
TEST(an_idle_worker_takes_the_role_of_a_blocked_one)
{
	static struct leaf leaves[3];
	RT(rt, rt_of(4));

	block_workers(rt, leaves, 3);
	for (int i = 0; i < 20; i++) {
		HANDLE(handle, tdt_rt_spawn(rt, tdt_sleep_ms(1), NULL));

		ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(handle, NULL)), 0);
	}
	ck_assert_int_eq(blocked, 3);
	let_go = true;
}

static struct leaf lone;

static void wake_lone_and_block(struct leaf *leaf, struct tdt_context *cx)
{
	leaf_wake(&lone);
	block(leaf, cx);
}

/* It was left to the worker that woke it: one that sleeps takes it. */
TEST(a_lone_task_behind_a_blocked_one_is_taken)
{
	static struct leaf leaf = { .on_poll = wake_lone_and_block, .open = true };
	RT(rt, rt_of(2));

	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&lone), NULL));
	UNTIL(lone.waker != NULL);
	expect_quiet(); /* the watchdog, too, sleeps */
	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaf), NULL));
	UNTIL(lone.polls == 2); /* while the poll that woke it goes on */
	let_go = true;
	UNTIL(leaf.drops == 1);
	leaf_open(&lone);
	UNTIL(lone.drops == 1);
}

static atomic_int signals;

static void count_signal(int signal)
{
	(void)signal;
	signals++;
}

/* A worker, unlike the watchdog, runs handlers, also while it waits for events. */
TEST(signals_make_no_timer_early_and_none_late)
{
	struct sigaction action = { .sa_handler = count_signal }; /* no SA_RESTART */
	const struct itimerval every_ms = { { .tv_usec = 1000 }, { .tv_usec = 1000 } };
	struct timespec start, end;
	sigset_t alarm;

	ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
	RT(rt, rt_of(1));
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL); /* the worker has it */
	ck_assert_int_eq(setitimer(ITIMER_REAL, &every_ms, NULL), 0);
	UNTIL(signals > 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_sleep_ms(30)), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	ck_assert_int_ge((end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec,
			 30000000);
}

/* --- A requested task is polled ------------------------------------------------- */

static __attribute__((noinline)) tdt_poll_t inner_poll(struct tdt_future *leaf,
						       struct tdt_context *cx)
{
	tdt_poll_t result = tdt_future_poll(leaf, cx);

	TDT_KEEP_FRAME();
	return result;
}

static tdt_poll_t outer_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = inner_poll(state, cx);

	TDT_KEEP_FRAME();
	return result;
}

static void outer_drop(void *state)
{
	tdt_future_drop(state);
}

TEST(a_sleeping_task_tells_its_own_frames_only)
{
	struct leaf leaf = { 0 };
	struct tdt_future child = leaf_future(&leaf);
	char *line;
	RT(rt, rt_of(2));
	HANDLE(handle, tdt_rt_spawn(rt, (struct tdt_future){ &child, outer_poll, outer_drop },
				    TDT_TASK_ATTR(.name = "mine", .id = 4711)));

	UNTIL(leaf.waker != NULL);
	TRACE(trace, request_waiting(handle));
	TEXT(text, print(trace, NULL));
	line = text;
	ck_assert_msg(strncmp(line, "task 4711 \"mine\" ", 17) == 0, "%s", text);
	ck_assert_ptr_nonnull(strstr(line, "spawned at "));
	line = strchr(line, '\n') + 1;
	ck_assert_msg(strstr(line, "outer_poll at ") != NULL &&
			  strstr(line, "inner_poll at ") != NULL &&
			  strstr(line, "leaf_poll at ") != NULL,
		      "%s", text);
	for (int i = 0; i < 3; i++)
		line = strchr(line, '\n') + 1;
	ck_assert_msg(*line == '\0', "%s", text);
}
