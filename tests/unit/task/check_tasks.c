// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/tasks, registry/task_info, facts/task.  Going through all tasks, and what is reported
 * of each: one thing at a time, and with tasks that come and go on threads.
 */

#include <tdt/integrate/hooks.h>

#include "lib/requester.h"
#include "lib/test.h"

#define MANY 3000 /* more than fit in a slab */

/* What was met: ids, in any order. */
struct met {
	int n;
	uint64_t id[MANY];
	struct tdt_task_info info; /* of the last */
	struct tdt_wait wait;
};

static struct met met;

static int meet(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	struct met *all = arg;

	ck_assert_uint_eq(tdt_handle_id(handle), info->id);
	ck_assert_int_lt(all->n, MANY);
	all->id[all->n++] = info->id;
	all->info = *info;
	if (info->n_waits != 0)
		all->wait = *info->waits[0];
	return 0;
}

static int tasks_met(const struct tdt_task_filter *filter)
{
	met.n = 0;
	ck_assert_int_eq(tdt_tasks(filter, meet, &met), 0);
	return met.n;
}

static int times_met(uint64_t id)
{
	int times = 0;

	for (int i = 0; i < met.n; i++)
		times += met.id[i] == id;
	return times;
}

static void named(struct test_task *task, const char *name)
{
	struct tdt_traced traced =
	    tdt_traced_with(test_future(&task->leaf), TDT_TASK_ATTR(.name = name));

	ck_assert_ptr_nonnull(traced.handle);
	test_waker_init(&task->waker);
	task->cx = (struct tdt_context){ &task->waker.waker };
	task->future = traced.future;
	task->handle = traced.handle;
}

static struct test_task many[MANY];

CASE(which)

TEST(every_live_task_is_met_once)
{
	int gone = 0;

	for (int i = 0; i < MANY; i++)
		test_task_init(&many[i], NULL);
	ck_assert_int_eq(tasks_met(NULL), MANY);
	for (int i = 0; i < MANY; i += 7)
		ck_assert_int_eq(times_met(tdt_handle_id(many[i].handle)), 1);
	for (int i = 0; i < MANY; i += 3, gone++)
		test_task_fini(&many[i]);
	ck_assert_int_eq(tasks_met(NULL), MANY - gone);
	for (int i = 0; i < MANY; i += 3) { /* where the others were */
		many[i] = (struct test_task){ 0 };
		test_task_init(&many[i], NULL);
	}
	ck_assert_int_eq(tasks_met(NULL), MANY);
	for (int i = 0; i < MANY; i += 7)
		ck_assert_int_eq(times_met(tdt_handle_id(many[i].handle)), 1);
	for (int i = 0; i < MANY; i++)
		test_task_fini(&many[i]);
	ck_assert_int_eq(tasks_met(NULL), 0);
}

/* 0: ready, 1: panicked, 2: dropped */
TEST(a_task_that_ended_is_not_met_but_can_be_looked_at, .to = 3)
{
	TEST_TASK(task, NULL, .result = _i == 1 ? TDT_PANICKED : TDT_READY);
	uint64_t id = tdt_handle_id(task.handle);

	if (_i < 2)
		test_task_poll(&task);
	else
		tdt_future_drop(&task.future);
	ck_assert_int_eq(tasks_met(NULL), 0);
	ck_assert_ptr_null(tdt_task_find(id));
	ck_assert_int_eq(tdt_task_inspect(task.handle, meet, &met), 0);
	ck_assert_uint_eq(met.info.id, id);
	ck_assert_int_eq(met.info.state, _i == 0 ? TDT_TASK_READY : TDT_TASK_PANICKED);
}

TEST(names_are_matched_by_pattern)
{
	struct test_task task[4] = { 0 };
	struct tdt_task_filter filter = { .size = sizeof filter };

	named(&task[0], "connection 1");
	named(&task[1], "connection 2");
	named(&task[2], "listener");
	named(&task[3], NULL);
	ck_assert_int_eq(tasks_met(&filter), 4);
	filter.name = "connection *";
	ck_assert_int_eq(tasks_met(&filter), 2);
	filter.name = "*[!2]";
	ck_assert_int_eq(tasks_met(&filter), 2);
	filter.name = "*"; /* and not those that have none */
	ck_assert_int_eq(tasks_met(&filter), 3);
	filter.name = "nobody";
	ck_assert_int_eq(tasks_met(&filter), 0);
	for (int i = 0; i < 4; i++)
		test_task_fini(&task[i]);
}

