// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/lost, facts/lost.  A wake-up that was lost is found by the
 * request that heals it, with what the task had waited for; and nothing is that only looks like it.
 */

#include <tdt/integrate/hooks.h>
#include <tdt/rt/sync.h>

#include "lib/bell.h"
#include "lib/find_registry.h"
#include "lib/options.h"
#include "lib/rt.h"
#include "lib/test.h"

static struct tdt_rt *rt;
static const struct tdt_registry *registry;

static void set_up_lost(void)
{
	rt = rt_of(2);
	registry = find_registry();
	MUST(registry != NULL);
}

/* --- Events ------------------------------------------------------------------------ */

/* A leaf waits for it.  Whoever sets it takes the waker. */
struct event {
	pthread_mutex_t lock;
	enum tdt_wait_kind kind; /* that the leaf reports; TDT_WAIT_UNKNOWN: it is silent */
	bool registers_first;    /* the leaf leaves its waker before it looks */
	bool is_set;
	const struct tdt_waker *waker;
	const struct tdt_waker *taken; /* by whoever set it, and may have forgotten it */
};

/* They outlive the test: a task may still be polled when that returns. */
static struct event *event_new(struct event event)
{
	static struct event events[4096];
	static size_t n;

	MUST(n < 4096);
	events[n] = event;
	return &events[n++];
}

#define EVENT(...) event_new((struct event){ .lock = PTHREAD_MUTEX_INITIALIZER, __VA_ARGS__ })
#define CHANNEL EVENT(.kind = TDT_WAIT_CHANNEL)

static tdt_poll_t event_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker *before = NULL;
	struct event *event = state;
	bool is_set;

	pthread_mutex_lock(&event->lock);
	is_set = event->is_set;
	event->is_set = false;
	if (!is_set || event->registers_first) {
		before = event->waker;
		event->waker = tdt_waker_clone(cx->waker);
	}
	pthread_mutex_unlock(&event->lock);
	if (!is_set && event->kind != TDT_WAIT_UNKNOWN)
		tdt_leaf_waits_on_named(event->kind, event, 0, "jobs");
	tdt_waker_drop(before);
	return is_set ? TDT_READY : TDT_PENDING;
}

static struct tdt_future event_future(struct event *event)
{
	return (struct tdt_future){ event, event_poll, drop_nothing };
}

/* It comes.  Returns the waker that is to be called; whoever forgets it loses a wake-up. */
static const struct tdt_waker *comes(struct event *event)
{
	const struct tdt_waker *waker;

	pthread_mutex_lock(&event->lock);
	event->is_set = true;
	waker = event->waker;
	event->waker = NULL;
	event->taken = waker;
	pthread_mutex_unlock(&event->lock);
	return waker;
}

static bool is_awaited(struct event *event)
{
	bool awaited;

	pthread_mutex_lock(&event->lock);
	awaited = event->waker != NULL;
	pthread_mutex_unlock(&event->lock);
	return awaited;
}

/* --- Tasks -------------------------------------------------------------------------- */

#define MOST_EVENTS 4

/* A task that awaits one after the other, and ends. */
struct consuming {
	struct tdt_async async;
	struct event *event[MOST_EVENTS];
	int i;
};

static tdt_poll_t consume_poll(void *state, struct tdt_context *cx)
{
	struct consuming *consuming = state;

	TDT_BEGIN(&consuming->async, cx);
	for (; consuming->i < MOST_EVENTS && consuming->event[consuming->i] != NULL;
	     consuming->i++)
		TDT_AWAIT(event_future(consuming->event[consuming->i]));
	TDT_END();
}

#define CONSUME(...) TDT_ASYNC_NEW(consume_poll, (struct consuming){ .event = { __VA_ARGS__ } })

static struct tdt_handle *spawn_one(struct tdt_future future)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = "consumer"));

	MUST(handle != NULL);
	return handle;
}

static int state_of_info(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	return (int)info->state;
}

/* Wait until the task waits for the event. */
static void waits_for(struct tdt_handle *handle, struct event *event)
{
	while (!is_awaited(event) ||
	       tdt_task_inspect(handle, state_of_info, NULL) != TDT_TASK_WAITING)
		sched_yield();
}

