// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree/futurelocks, tree-printer/stuck_locks.  A task polls the future of tdt_mutex_lock()
 * once, keeps it, and then awaits something else: when the mutex is handed to this future, dumps
 * say so, and when the task takes the mutex, they do not.
 */

#include <tdt/rt/sync.h>

#include "lib/request_waiting.h"
#include "lib/rt.h"
#include "lib/says.h"
#include "lib/test.h"

#define SECOND INT64_C(1000000000)

static struct tdt_rt *rt;
static struct tdt_mutex *mutex;
static struct tdt_handle *forgetful, *waiter;
static atomic_bool stuck; /* the waiter holds up its worker */

/* --- Tasks ------------------------------------------------------------------------ */

/* Polls a future of tdt_mutex_lock() once, and awaits the same mutex, or nothing that comes. */
struct forgetting {
	struct tdt_async async;
	struct tdt_future first;
	bool locks_again;
};

static tdt_poll_t forget(void *state, struct tdt_context *cx)
{
	struct forgetting *forgetting = state;

	TDT_BEGIN(&forgetting->async, cx);
	MUST(tdt_future_poll(&forgetting->first, cx) == TDT_PENDING);
	if (forgetting->locks_again)
		TDT_AWAIT(tdt_mutex_lock(mutex));
	TDT_AWAIT(tdt_sleep_ms(UINT64_MAX));
	TDT_END();
}

/* The future that the task polls once. */
static struct tdt_future kept;

static int waits_for_mutex(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	return info->state == TDT_TASK_WAITING && info->n_waits != 0 &&
	       info->waits[0]->kind == TDT_WAIT_MUTEX;
}

static void until_it_waits(struct tdt_handle *handle)
{
	while (tdt_task_inspect(handle, waits_for_mutex, NULL) == 0)
		sched_yield();
}

/* The test holds the mutex; "forgetful" is the first in its line, and then "waiter". */
static void start(bool locks_again)
{
	rt = rt_of(1);
	mutex = tdt_mutex_new();
	ck_assert_int_eq(tdt_mutex_set_name(mutex, "accounts"), 0);
	ck_assert(tdt_mutex_try_lock(mutex));
	kept = tdt_mutex_lock(mutex);
	forgetful = spawn_on(
	    rt,
	    TDT_ASYNC_NEW(forget, (struct forgetting){ .first = kept, .locks_again = locks_again }),
	    "forgetful");
	until_it_waits(forgetful);
	waiter = spawn_on(rt, tdt_mutex_lock(mutex), "waiter");
	until_it_waits(waiter);
}

static void stop(void)
{
	tdt_future_drop(&kept);
	tdt_rt_free(rt);
	tdt_handle_unref(forgetful);
	tdt_handle_unref(waiter);
	tdt_mutex_free(mutex);
}

/* --- Dumps ------------------------------------------------------------------------ */

static char *dump(enum tdt_print_format format)
{
	struct tdt_print_options print = { .size = sizeof print, .format = format };
	struct tdt_dump_options options = { .size = sizeof options,
					    .timeout_ns = 50 * SECOND,
					    .print = &print };

	return TEXT_WRITTEN(out, ck_assert_int_eq(tdt_dump_with(out, &options), 0));
}

/*
 * The first dump that has `part`, for the caller to free.  In a dump before, a task that is held up
 * in the poll that is to answer may have its stack read instead, and no wait.
 */
static char *until_dump_says(const char *part, enum tdt_print_format format)
{
	char *text = dump(format);

	while (strstr(text, part) == NULL) {
		free(text);
		sched_yield();
		text = dump(format);
	}
	return text;
}

static void expect_part(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in:\n%s", part, text);
}

static void expect_no_part(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) == NULL, "\"%s\" in:\n%s", part, text);
}

static void expect_handed_trace(struct tdt_handle *task)
{
	TRACE(trace, request_waiting(task));
	const struct tdt_task_info *info = tdt_trace_info(trace);

	ck_assert_uint_eq(info->n_waits, 1);
	ck_assert_uint_eq(info->waits[0]->owner, tdt_handle_id(forgetful));
	ck_assert_uint_gt(info->waits[0]->handed_ns, 0);
}