TEST(those_that_wait_for_long_are_met)
{
	struct test_task task[2] = { { .leaf = { .pending = 9 } }, { .leaf = { .pending = 9 } } };
	struct tdt_task_filter filter = { .size = sizeof filter,
					  .longer_than_ns = 3600 * UINT64_C(1000000000) };

	tdt_worker_now(1); /* when the machine was started, or so */
	test_task_init(&task[0], NULL);
	tdt_worker_now(0);
	test_task_init(&task[1], NULL);
	filter.longer_than_ns = 1;
	ck_assert_int_ge(tasks_met(&filter), 1);
	ck_assert_int_eq(times_met(tdt_handle_id(task[0].handle)), 1);
	filter.longer_than_ns = UINT64_MAX;
	ck_assert_int_eq(tasks_met(&filter), 0);
	test_task_poll(&task[0]); /* it waits anew */
	ck_assert_int_eq(tdt_task_inspect(task[0].handle, meet, &met), 0);
	ck_assert_uint_lt(met.info.state_ns, 60 * UINT64_C(1000000000));
	for (int i = 0; i < 2; i++)
		test_task_fini(&task[i]);
}

static struct test_task other;

/* In the middle of a poll. */
static void look_by_state(void *unused)
{
	struct tdt_task_filter filter = { .size = sizeof filter, .states = 1u << TDT_TASK_RUNNING };

	ck_assert_int_eq(tasks_met(&filter), 1);
	ck_assert_uint_eq(met.id[0], tdt_current_task_id());
	ck_assert_int_eq(met.info.state, TDT_TASK_RUNNING);
	ck_assert_uint_ne(met.info.thread, 0);
	ck_assert_uint_eq(met.info.polls, 1);
	filter.states = 1u << TDT_TASK_WAITING;
	ck_assert_int_eq(tasks_met(&filter), 1);
	ck_assert_uint_eq(met.id[0], tdt_handle_id(other.handle));
	ck_assert_uint_eq(met.info.thread, 0);
	filter.states |= 1u << TDT_TASK_RUNNING;
	ck_assert_int_eq(tasks_met(&filter), 2);
}

static int tasks_in(uint32_t states)
{
	struct tdt_task_filter filter = { .size = sizeof filter, .states = states };

	return tasks_met(&filter);
}

TEST(a_task_that_was_woken_and_not_polled_since_is_runnable)
{
	TEST_TASK(task, NULL, .pending = 9);

	ck_assert_int_eq(tasks_in(1u << TDT_TASK_RUNNABLE), 0); /* it was only spawned */
	tdt_worker_now(1000);
	test_task_poll(&task);
	ck_assert_int_eq(tasks_in(1u << TDT_TASK_RUNNABLE), 0);
	tdt_worker_now(2000);
	tdt_task_woken(task.handle);
	tdt_worker_now(0);
	ck_assert_int_eq(tasks_in(1u << TDT_TASK_RUNNABLE), 1);
	ck_assert_int_eq(met.info.state, TDT_TASK_RUNNABLE);
	ck_assert_uint_eq(met.info.state_ns, met.info.woken_ns);
	ck_assert_uint_ne(met.info.state_ns, 0);
	/* It has not gone on yet, so it is one of those that wait, too. */
	ck_assert_int_eq(tasks_in(1u << TDT_TASK_WAITING), 1);
	ck_assert_int_eq(tasks_in(1u << TDT_TASK_RUNNING), 0);
	test_task_poll(&task);
	ck_assert_int_eq(tasks_in(1u << TDT_TASK_RUNNABLE), 0);
	ck_assert_int_eq(tasks_in(1u << TDT_TASK_WAITING), 1);
	ck_assert_int_eq(met.info.state, TDT_TASK_WAITING);
}

TEST(those_that_run_are_told_from_those_that_wait)
{
	struct test_busy busy = { .act = look_by_state };
	struct tdt_future future = test_busy_future(&busy);
	struct test_task task;

	test_task_init(&other, NULL);
	test_task_init(&task, &future);
	test_task_poll(&task);
	ck_assert_int_eq(busy.polls, 1);
	test_task_fini(&task);
	test_task_fini(&other);
}

/* --- What the callback may do --------------------------------------------------------------- */

static int stop_at_third(struct tdt_handle *handle, const struct tdt_task_info *info, void *n)
{
	return ++*(int *)n == 3 ? -42 : 0;
}

CASE(callback)

TEST(a_callback_ends_the_iteration)
{
	struct test_task task[5] = { 0 };
	int n = 0;

	for (int i = 0; i < 5; i++)
		test_task_init(&task[i], NULL);
	ck_assert_int_eq(tdt_tasks(NULL, stop_at_third, &n), -42);
	ck_assert_int_eq(n, 3);
	ck_assert_int_eq(tdt_task_inspect(task[0].handle, stop_at_third, &(int){ 2 }), -42);
	for (int i = 0; i < 5; i++)
		test_task_fini(&task[i]);
}