static struct tdt_handle *spawn_waiting(struct tdt_future future, struct event *event)
{
	struct tdt_handle *handle = spawn_one(future);

	waits_for(handle, event);
	return handle;
}

/*
 * One that is held up in the poll that is to answer has its stack read instead: then it is
 * requested again, unless that poll has ended the task.
 */
static void ask(struct tdt_handle *handle)
{
	struct tdt_trace *trace;
	bool running;

	do {
		trace = backtrace_timed(handle, INT64_C(30000000000));
		MUST(trace != NULL || errno == ESRCH);
		running = trace != NULL && tdt_trace_info(trace)->state == TDT_TASK_RUNNING;
		tdt_trace_free(trace);
	} while (running);
}

static size_t suspicions(void)
{
	const struct tdt_registry_lost *lost = (void *)(uintptr_t)registry->lost;
	size_t n = 0;

	for (uint32_t i = 0; i < registry->n_lost; i++)
		n += __atomic_load_n(&lost[i].number, __ATOMIC_RELAXED) != 0;
	return n;
}

/* How long ago that was, on CLOCK_MONOTONIC. */
static uint64_t ns_since(uint64_t when)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - when;
}

#define SECOND UINT64_C(1000000000) /* after which a suspicion can no longer be taken back */

/* A wake-up that came just now has taken the suspicion back, unless it was too late for that. */
static void expect_taken_back(void)
{
	const struct tdt_registry_lost *lost = (void *)(uintptr_t)registry->lost;

	for (uint32_t i = 0; i < registry->n_lost; i++)
		if (__atomic_load_n(&lost[i].number, __ATOMIC_RELAXED) != 0)
			ck_assert_uint_ge(ns_since(lost[i].when), SECOND);
}

static uint64_t counted_lost(void)
{
	struct tdt_counts counts = { .size = sizeof counts };

	MUST(tdt_counters(&counts) == 0);
	return counts.lost_wakeups;
}

static const struct tdt_snapshot *snapshot_now(void)
{
	const struct tdt_snapshot *snapshot = tdt_snapshot_take(NULL);

	MUST(snapshot != NULL);
	return snapshot;
}

CASE(lost, .setup = set_up_lost, .timeout = 60)

TEST(a_lost_wake_up_is_found_by_the_request_that_heals_it)
{
	struct event *first = CHANNEL, *second = CHANNEL;
	struct tdt_handle *handle = spawn_waiting(CONSUME(first, second), first);
	const struct tdt_task_info *info;

	comes(first);
	ask(handle);
	while (counted_lost() == 0)
		usleep(10000);
	SNAPSHOT(snapshot, snapshot_now());
	ck_assert_uint_eq(snapshot->n_lost_wakeups, 1);
	info = snapshot->lost_wakeups[0]->tasks[0];
	ck_assert_uint_eq(info->id, tdt_handle_id(handle));
	ck_assert_str_eq(info->name, "consumer");
	ck_assert_uint_eq(info->n_waits, 1);
	ck_assert_int_eq(info->waits[0]->kind, TDT_WAIT_CHANNEL);
	ck_assert_uint_eq(info->waits[0]->object, (uintptr_t)first);
	ck_assert_str_eq(info->waits[0]->name, "jobs");
	ck_assert_uint_eq(info->lost_times, 1);
	ck_assert_uint_eq(counted_lost(), 1);
}

/* Otherwise each such wait would seem to have lasted since the first one. */
TEST(a_task_that_then_waits_for_the_same_has_moved)
{
	struct event *event = CHANNEL;
	struct tdt_handle *handle = spawn_waiting(CONSUME(event, event), event);

	comes(event);
	TRACE(trace, backtrace_timed(handle, INT64_C(30000000000)));
	if (tdt_trace_info(trace)->state != TDT_TASK_RUNNING) /* the poll was not held up */
		ck_assert_uint_eq(tdt_trace_info(trace)->moved, 1);
}