CASE(found, .teardown = stop)

TEST(a_mutex_that_was_handed_and_is_not_taken_is_a_futurelock)
{
	char part[128], *text;

	start(false);
	SAYS(dump(TDT_PRINT_TEXT), "!handed");
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	expect_handed_trace(waiter);
	text = until_dump_says("2 tasks, 1 futurelock: 2 answered", TDT_PRINT_TEXT);
	snprintf(part, sizeof part,
		 "futurelock: task %" PRIu64 " \"forgetful\" was handed a mutex \"accounts\" (0x",
		 tdt_handle_id(forgetful));
	expect_part(text, part);
	expect_part(text, " ago and was polled since, but has not taken it: "
			  "1 wait for it hangs\n\n");
	snprintf(part, sizeof part,
		 " ago to task %" PRIu64 " \"forgetful\", which has not taken it\n",
		 tdt_handle_id(forgetful));
	expect_part(text, part);
	expect_no_part(text, "deadlock");
	free(text);
}

TEST(json_says_so_too)
{
	char part[128], *text;

	start(false);
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	text = until_dump_says("\"futurelock\":1", TDT_PRINT_JSON);
	snprintf(part, sizeof part, ",\"futurelocks\":[{\"task\":%" PRIu64 ",\"waits\":1,",
		 tdt_handle_id(forgetful));
	expect_part(text, part);
	expect_part(text, "\"handed_ns\":");
	free(text);
}

TEST(a_task_that_waits_for_what_it_was_handed_is_a_deadlock_too)
{
	char part[128], *text;

	start(true);
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	text = until_dump_says("not taken it: 2 waits for it hang\n", TDT_PRINT_TEXT);
	snprintf(part, sizeof part,
		 "deadlock: task %" PRIu64 " \"forgetful\" waits for a mutex \"accounts\" (0x",
		 tdt_handle_id(forgetful));
	expect_part(text, part);
	expect_part(text, " ago to another future of its own, which has not taken it\n");
	free(text);
}

CASE(none, .teardown = stop)

TEST(a_future_that_is_dropped_hands_the_mutex_on)
{
	start(false);
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	free(until_dump_says("futurelock: ", TDT_PRINT_TEXT));
	tdt_future_drop(&kept);
	kept = TDT_FUTURE_NONE;
	/* The waiter ends, and keeps the mutex. */
	while (tdt_task_inspect(waiter, waits_for_mutex, NULL) != 0)
		sched_yield();
	SAYS(dump(TDT_PRINT_TEXT), "!handed");
}

/* --- While no task can be polled -------------------------------------------------- */

static tdt_poll_t block(void *state, struct tdt_context *cx)
{
	atomic_store(&stuck, true);
	while (atomic_load(&stuck))
		sched_yield();
	return TDT_READY;
}

static void count_futurelocks(const struct tdt_snapshot *snapshot, size_t *handed, size_t *locks)
{
	*handed = *locks = 0;
	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n; k++) {
			const struct tdt_task_info *info = snapshot->groups[i]->tasks[k];

			for (uint32_t j = 0; j < info->n_waits; j++) {
				*handed += info->waits[j]->handed_ns > 2 * (uint64_t)SECOND / 10;
				*locks += info->waits[j]->futurelock;
			}
		}
}

TEST(a_task_that_could_not_be_polled_has_forgotten_nothing)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = SECOND / 10 };
	struct tdt_handle *first, *blocker;
	size_t handed = 0, locks;

	start(false);
	tdt_future_drop(&kept);
	kept = TDT_FUTURE_NONE;
	/* The waiter is the first in line now, and this task is the second. */
	first = spawn_on(rt, tdt_mutex_lock(mutex), "next");
	until_it_waits(first);
	blocker = spawn_on(rt, (struct tdt_future){ NULL, block, drop_nothing }, "blocker");
	while (!atomic_load(&stuck))
		sched_yield();
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	while (handed == 0) {
		SNAPSHOT(snapshot, tdt_snapshot_take(&options));

		count_futurelocks(snapshot, &handed, &locks);
		ck_assert_uint_eq(locks, 0);
	}
	atomic_store(&stuck, false);
	tdt_handle_unref(first);
	tdt_handle_unref(blocker);
}