static struct tdt_handle *kept;

/* End the task that is met, spawn another, and go through all. */
static int meddle(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	int *left = arg, n = 0;

	for (int i = 0; i < 3; i++)
		if (many[i].handle == handle)
			test_task_fini(&many[i]);
	ck_assert_uint_eq(tdt_handle_id(handle), info->id); /* it is lent for the call */
	if (kept == NULL)
		kept = tdt_handle_ref(handle);
	if (*left > 0)
		test_task_init(&many[3 + --*left], NULL);
	ck_assert_int_eq(tdt_tasks(NULL, stop_at_third, &n), n == 3 ? -42 : 0);
	return 0;
}

TEST(a_callback_may_end_tasks_and_spawn_and_iterate)
{
	int left = 3;

	for (int i = 0; i < 3; i++)
		test_task_init(&many[i], NULL);
	ck_assert_int_eq(tdt_tasks(NULL, meddle, &left), 0);
	ck_assert_int_eq(left, 0);
	ck_assert_int_eq(tasks_met(NULL), 3);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_null(many[i].handle);
	ck_assert_uint_ne(tdt_handle_id(kept), 0); /* a handle that was kept is good */
	ck_assert_int_eq(tdt_task_inspect(kept, meet, &met), 0);
	ck_assert_int_eq(met.info.state, TDT_TASK_PANICKED);
	tdt_handle_unref(kept);
	for (int i = 3; i < 6; i++)
		test_task_fini(&many[i]);
}

TEST(what_makes_no_sense_is_refused)
{
	struct {
		struct tdt_task_filter filter;
		int more;
	} larger = { { .size = sizeof larger }, 1 };
	struct tdt_task_filter filter = { .size = 1 };

	ck_assert_fails(tdt_tasks(&filter, meet, &met), EINVAL);
	filter = (struct tdt_task_filter){ .size = sizeof filter, .states = 1u << TDT_TASK_READY };
	ck_assert_int_eq(tdt_tasks(&filter, meet, &met), -EINVAL);
	filter = (struct tdt_task_filter){ .size = sizeof filter, .reserved = 1 };
	ck_assert_int_eq(tdt_tasks(&filter, meet, &met), -EINVAL);
	ck_assert_int_eq(tdt_tasks(NULL, NULL, NULL), -EINVAL);
	ck_assert_fails(tdt_tasks(&larger.filter, meet, &met), E2BIG);
	larger.more = 0;
	ck_assert_int_eq(tdt_tasks(&larger.filter, meet, &met), 0);
	ck_assert_fails(tdt_task_inspect(NULL, meet, &met), EINVAL);
}

TEST(a_task_is_found_by_its_id)
{
	struct test_task task[3] = { 0 };
	struct tdt_handle *found;

	for (int i = 0; i < 3; i++)
		test_task_init(&task[i], NULL);
	found = tdt_task_find(tdt_handle_id(task[1].handle));
	ck_assert_ptr_eq(found, task[1].handle);
	for (int i = 0; i < 3; i++)
		test_task_fini(&task[i]);
	ck_assert_uint_ne(tdt_handle_id(found), 0); /* it was a reference of ours */
	ck_assert_ptr_fails(tdt_task_find(tdt_handle_id(found)), ESRCH);
	tdt_handle_unref(found);
	ck_assert_ptr_null(tdt_task_find(0));
}

/* --- What it waits for ----------------------------------------------------------------------- */

static int tags; /* that the next poll makes */

static void tag(void *unused)
{
	for (int i = 0; i < tags; i++)
		tdt_leaf_waits_on(TDT_WAIT_OTHER, (void *)(uintptr_t)(1000 + i),
				  2000 + (uint64_t)i);
}

static void expect_wait(struct test_task *task, uint64_t object)
{
	ck_assert_int_eq(tdt_task_inspect(task->handle, meet, &met), 0);
	ck_assert_uint_eq(met.info.n_waits, object != 0);
	if (object == 0)
		return;
	ck_assert_int_eq(met.wait.kind, TDT_WAIT_OTHER);
	ck_assert_uint_eq(met.wait.object, object);
	ck_assert_uint_eq(met.wait.owner, object + 1000);
}

CASE(waits)

static struct tdt_lock lock = { .magic = TDT_LOCK_MAGIC, .owner = 4711 };