TEST(it_counts_only_when_it_can_no_longer_be_taken_back)
{
	struct event *event = CHANNEL;
	struct tdt_handle *handle = spawn_waiting(CONSUME(event), event);
	const struct tdt_registry_lost *lost = (void *)(uintptr_t)registry->lost;
	uint64_t counted;

	comes(event);
	ask(handle);
	ck_assert_uint_eq(suspicions(), 1);
	counted = counted_lost();
	SNAPSHOT(snapshot, snapshot_now());
	ck_assert_uint_eq(snapshot->n_lost_wakeups + snapshot->n_unsure_lost, 1);
	ck_assert(counted == 0 || snapshot->n_unsure_lost == 0);
	if (ns_since(lost[0].when) < SECOND)
		ck_assert_uint_eq(counted, 0);
}

/* What readers outside see. */
static uint64_t counters_lost(void)
{
	const struct tdt_registry_counters *one = (void *)(uintptr_t)registry->counters;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < registry->n_counters; i++)
		sum += __atomic_load_n(&one[i].lost, __ATOMIC_RELAXED);
	return sum;
}

/* As if a thread were noting it at the fork, and had not counted it. */
static void uncount_suspicion(void)
{
	struct tdt_registry_counters *one = (void *)(uintptr_t)registry->counters;
	struct tdt_registry_lost *lost = (void *)(uintptr_t)registry->lost;
	uint32_t i = 0;

	while (one[i].lost == 0)
		i++;
	one[i].lost = 0;
	for (i = 0; i < registry->n_lost; i++)
		lost[i].number = 0;
}

/* 1: a suspicion that was being noted */
TEST(a_child_of_fork_has_none_that_may_be_taken_back, .to = 2)
{
	struct event *event = CHANNEL;
	struct tdt_handle *handle = spawn_waiting(CONSUME(event), event);

	comes(event);
	ask(handle);
	ck_assert_uint_eq(counters_lost(), 1);
	if (_i == 1)
		uncount_suspicion();
	IN_A_CHILD
		MUST(counters_lost() == 0 && suspicions() == 0);
}

static struct tdt_future never(void)
{
	return (struct tdt_future){ NULL, stay_pending, drop_nothing };
}

/* 0: it is not known; 1: it is; 2: the tasks have hardly waited. */
TEST(what_happens_again_at_a_known_place_is_certain, .to = 3)
{
	struct tdt_handle *handle[2];
	struct event *event[2];
	bool waited_long = true;

	if (_i != 0)
		ck_assert_int_eq(tdt_watch(1000000, NULL), 0);
	for (int i = 0; i < 2; i++) {
		event[i] = CHANNEL;
		handle[i] = spawn_waiting(CONSUME(event[i]), event[i]);
		comes(event[i]);
	}
	usleep(_i < 2 ? 1100000 : 0);
	for (int i = 0; i < 2; i++)
		ask(handle[i]);
	while (counted_lost() < 2)
		usleep(10000);
	SNAPSHOT(snapshot, snapshot_now());
	ck_assert_uint_eq(snapshot->n_lost_wakeups, 2);
	for (int i = 0; i < 2; i++)
		waited_long &= snapshot->lost_wakeups[i]->tasks[0]->state_ns >= SECOND;
	ck_assert(_i == 2 || waited_long);
	for (int i = 0; i < 2; i++) {
		const struct tdt_snapshot_group *of = snapshot->lost_wakeups[i];

		ck_assert_uint_eq(of->tasks[0]->lost_times, _i != 0 && waited_long ? 2 : 1);
		ck_assert_int_eq(tdt_node_first_child(tdt_trace_root(of->trace)) != NULL, _i != 0);
	}
}

/* Sixteen at a time can be told. */
TEST(each_of_many_is_found)
{
	int batches = test_in_full() ? 6 : 1;

	for (int batch = 0; batch < batches; batch++) {
		struct event *event[15];
		struct tdt_handle *handle[15];

		for (int i = 0; i < 15; i++) {
			event[i] = CHANNEL;
			handle[i] = spawn_waiting(CONSUME(event[i]), event[i]);
			if (i % 2 == 0)
				comes(event[i]);
			else
				tdt_waker_drop(comes(event[i]));
			ask(handle[i]);
		}
		while (counted_lost() < 15 * (uint64_t)(batch + 1))
			usleep(10000);
		ck_assert_uint_eq(counted_lost(), 15 * (uint64_t)(batch + 1));
	}
}

