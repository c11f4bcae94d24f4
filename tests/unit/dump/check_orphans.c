// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers facts/orphans, facts/past, registry/holders, registry/notes, runtime/mutex.  Locks
 * whose owners have ended are named by a dump, with the owner and the place; and no others are,
 * however they look like it.
 */

#include <stdarg.h>

#include <tdt/rt/sync.h>

#include "lib/request_waiting.h"
#include "lib/rt.h"
#include "lib/test.h"

static struct tdt_rt *rt;
static struct tdt_mutex *mutex;
static struct tdt_handle *holder, *waiter;
static atomic_int holds;
static sem_t dropping, go_on;
static int taken_on;

static void begin(void)
{
	rt = rt_of(2);
	mutex = tdt_mutex_new();
	MUST(mutex != NULL && tdt_mutex_set_name(mutex, "accounts") == 0);
	MUST(sem_init(&dropping, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
}

static int state_of(struct tdt_handle *handle, const struct tdt_task_info *info, void *waits)
{
	*(bool *)waits = info->n_waits != 0;
	return (int)info->state;
}

static void reaches(struct tdt_handle *handle, enum tdt_task_state state, bool waits)
{
	bool does = !waits;

	while (tdt_task_inspect(handle, state_of, &does) != (int)state || does != waits)
		sched_yield();
}

/* A task that takes the lock, and has it when it ends. */
struct holding {
	struct tdt_async async;
	bool stays; /* it waits with the lock */
};

static tdt_poll_t hold_poll(void *state, struct tdt_context *cx)
{
	struct holding *holding = state;

	TDT_BEGIN(&holding->async, cx);
	taken_on = __LINE__ + 1;
	TDT_AWAIT(tdt_mutex_lock(mutex));
	atomic_store(&holds, 1);
	if (holding->stays)
		TDT_AWAIT(tdt_sleep_ms(60000000));
	while (atomic_load(&holds) == 1)
		TDT_AWAIT(tdt_yield_now());
	TDT_END();
}

static struct tdt_future holds_on(bool stays, void (*fini)(void *state))
{
	return TDT_ASYNC_NEW(hold_poll,
			     (struct holding){ .async.fini = fini, .stays = stays });
}

/* The holder has the lock, and the waiter waits for it. */
static void both_on(struct tdt_rt *on, struct tdt_future future)
{
	atomic_store(&holds, 0);
	holder = spawn_on(on, future, "holder");
	while (atomic_load(&holds) == 0)
		sched_yield();
	waiter = spawn_on(rt, tdt_mutex_lock(mutex), "waiter");
	reaches(waiter, TDT_TASK_WAITING, true);
}

static void end_holder(void)
{
	atomic_store(&holds, 2);
	reaches(holder, TDT_TASK_READY, false);
}

static const struct tdt_snapshot *taken(const struct tdt_task_filter *filter)
{
	const struct tdt_snapshot *snapshot = tdt_snapshot_take(
	    &(struct tdt_dump_options){ .size = sizeof(struct tdt_dump_options),
					.filter = filter });

	MUST(snapshot != NULL);
	return snapshot;
}

static size_t orphans_of(const struct tdt_task_filter *filter)
{
	SNAPSHOT(snapshot, taken(filter));
	size_t n = snapshot->n_orphans;

	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n; k++) {
			const struct tdt_task_info *info = snapshot->groups[i]->tasks[k];

			for (uint32_t w = 0; w < info->n_waits; w++)
				ck_assert(info->waits[w]->orphaned == 0 || n != 0);
		}
	return n;
}

/*
 * The first snapshot that has the orphan.  Before, the future may not have been dropped; and a
 * waiter that is held up in the poll that is to answer has its stack read instead, and no wait.
 */
static const struct tdt_snapshot *taken_with_orphan(void)
{
	const struct tdt_snapshot *snapshot = taken(NULL);

	while (snapshot->n_orphans != 1) {
		tdt_snapshot_free(snapshot);
		sched_yield();
		snapshot = taken(NULL);
	}
	return snapshot;
}

static void until_orphaned(void)
{
	tdt_snapshot_free(taken_with_orphan());
}

static char *text_of(const struct tdt_snapshot *snapshot, enum tdt_print_format format)
{
	const struct tdt_print_options print = { .size = sizeof print, .format = format,
						 .utf8 = TDT_PRINT_NO };
	const struct tdt_dump_options options = { .size = sizeof options, .print = &print };

	return TEXT_WRITTEN(out, MUST(tdt_snapshot_print(snapshot, out, &options) == 0));
}

static void has(const char *text, const char *format, ...)
{
	char expected[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(expected, sizeof expected, format, arguments);
	va_end(arguments);
	ck_assert_msg(strstr(text, expected) != NULL, "no \"%s\" in:\n%s", expected, text);
}

CASE(orphans, .setup = begin)

TEST(a_lock_whose_owner_has_ended_is_named_with_owner_and_place)
{
	char *text;

	both_on(rt, holds_on(false, NULL));
	end_holder();
	SNAPSHOT(snapshot, taken_with_orphan());
	text = text_of(snapshot, TDT_PRINT_TEXT);
	has(text, "1 task, 1 orphaned lock: ");
	has(text,
	    "orphaned lock: task %" PRIu64 " \"holder\" has ended without giving back a mutex "
	    "\"accounts\" (0x%" PRIxPTR "): 1 wait for it hangs\n   it was taken here:\n"
	    "- hold_poll",
	    tdt_handle_id(holder), (uintptr_t)mutex);
	has(text, "check_orphans.c:%d", taken_on);
	has(text, "held by task %" PRIu64 " \"holder\", which has ended without giving it back",
	    tdt_handle_id(holder));
	free(text);
	text = text_of(snapshot, TDT_PRINT_JSON);
	has(text, "\"orphaned\":1");
	has(text, "\"orphans\":[{\"answer\":\"fresh\",\"tasks\":[{\"id\":%" PRIu64
	    ",\"name\":\"holder\"", tdt_handle_id(holder));
	free(text);
}

TEST(a_trace_names_it_too)
{
	both_on(rt, holds_on(false, NULL));
	end_holder();
	tdt_handle_unref(holder); /* the record is gone, and the name is known */
	until_orphaned();
	TRACE(trace, request_waiting(waiter));
	WRITTEN(text, out, MUST(tdt_trace_print(trace, out) == 0));
	has(text, "\"holder\", which has ended without giving it back\n");
}

static char *summary(void)
{
	const struct tdt_summary_options options = { .size = sizeof options };

	return TEXT_WRITTEN(out, MUST(tdt_recorder_summary(out, &options) == 0));
}

TEST(so_does_a_recording)
{
	const struct tdt_recorder_options options = { .size = sizeof options };
	const char *orphan = "\"holder\", which has ended without giving it back";
	char *text;

	MUST(tdt_recorder_start(&options) == 0);
	both_on(rt, holds_on(false, NULL));
	text = summary();
	ck_assert_ptr_null(strstr(text, orphan));
	free(text);
	end_holder();
	until_orphaned();
	text = summary();
	has(text, "%s", orphan);
	free(text);
}

TEST(so_is_the_lock_of_a_task_that_was_dropped)
{
	struct tdt_rt *other = rt_of(1);

	both_on(other, holds_on(true, NULL));
	ck_assert_uint_eq(orphans_of(NULL), 0);
	tdt_rt_free(other);
	until_orphaned();
}

TEST(a_holder_that_a_filter_leaves_out_lives)
{
	const struct tdt_task_filter filter = { .size = sizeof filter, .name = "waiter" };

	both_on(rt, holds_on(true, NULL));
	ck_assert_uint_eq(orphans_of(&filter), 0);
}

static void give_back_at_the_gate(void *state)
{
	sem_post(&dropping);
	sem_wait(&go_on);
	tdt_mutex_unlock(mutex);
}

/* The healthy one that looks like it: the task has ended, and its drop has not unlocked yet. */
TEST(a_task_whose_future_is_being_dropped_may_give_the_lock_back)
{
	both_on(rt, holds_on(false, give_back_at_the_gate));
	end_holder();
	while (sem_wait(&dropping) != 0)
		;
	ck_assert_uint_eq(orphans_of(NULL), 0);
	sem_post(&go_on);
	reaches(waiter, TDT_TASK_READY, false);
}

TEST(a_lock_that_was_passed_on_is_not_of_the_task_that_has_ended)
{
	both_on(rt, holds_on(false, NULL));
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	end_holder();
	reaches(waiter, TDT_TASK_READY, false);
	ck_assert_uint_eq(orphans_of(NULL), 0);
}

/* --- Many looks, under load ------------------------------------------------------- */

static atomic_bool stops;
static atomic_int brief; /* so many tasks have not given the lock back */

static void give_back(void *state)
{
	tdt_mutex_unlock(mutex);
	atomic_fetch_sub(&brief, 1);
}

static tdt_poll_t brief_poll(void *state, struct tdt_context *cx)
{
	struct holding *holding = state;

	TDT_BEGIN(&holding->async, cx);
	TDT_AWAIT(tdt_mutex_lock(mutex));
	holding->async.fini = give_back;
	if (holding->stays)
		TDT_AWAIT(tdt_yield_now());
	TDT_END();
}

struct spawning {
	struct tdt_async async;
	unsigned random;
};

/* Its tasks take the lock, end, and give it back when they are dropped. */
static tdt_poll_t spawn_poll(void *state, struct tdt_context *cx)
{
	struct spawning *spawning = state;

	TDT_BEGIN(&spawning->async, cx);
	while (!atomic_load(&stops)) {
		while (atomic_load(&brief) < 1 + (int)random_below(&spawning->random, 8)) {
			atomic_fetch_add(&brief, 1);
			tdt_handle_unref(spawn_on(
			    rt,
			    TDT_ASYNC_NEW(brief_poll,
					  (struct holding){
						  .stays = random_below(&spawning->random, 2) }),
			    "brief"));
		}
		TDT_AWAIT(tdt_yield_now());
	}
	TDT_END();
}

CASE(many, .setup = begin, .timeout = 600)

TEST(no_look_at_healthy_tasks_finds_an_orphan)
{
	unsigned random = seed_of_run(), looks = test_in_full() ? 10000 : times_here(200);
	uint64_t waits = 0;

	holder = spawn_on(rt, TDT_ASYNC_NEW(spawn_poll, (struct spawning){ .random = random }),
			  "spawner");
	for (unsigned i = 0; i < looks; i++) {
		SNAPSHOT(snapshot, taken(NULL));

		for (size_t g = 0; g < snapshot->n_groups; g++)
			for (size_t k = 0; k < snapshot->groups[g]->n; k++)
				waits += snapshot->groups[g]->tasks[k]->n_waits;
		ck_assert_uint_eq(snapshot->n_orphans, 0);
	}
	atomic_store(&stops, true);
	printf("# %u looks, %" PRIu64 " waits\n", looks, waits);
	reaches(holder, TDT_TASK_READY, false);
}

TEST(each_orphan_is_found)
{
	unsigned rounds = test_in_full() ? 1000 : 20;

	for (unsigned i = 1; i <= rounds; i++) {
		both_on(rt, holds_on(false, NULL));
		ck_assert_uint_eq(orphans_of(NULL), 0);
		end_holder();
		until_orphaned();
		tdt_handle_unref(holder);
		MUST(tdt_mutex_unlock(mutex) == 0); /* the test gives it back */
		reaches(waiter, TDT_TASK_READY, false);
		tdt_handle_unref(waiter);
		while (tdt_mutex_unlock(mutex) != 0)
			sched_yield();
	}
}

CASE(guards, .setup = begin)

TEST(a_guard_gives_the_lock_back_when_its_future_has_ended)
{
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_mutex_guard(mutex, tdt_yield_now())), 0);
	ck_assert(tdt_mutex_try_lock(mutex));
}