static void wait_for_lock(void *unused)
{
	tdt_leaf_waits_on(TDT_WAIT_MUTEX, &lock, lock.owner);
}

TEST(a_lock_that_was_passed_on_names_its_present_holder)
{
	struct test_busy busy = { .act = wait_for_lock, .result = TDT_PENDING };
	struct tdt_future future = test_busy_future(&busy);
	TEST_TASK(task, &future);

	test_task_poll(&task);
	tdt_lock_take(&lock, 4712);
	ck_assert_int_eq(tdt_task_inspect(task.handle, meet, &met), 0);
	ck_assert_uint_eq(met.wait.owner, 4712);
	tdt_lock_hand(&lock, 4713);
	ck_assert_int_eq(tasks_met(NULL), 1);
	ck_assert_uint_eq(met.wait.owner, 4713);
	ck_assert_uint_ne(met.wait.handed_ns, 0);
}

TEST(a_record_tells_what_the_first_leaf_of_the_last_poll_waits_for)
{
	struct test_busy busy = { .act = tag, .result = TDT_PENDING };
	struct tdt_future future = test_busy_future(&busy);
	TEST_TASK(task, &future);

	expect_wait(&task, 0);
	for (tags = 3; tags >= 0; tags--) {
		test_task_poll(&task);
		expect_wait(&task, tags > 0 ? 1000 : 0);
	}
	tags = 1;
	test_task_poll(&task);
	expect_wait(&task, 1000);
	busy.result = TDT_READY;
	test_task_poll(&task);
	expect_wait(&task, 0); /* it waits no more */
}

TEST(a_trace_tells_what_all_leaves_wait_for)
{
	struct test_busy busy = { .act = tag, .result = TDT_PENDING };
	struct tdt_future future = test_busy_future(&busy);
	const struct tdt_task_info *info;
	TEST_TASK(task, &future);

	tags = 300; /* more than a record can count */
	test_task_poll(&task);
	expect_wait(&task, 1000);
	ASKED(requester, task.handle);
	test_task_run(&task);
	info = test_answer(&requester);
	ck_assert_uint_eq(info->n_waits, 300);
	for (uint32_t i = 0; i < info->n_waits; i++) {
		ck_assert_int_eq(info->waits[i]->kind, TDT_WAIT_OTHER);
		ck_assert_uint_eq(info->waits[i]->object, 1000 + i);
		ck_assert_uint_eq(info->waits[i]->owner, 2000 + i);
	}
}

static void poll_inner(void *inner)
{
	test_task_poll(inner);
}

TEST(what_a_leaf_says_is_of_the_innermost_task)
{
	struct test_busy busy = { .act = tag, .result = TDT_PENDING };
	struct test_busy outer_busy = { .act = poll_inner, .result = TDT_PENDING };
	struct tdt_future future = test_busy_future(&busy),
			  outer_future = test_busy_future(&outer_busy);
	TEST_TASK(inner, &future);
	TEST_TASK(outer, &outer_future);

	tags = 1;
	outer_busy.argument = &inner;
	test_task_poll(&outer);
	expect_wait(&inner, 1000);
	expect_wait(&outer, 0);
}

TEST(outside_of_polls_nobody_waits)
{
	TEST_TASK(task, NULL, .pending = 9);

	test_task_poll(&task);
	tags = 1;
	tag(NULL);
	expect_wait(&task, 0);
}

/*
 * Tasks come, are polled and go on several threads, while other threads go through all tasks.  What
 * is reported of a task is a function of its id, so a report of another task is noticed.
 */

#define THREADS 3
#define LIVE 40
#define PASSES 500
#define FIRST_ID (UINT64_C(1) << 40)

static unsigned seed;
static atomic_uint_fast64_t next = FIRST_ID;
static atomic_int passes; /* through all */
static atomic_int churning;
static atomic_long seen, waited;

static const char *file_of(uint64_t id)
{
	static const char *const files[] = { "a.c", "b.c", "c.c", "d.c", "e.c" };

	return files[id % 5];
}

struct number {
	uint64_t id;
	uint64_t polls;
};

static tdt_poll_t number_poll(void *state, struct tdt_context *cx)
{
	struct number *number = state;

	number->polls++;
	/* Every third says nothing. */
	if (number->polls % 3 != 0)
		tdt_leaf_waits_on(number->polls % 2 == 0 ? TDT_WAIT_OTHER : TDT_WAIT_MUTEX,
				  (void *)(uintptr_t)(number->id + number->polls),
				  number->id + 2 * number->polls);
	return TDT_PENDING;
}

/*
 * The memory of both: the first one's state, which spawns the second in its poll, and that of the
 * second.
 */