TEST(later_wake_ups_of_the_task_take_nothing_back)
{
	struct event *first = CHANNEL, *second = CHANNEL, *third = CHANNEL, *fourth = CHANNEL;
	struct tdt_handle *handle = spawn_waiting(CONSUME(first, second, third, fourth), first);

	comes(first);
	ask(handle);
	waits_for(handle, second);
	tdt_waker_wake(comes(second)); /* registered in the poll of the request, */
	waits_for(handle, third);
	tdt_waker_wake(comes(third)); /* and in the one after */
	waits_for(handle, fourth);
	ck_assert_uint_eq(suspicions(), 1);
	while (counted_lost() == 0)
		usleep(10000);
	/* After that the task is polled as any other. */
	tdt_waker_wake(comes(fourth));
	while (tdt_task_inspect(handle, state_of_info, NULL) == TDT_TASK_WAITING)
		sched_yield();
	ck_assert_uint_eq(counted_lost(), 1);
}

CASE(healthy, .setup = set_up_lost, .timeout = 120)

/* The task waits for something else by then, or has ended. */
TEST(a_wake_up_that_was_on_its_way_takes_it_back, .to = 2)
{
	struct event *first = CHANNEL, *second = CHANNEL;
	struct tdt_handle *handle =
		spawn_waiting(_i == 0 ? CONSUME(first, second) : CONSUME(first), first);
	const struct tdt_waker *on_its_way = comes(first);

	ask(handle);
	ck_assert_uint_eq(suspicions(), 1);
	tdt_waker_wake(on_its_way);
	expect_taken_back();
}

/* The last wakers are newer ones, and the one that was on its way comes after them. */
TEST(also_behind_later_wake_ups)
{
	struct event *first = CHANNEL, *second = CHANNEL, *third = CHANNEL;
	struct tdt_handle *handle = spawn_waiting(CONSUME(first, second, third), first);
	const struct tdt_waker *on_its_way = comes(first);

	ask(handle);
	waits_for(handle, second);
	tdt_waker_wake(comes(second));
	waits_for(handle, third);
	ck_assert_uint_eq(suspicions(), 1);
	tdt_waker_wake(on_its_way);
	expect_taken_back();
}

/* Whoever has brought the event takes the waker only now: by then it is that of the next wait. */
TEST(so_does_the_waker_of_a_later_wait_for_the_same, .to = 2)
{
	struct event *first = CHANNEL, *second = CHANNEL;
	struct tdt_handle *handle = spawn_waiting(
	    _i == 0 ? CONSUME(first, first) : CONSUME(first, second, first), first);

	tdt_waker_drop(comes(first));
	ask(handle);
	ck_assert_uint_eq(suspicions(), 1);
	if (_i == 1) {
		waits_for(handle, second);
		tdt_waker_wake(comes(second));
		ck_assert_uint_eq(suspicions(), 1);
	}
	waits_for(handle, first);
	tdt_waker_wake(comes(first));
	expect_taken_back();
}

/* The waker is one of the very poll that went on. */
TEST(so_does_one_of_a_leaf_that_registers_before_it_looks)
{
	struct event *first = EVENT(.kind = TDT_WAIT_CHANNEL, .registers_first = true);
	struct event *second = CHANNEL;
	struct tdt_handle *handle = spawn_waiting(CONSUME(first, second), first);

	tdt_waker_drop(comes(first));
	ask(handle);
	ck_assert_uint_eq(suspicions(), 1);
	ck_assert(is_awaited(first));
	tdt_waker_wake(comes(first));
	expect_taken_back();
}

TEST(a_request_that_finds_nothing_new_suspects_nothing)
{
	struct event *event = CHANNEL;
	struct tdt_handle *handle = spawn_waiting(CONSUME(event), event);

	ask(handle);
	ask(handle);
	ck_assert_uint_eq(suspicions(), 0);
}

TEST(what_can_be_seen_before_it_wakes_is_not_suspected, .to = 4)
{
	static const enum tdt_wait_kind kinds[] = { TDT_WAIT_IO, TDT_WAIT_TIMER, TDT_WAIT_OTHER,
						    TDT_WAIT_UNKNOWN };
	struct event *event = EVENT(.kind = kinds[_i]);
	struct tdt_handle *handle = spawn_waiting(CONSUME(event), event);

	comes(event);
	ask(handle);
	ck_assert_uint_eq(suspicions(), 0);
}