TEST(a_guard_that_a_timeout_drops_gives_the_lock_back)
{
	bool elapsed = false;

	ck_assert_int_eq(
	    tdt_rt_block_on(rt, tdt_timeout_ms(tdt_mutex_guard(mutex, tdt_sleep_ms(60000000)), 1,
					    &elapsed)),
	    0);
	ck_assert(elapsed);
	ck_assert(tdt_mutex_try_lock(mutex));
}

TEST(a_guard_that_waits_in_line_leaves_it)
{
	bool elapsed = false;

	MUST(tdt_mutex_try_lock(mutex));
	ck_assert_int_eq(
	    tdt_rt_block_on(rt, tdt_timeout_ms(tdt_mutex_guard(mutex, tdt_yield_now()), 1,
					       &elapsed)),
	    0);
	ck_assert(elapsed);
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	ck_assert(tdt_mutex_try_lock(mutex));
}

static tdt_poll_t panics(void *state, struct tdt_context *cx)
{
	return TDT_PANICKED;
}

static void drops(void *state)
{
}

TEST(a_guard_panics_as_its_future_does)
{
	const struct tdt_future future = { NULL, panics, drops };

	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_mutex_guard(mutex, future)), -ENOTRECOVERABLE);
	ck_assert(tdt_mutex_try_lock(mutex));
}

TEST(a_guard_of_nothing_is_none)
{
	struct tdt_future sleep = tdt_yield_now(), none = tdt_mutex_guard(NULL, sleep);

	ck_assert(tdt_future_is_none(&none));
	ck_assert_int_eq(errno, EINVAL);
	none = tdt_mutex_guard(mutex, TDT_FUTURE_NONE);
	ck_assert(tdt_future_is_none(&none));
	ck_assert_int_eq(errno, EINVAL);
	tdt_future_drop(&sleep);
}