struct spawner {
	struct number number;
	struct tdt_future child;
};

static tdt_poll_t spawner_poll(void *state, struct tdt_context *cx)
{
	struct spawner *spawner = state;
	uint64_t id = spawner->number.id;
	char name[64];
	const struct tdt_task_attr attr = { .size = sizeof attr,
					    .id = id,
					    .name = name,
					    .file = file_of(id),
					    .line = (uint32_t)(id % 1000),
					    .column = (uint32_t)(id % 77) };
	struct tdt_traced traced;

	snprintf(name, sizeof name, "task %" PRIu64 " of many, with a name of some length", id);
	traced = tdt_traced_with((struct tdt_future){ &spawner->number, number_poll, free }, &attr);
	MUST(traced.handle != NULL);
	tdt_handle_unref(traced.handle);
	spawner->child = traced.future;
	return TDT_READY;
}

static struct tdt_future spawn_numbered(void)
{
	struct spawner *spawner = calloc(1, sizeof *spawner);
	struct tdt_traced outer;
	struct tdt_future child;

	MUST(spawner != NULL);
	spawner->number.id = atomic_fetch_add(&next, 2);
	/* The parent's id is one more. */
	outer = tdt_traced_with((struct tdt_future){ spawner, spawner_poll, drop_nothing },
				TDT_TASK_ATTR(.id = spawner->number.id + 1, .name = "parent"));
	MUST(outer.handle != NULL);
	MUST(poll_idly(&outer.future) == TDT_READY);
	child = spawner->child;
	end_traced(&outer);
	return child;
}

static void *churn(void *thread)
{
	unsigned choices = seed + 7919 * (unsigned)(uintptr_t)thread;
	struct tdt_future live[LIVE] = { { 0 } };

	while (atomic_load(&passes) < PASSES) {
		struct tdt_future *one = &live[random_below(&choices, LIVE)];

		if (tdt_future_is_none(one))
			*one = spawn_numbered();
		else if (random_below(&choices, 4) != 0)
			MUST(poll_idly(one) == TDT_PENDING);
		else
			tdt_future_drop(one);
	}
	for (int i = 0; i < LIVE; i++)
		tdt_future_drop(&live[i]);
	atomic_fetch_sub(&churning, 1);
	return NULL;
}

static int check_all(struct tdt_handle *handle, const struct tdt_task_info *info, void *unused)
{
	char name[64];

	MUST(tdt_handle_id(handle) == info->id);
	if (info->name != NULL && strcmp(info->name, "parent") == 0) {
		MUST(info->id % 2 == 1);
		return 0;
	}
	snprintf(name, sizeof name, "task %" PRIu64 " of many, with a name of some length",
		 info->id);
	MUST(info->id >= FIRST_ID);
	MUST(info->name != NULL && strcmp(info->name, name) == 0);
	MUST(info->file == file_of(info->id));
	MUST(info->line == info->id % 1000);
	MUST(info->column == info->id % 77);
	MUST(info->parent == info->id + 1);
	if (info->n_waits != 0) {
		uint64_t polls = info->waits[0]->object - info->id;

		MUST(info->state == TDT_TASK_WAITING);
		MUST(polls == info->polls && polls % 3 != 0);
		MUST(info->waits[0]->owner == info->id + 2 * polls);
		MUST(info->waits[0]->kind == (polls % 2 == 0 ? TDT_WAIT_OTHER : TDT_WAIT_MUTEX));
		atomic_fetch_add(&waited, 1);
	}
	atomic_fetch_add(&seen, 1);
	return 0;
}

static void *go_through(void *unused)
{
	do {
		uint64_t latest = atomic_load(&next) - 2;
		struct tdt_handle *found = tdt_task_find(latest);

		MUST(tdt_tasks(NULL, check_all, NULL) == 0);
		MUST(found == NULL || tdt_handle_id(found) == latest);
		tdt_handle_unref(found);
		if (atomic_load(&seen) > 0)
			atomic_fetch_add(&passes, 1);
	} while (atomic_load(&churning) > 0);
	return unused;
}

CASE(threads)

TEST(what_is_said_of_a_task_is_true_of_it_whatever_others_do)
{
	pthread_t thread[THREADS], reader[2];

	seed = seed_of_run();
	churning = THREADS;
	threads_start(reader, 2, go_through, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, churn, (void *)i), 0);
	threads_join(thread, THREADS);
	threads_join(reader, 2);
	printf("# %ld records looked at, %ld that wait\n", seen, waited);
	fflush(stdout);
	ck_assert_int_eq(tasks_met(NULL), 0);
}