/* Two leaves of which the first one to be ready ends the future. */
struct either {
	struct tdt_future of[2];
};

static tdt_poll_t either_poll(void *state, struct tdt_context *cx)
{
	struct either *either = state;

	for (int i = 0; i < 2; i++)
		if (tdt_future_poll(&either->of[i], cx) == TDT_READY)
			return TDT_READY;
	return TDT_PENDING;
}

static struct tdt_future either_of(struct either *either, struct event *a, struct event *b)
{
	either->of[0] = event_future(a);
	either->of[1] = event_future(b);
	return (struct tdt_future){ either, either_poll, drop_nothing };
}

TEST(nor_is_a_task_that_waits_for_such_a_thing_besides, .to = 4)
{
	struct event *timer = EVENT(.kind = TDT_WAIT_TIMER), *channel = CHANNEL;
	static struct either either; /* outlives the test, as events do */
	struct tdt_future future = _i / 2 == 0 ? either_of(&either, timer, channel)
					       : either_of(&either, channel, timer);
	struct tdt_handle *handle = spawn_one(future);

	waits_for(handle, timer);
	waits_for(handle, channel);
	comes(_i % 2 == 0 ? timer : channel);
	ask(handle);
	ck_assert_uint_eq(suspicions(), 0);
}

TEST(two_waits_that_end_by_a_wake_up_are_suspected)
{
	struct event *a = CHANNEL, *b = EVENT(.kind = TDT_WAIT_TASK);
	static struct either either;
	struct tdt_handle *handle = spawn_one(either_of(&either, a, b));

	waits_for(handle, a);
	waits_for(handle, b);
	comes(a);
	ask(handle);
	ck_assert_uint_eq(suspicions(), 1);
}

/* Its tree tells that there is another one. */
TEST(nor_is_a_watched_task_with_a_silent_leaf)
{
	struct event *silent = EVENT(.kind = TDT_WAIT_UNKNOWN), *channel = CHANNEL;
	static struct either either;
	struct tdt_handle *handle;

	ck_assert_int_eq(tdt_watch(1000000, NULL), 0);
	handle = spawn_one(either_of(&either, silent, channel));
	waits_for(handle, silent);
	waits_for(handle, channel);
	comes(silent);
	ask(handle);
	ck_assert_uint_eq(suspicions(), 0);
}

/* A hand-written future that wakes another task in each poll. */
static struct event *pinged;

static tdt_poll_t ping_poll(void *state, struct tdt_context *cx)
{
	tdt_waker_wake(comes(pinged));
	return event_poll(state, cx);
}

static tdt_poll_t ponged_poll(void *state, struct tdt_context *cx)
{
	event_poll(state, cx);
	return event_poll(state, cx);
}

TEST(a_poll_that_wakes_others_has_not_gone_on_by_that)
{
	struct event *event = CHANNEL;
	struct tdt_handle *handle, *other;

	pinged = CHANNEL;
	other = spawn_waiting((struct tdt_future){ pinged, ponged_poll, drop_nothing }, pinged);
	handle = spawn_waiting((struct tdt_future){ event, ping_poll, drop_nothing }, event);
	waits_for(other, pinged);
	ask(handle);
	waits_for(other, pinged);
	ck_assert_uint_eq(suspicions(), 0);
}

/* An async function that is made anew in each poll awaits what is ready at once. */
static tdt_poll_t anew_poll(void *state, struct tdt_context *cx)
{
	struct event *ready = CHANNEL;
	struct tdt_future future = CONSUME(ready);

	ready->is_set = true;
	MUST(tdt_future_poll(&future, cx) == TDT_READY);
	tdt_future_drop(&future);
	return event_poll(state, cx);
}

TEST(nor_by_an_await_that_has_never_waited)
{
	struct event *event = CHANNEL;
	struct tdt_handle *handle =
		spawn_waiting((struct tdt_future){ event, anew_poll, drop_nothing }, event);

	ask(handle);
	ck_assert_uint_eq(suspicions(), 0);
}

/* --- Runtimes that do not promise ----------------------------------------------------- */

static struct tdt_traced blocked;

/* As a runtime does that reports nothing. */
static void *run_it(void *bell)
{
	struct tdt_context cx = { &((struct bell *)bell)->waker };

	while (tdt_future_poll(&blocked.future, &cx) == TDT_PENDING)
		bell_wait(bell);
	tdt_future_drop(&blocked.future);
	return NULL;
}

