// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/history, reader/thread_table.  What a registry says of the process besides its
 * tasks.  The target is this process, so it is compared with what the library itself says; or it is
 * made up.  Each case is a process of its own.
 */

#include <tdt/integrate/hooks.h>
#include <tdt/layout/registry.h>

#include "lib/poll_now.h"
#include "lib/read_self.h"
#include "lib/refused.h"
#include "lib/test.h"
#include "reader/history.h"
#include "reader/thread_table.h"
#include "registry/registry.h"
#include "task/misuse.h"
#include "tree/stacks.h"
#include "tree/trace.h"

static struct tdt__tasks tasks;

static void look_around(void)
{
	open_self();
	ck_assert_int_eq(tdt__tasks_read(&tasks, &target, &images, &found[0]), 0);
}

static void look_away(void)
{
	tdt__tasks_fini(&tasks);
	close_self();
}

static tdt_poll_t panic(void *state, struct tdt_context *cx)
{
	return TDT_PANICKED;
}

/* Make `n` tasks that panic. */
static void fall(unsigned n)
{
	struct poll_now task;

	for (unsigned i = 0; i < n; i++) {
		poll_now_start(&task, future_of(panic, NULL));
		poll_now_end(&task);
	}
}

CASE(past)

TEST(the_counts_are_those_of_the_library)
{
	struct tdt_counts own = { .size = sizeof own }, seen;
	POLL_NOW(waits, future_of(stay_pending, NULL));

	poll_now(&waits);
	fall(3);
	ck_assert_int_eq(tdt_counters(&own), 0);
	look_around();
	tdt__history_counts(&tasks, &seen);
	ck_assert_uint_eq(own.spawned, 4);
	ck_assert_uint_eq(seen.spawned, own.spawned);
	ck_assert_uint_eq(seen.ended, own.ended);
	ck_assert_uint_eq(seen.panicked, own.panicked);
	ck_assert_uint_eq(seen.polls, own.polls);
	ck_assert_uint_eq(seen.captures, own.captures);
	ck_assert_uint_eq(seen.waiting, 1);
	ck_assert_uint_eq(seen.runnable + seen.running, 0);
	ck_assert_uint_ge(seen.longest_wait_ns, own.longest_wait_ns);
	ck_assert_uint_eq(seen.longest_poll_ns, 0);
	look_away();
}

static struct tdt_counts seen_in_poll;

static tdt_poll_t count_in_poll(void *state, struct tdt_context *cx)
{
	look_around();
	tdt__history_counts(&tasks, &seen_in_poll);
	look_away();
	return TDT_PENDING;
}

TEST(a_poll_and_a_woken_task_are_counted_as_such)
{
	POLL_NOW(woken, future_of(stay_pending, NULL));

	poll_now(&woken);
	tdt_task_woken(woken.traced.handle);
	POLL_NOW(polls, future_of(count_in_poll, NULL));
	poll_now(&polls);
	ck_assert_uint_eq(seen_in_poll.running, 1);
	ck_assert_uint_gt(seen_in_poll.longest_poll_ns, 0);
	ck_assert_uint_eq(seen_in_poll.runnable, 1);
	ck_assert_uint_eq(seen_in_poll.waiting, 0);
	ck_assert_uint_eq(seen_in_poll.longest_wait_ns, 0);
}

TEST(counters_that_cannot_be_read_are_zero)
{
	struct tdt_registry registry = { .counters = 8, .n_counters = UINT32_MAX };
	struct tdt_registry_counters sum = { .spawned = 1 };

	look_around();
	tdt__history_counters(&target, &registry, &sum);
	ck_assert_uint_eq(sum.spawned, 0);
	look_away();
}

/* --- Misuse ------------------------------------------------------------------------- */

TEST(the_first_misuse_is_that_of_the_library)
{
	struct tdt__seen_misuse seen;
	POLL_NOW(task, future_of(stay_pending, NULL));

	look_around();
	ck_assert(!tdt__history_misuse(&tasks, &seen));
	look_away();
	tdt__misuse(TDT_MISUSE_NESTED, task.traced.handle);
	tdt__misuse(TDT_MISUSE_ORDER, NULL);
	look_around();
	ck_assert(tdt__history_misuse(&tasks, &seen));
	ck_assert_int_eq(seen.misuse.kind, TDT_MISUSE_NESTED);
	ck_assert_uint_eq(seen.misuse.task, tdt_handle_id(task.traced.handle));
	ck_assert_str_eq(seen.misuse.reason, tdt_misused()->reason);
	look_away();
}