TEST(nothing_is_said_where_wake_ups_need_not_be_reported)
{
	struct event *event = CHANNEL;
	struct bell *bell = bell_new();
	pthread_t thread;

	blocked = tdt_traced_with(CONSUME(event), NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, run_it, bell), 0);
	waits_for(blocked.handle, event);
	comes(event);
	ask(blocked.handle);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(suspicions(), 0);
	tdt_waker_drop(&bell->waker);
}

/* The runtime knows only the outer one, and reports no wake-up of the inner one. */
TEST(nor_of_a_traced_future_inside_another_one)
{
	static struct either either;
	struct event *event = CHANNEL;
	struct tdt_traced inner = tdt_traced_with(CONSUME(event), NULL);

	either = (struct either){ { inner.future, never() } };
	spawn_one((struct tdt_future){ &either, either_poll, drop_nothing });
	waits_for(inner.handle, event);
	comes(event);
	ask(inner.handle);
	ck_assert_uint_eq(suspicions(), 0);
}

/* --- Under load ---------------------------------------------------------------------- */

#define PAIRS 8

/* A healthy consumer: each event wakes it, some time after it has come. */
struct healthy {
	struct tdt_async async;
	struct event event[2];
	struct tdt_mutex *mutex;
	int turn;
};

static struct healthy healthy[PAIRS];
static struct tdt_handle *consumers[PAIRS];
static atomic_bool over;
static struct tdt_mutex *shared;
static atomic_uint late; /* so many wake-ups came a second after what they are for */

static void note_late(uint64_t since)
{
	if (ns_since(since) >= SECOND)
		atomic_fetch_add(&late, 1);
}

static void unlock_shared(void)
{
	uint64_t began = ns_since(0);

	tdt_mutex_unlock(shared);
	note_late(began);
}

static tdt_poll_t healthy_poll(void *state, struct tdt_context *cx)
{
	struct healthy *mine = *(struct healthy **)((struct tdt_async *)state + 1);
	struct tdt_async *async = state;

	TDT_BEGIN(async, cx);
	for (;;) {
		TDT_AWAIT(event_future(&mine->event[mine->turn]));
		mine->turn ^= 1;
		TDT_AWAIT(tdt_mutex_lock(shared));
		unlock_shared();
	}
	TDT_END();
}

struct healthy_state {
	struct tdt_async async;
	struct healthy *mine;
};

static void *produce(void *arg)
{
	unsigned seed = *(const unsigned *)arg;

	while (!atomic_load(&over)) {
		struct healthy *to = &healthy[random_below(&seed, PAIRS)];
		uint64_t began = ns_since(0);
		const struct tdt_waker *waker = comes(&to->event[random_below(&seed, 2)]);

		if (random_below(&seed, 4) == 0)
			usleep(random_below(&seed, 300));
		else
			sched_yield();
		tdt_waker_wake(waker);
		note_late(began);
	}
	return NULL;
}

TEST(ten_thousand_looks_at_healthy_tasks_blame_none)
{
	unsigned seed = seed_of_program(), seeds[2] = { seed, seed + 1 };
	unsigned looks = test_in_full() ? 10000 : times_here(500);
	pthread_t producers[2];

	shared = tdt_mutex_new();
	ck_assert_int_eq(tdt_watch(1000000, NULL), 0);
	for (int i = 0; i < PAIRS; i++) {
		for (int k = 0; k < 2; k++)
			healthy[i].event[k] = *EVENT(.kind = TDT_WAIT_CHANNEL,
						     .registers_first = k == 1);
		consumers[i] = spawn_one(TDT_ASYNC_NEW(
		    healthy_poll, (struct healthy_state){ .mine = &healthy[i] }));
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&producers[i], NULL, produce, &seeds[i]), 0);
	for (unsigned i = 0; i < looks; i++)
		tdt_trace_free(tdt_backtrace(consumers[random_below(&seed, PAIRS)]));
	atomic_store(&over, true);
	threads_join(producers, 2);
	usleep(1100000);
	ck_assert_uint_le(counted_lost(), late);
	ck_assert_uint_le(suspicions(), late);
}