TEST(a_misuse_that_cannot_be_right_is_none)
{
	static struct tdt_misuse made_up;
	struct tdt__seen_misuse seen;

	look_around();
	tasks.registry.misuse = (uintptr_t)&made_up;
	memset(made_up.name, 'x', sizeof made_up.name); /* and no NUL */
	made_up.reason = "because";
	ck_assert(!tdt__history_misuse(&tasks, &seen));
	made_up.kind = TDT_MISUSE_ORDER;
	ck_assert(tdt__history_misuse(&tasks, &seen));
	ck_assert_uint_eq(strlen(seen.misuse.name), TDT_MISUSE_NAME_MAX);
	made_up.reason = (const char *)8;
	ck_assert(!tdt__history_misuse(&tasks, &seen));
	tasks.registry.misuse = 8;
	ck_assert(!tdt__history_misuse(&tasks, &seen));
	look_away();
}

/* --- Panics ------------------------------------------------------------------------- */

static struct tdt__findings *read_history(void)
{
	struct tdt__findings *findings = tdt__findings_new();
	struct tdt__tree_reader reader = { .tasks = &tasks };

	ck_assert_ptr_nonnull(findings);
	tdt__history_panics(&reader, findings);
	tdt__tree_reader_fini(&reader);
	return findings;
}

static const struct tdt_task_info *panicked(const struct tdt__findings *findings, size_t i)
{
	return tdt_trace_info(findings->public.panics[i]->trace);
}

TEST(the_last_panics_are_read_the_last_one_first)
{
	struct tdt__findings *findings;

	fall(TDT__PANICS + 2);
	look_around();
	findings = read_history();
	ck_assert_uint_eq(findings->public.panicked, TDT__PANICS + 2);
	ck_assert_uint_eq(findings->public.n_panics, TDT__PANICS);
	for (size_t i = 0; i < TDT__PANICS; i++) {
		const struct tdt_task_info *info = panicked(findings, i);

		ck_assert_uint_eq(info->id, TDT__PANICS + 2 - i);
		ck_assert_int_eq(info->state, TDT_TASK_PANICKED);
		ck_assert_uint_eq(info->polls, 1);
		ck_assert_str_eq(strrchr(info->file, '/'), "/poll_now.c");
	}
	tdt__findings_free(findings);
	look_away();
}

/* How many panics are read of a registry that has these. */
static size_t panics_of(struct tdt_registry_panic *made_up, uint32_t n)
{
	struct tdt__findings *findings;
	size_t read;

	tasks.registry.panics = (uintptr_t)made_up;
	tasks.registry.n_panics = n;
	findings = read_history();
	read = findings->public.n_panics;
	tdt__findings_free(findings);
	return read;
}

TEST(a_panic_that_cannot_be_right_is_none)
{
	static struct tdt_registry_panic made_up[2];

	look_around();
	made_up[0].number = 1;
	memset(made_up[0].name, 'x', sizeof made_up[0].name); /* and no NUL */
	ck_assert_uint_eq(panics_of(made_up, 2), 1);
	made_up[0].tree.n = TDT_REGISTRY_PANIC_ENTRIES + 1;
	ck_assert_uint_eq(panics_of(made_up, 2), 0);
	made_up[0].tree.n = 0;
	made_up[0].seq = 1;
	ck_assert_uint_eq(panics_of(made_up, 2), 0);
	made_up[0].seq = 0;
	ck_assert_uint_eq(panics_of(made_up, UINT32_MAX), 0);
	ck_assert_uint_eq(panics_of((void *)8, 2), 0);
	tasks.registry.panic_size = 1;
	ck_assert_uint_eq(panics_of(made_up, 2), 0);
	look_away();
}

/* The thread with this id in the table; NULL: it is not there. */
static const struct tdt__known_thread *thread_with(const struct tdt__thread_table *table,
						   uint32_t id)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->thread[i].id == id)
			return &table->thread[i];
	return NULL;
}

/* In its poll, the task looks at the threads. */
static tdt_poll_t look_from_poll(void *state, struct tdt_context *cx)
{
	struct tdt__thread_table table;
	const struct tdt__known_thread *own;

	look_around();
	ck_assert_int_eq(tdt__thread_table_read(&table, &tasks), 0);
	own = thread_with(&table, (uint32_t)getpid());
	ck_assert_ptr_nonnull(own);
	ck_assert_ptr_nonnull(own->polls);
	ck_assert_uint_eq(own->polls->member.info.id, tdt_current_task_id());
	ck_assert(!own->worker && own->parked_ns == 0);
	tdt__thread_table_fini(&table);
	look_away();
	return TDT_PENDING;
}

CASE(threads)

TEST(a_thread_that_polls_has_its_task)
{
	POLL_NOW(task, future_of(look_from_poll, NULL));
}

/* A thread that was joined may still be in /proc for a moment. */
static void wait_for_end(uint32_t thread)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/task/%u", thread);
	while (access(path, F_OK) == 0)
		usleep(1000);
}

static void *poll_once(void *argument)
{
	struct poll_now task;

	poll_now_start(&task, future_of(stay_pending, NULL));
	poll_now_end(&task);
	*(uint32_t *)argument = (uint32_t)gettid();
	return NULL;
}

TEST(a_worker_is_parked_and_a_thread_that_has_ended_is_gone)
{
	struct tdt__thread_table table;
	const struct tdt__known_thread *own;
	uint32_t ended;

	poll_once(&ended);
	run_on_thread(poll_once, &ended);
	wait_for_end(ended);
	tdt_worker_thread_start(NULL);
	tdt_worker_thread_park();
	usleep(20000);
	look_around();
	ck_assert_int_eq(tdt__thread_table_read(&table, &tasks), 0);
	own = thread_with(&table, (uint32_t)getpid());
	ck_assert_ptr_nonnull(own);
	ck_assert(own->worker && own->parked_ns > 0 && own->polls == NULL);
	ck_assert_str_ne(own->name, "");
	ck_assert_ptr_null(thread_with(&table, ended));
	tdt__thread_table_fini(&table);
	look_away();
	tdt_worker_thread_unpark();
	tdt_worker_thread_stop();
}

/* How many threads a table has that was made up. */
static size_t threads_of(uint64_t *slots, uint32_t n)
{
	struct tdt__thread_table table;
	size_t listed;

	tasks.registry.threads = (uintptr_t)slots;
	tasks.registry.n_threads = n;
	ck_assert_int_eq(tdt__thread_table_read(&table, &tasks), 0);
	listed = table.n;
	tdt__thread_table_fini(&table);
	return listed;
}

TEST(a_table_that_cannot_be_right_has_no_threads)
{
	static struct tdt_registry_thread made_up;
	static uint64_t slots[1];

	look_around();
	made_up.id = (uint32_t)getpid();
	slots[0] = (uintptr_t)&made_up;
	ck_assert_uint_eq(threads_of(slots, 1), 1);
	made_up.id = INT32_MAX; /* no thread has such a high id */
	ck_assert_uint_eq(threads_of(slots, 1), 0);
	slots[0] = 8;
	ck_assert_uint_eq(threads_of(slots, 1), 0);
	ck_assert_uint_eq(threads_of(slots, 0), 0);
	ck_assert_uint_eq(threads_of((void *)8, UINT32_MAX), 0);
	look_away();
}

static int read_table(void *argument)
{
	struct tdt__thread_table table;
	int error = tdt__thread_table_read(&table, &tasks);

	if (error == 0)
		tdt__thread_table_fini(&table);
	return error;
}

TEST(without_memory_there_is_no_table)
{
	uint32_t own;

	NOT_TRIED_IF(!no_memory_possible(), "allocations can't be made to fail here");
	poll_once(&own); /* so that the table has this thread */
	look_around();
	no_memory_each(read_table, NULL, 2);
	look_away();
}

SUITE_SKIP(reading_refused())
