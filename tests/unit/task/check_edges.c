// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/hooks.  What the futures of ours report that they wait for; and which task woke a
 * task, and which task spawned it.
 */

#include <netinet/in.h>
#include <sys/socket.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>

#include "lib/poll_now.h"
#include "lib/request_waiting.h"
#include "lib/test.h"

/* What is known of a task, by its trace or its record. */
struct known {
	struct tdt_task_info info;
	struct tdt_wait waits[4];
};

static void keep(struct known *known, const struct tdt_task_info *info)
{
	known->info = *info;
	ck_assert_uint_le(info->n_waits, 4);
	for (uint32_t i = 0; i < info->n_waits; i++)
		known->waits[i] = *info->waits[i];
}

static int keep_record(struct tdt_handle *handle, const struct tdt_task_info *info, void *known)
{
	keep(known, info);
	return 0;
}

/* As its record has it. */
static struct known inspect(struct tdt_handle *handle)
{
	struct known known;

	ck_assert_int_eq(tdt_task_inspect(handle, keep_record, &known), 0);
	return known;
}

/* Ask it, and see that its record has the first of its waits. */
static struct known ask(struct tdt_handle *handle)
{
	TRACE(trace, request_waiting(handle));
	struct known known, record;

	keep(&known, tdt_trace_info(trace));
	/* A poll that was requested in vain may be still to come. */
	while (record = inspect(handle), record.info.state == TDT_TASK_RUNNING)
		usleep(1000);
	ck_assert_uint_eq(record.info.n_waits, known.info.n_waits != 0);
	if (record.info.n_waits != 0) {
		ck_assert_uint_eq(record.waits[0].kind, known.waits[0].kind);
		ck_assert_uint_eq(record.waits[0].object, known.waits[0].object);
		ck_assert_uint_eq(record.waits[0].owner, known.waits[0].owner);
	}
	return known;
}

/* A task has just one leaf, which waits for this. */
static void expect_waits_for(struct tdt_handle *handle, enum tdt_wait_kind kind, const void *object,
			     uint64_t owner)
{
	struct known known = ask(handle);

	ck_assert_uint_eq(known.info.leaves, 1);
	ck_assert_uint_eq(known.info.n_waits, 1);
	ck_assert_uint_eq(known.waits[0].kind, kind);
	ck_assert_uint_eq(known.waits[0].object, (uintptr_t)object);
	ck_assert_uint_eq(known.waits[0].owner, owner);
}

/* --- Tasks on the thread of the test -------------------------------------------------------- */

static struct tdt_mutex *mutex;
static struct poll_now first, second, third;

static void mutex_setup(void)
{
	mutex = tdt_mutex_new();
	ck_assert_ptr_nonnull(mutex);
}

static uint64_t id_of(const struct poll_now *task)
{
	return tdt_handle_id(task->traced.handle);
}

/* Holds the mutex for good. */
struct holding {
	struct tdt_async async;
};

static tdt_poll_t hold(void *state, struct tdt_context *cx)
{
	struct holding *holding = state;

	TDT_BEGIN(&holding->async, cx);
	TDT_AWAIT(tdt_mutex_lock(mutex));
	TDT_AWAIT(future_of(stay_pending, NULL));
	TDT_END();
}

static struct tdt_future holder(void)
{
	return TDT_ASYNC_NEW(hold, (struct holding){ 0 });
}

static tdt_poll_t try(void *state, struct tdt_context *cx)
{
	return tdt_mutex_try_lock(mutex) ? TDT_PENDING : TDT_PANICKED;
}

static void mutex_teardown(void)
{
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	tdt_mutex_free(mutex);
}

CASE(mutex, .setup = mutex_setup, .teardown = mutex_teardown)

TEST(a_mutex_is_awaited_from_the_task_that_took_it, .to = 2)
{
	/* 0: by waiting, 1: by trying */
	poll_now_start(&first, _i == 0 ? holder() : future_of(try, NULL));
	poll_now_start(&second, holder());
	expect_waits_for(second.traced.handle, TDT_WAIT_MUTEX, mutex, id_of(&first));
	poll_now_end(&second);
	poll_now_end(&first);
}

TEST(a_mutex_that_no_task_took_has_no_owner)
{
	poll_now_start(&first, holder());
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	ck_assert(tdt_mutex_try_lock(mutex));
	poll_now_start(&second, holder());
	expect_waits_for(second.traced.handle, TDT_WAIT_MUTEX, mutex, 0);
	poll_now_end(&second);
	poll_now_end(&first);
}

TEST(trying_in_vain_makes_no_owner)
{
	poll_now_start(&first, holder());
	poll_now_start(&third, future_of(try, NULL));
	poll_now_start(&second, holder());
	expect_waits_for(second.traced.handle, TDT_WAIT_MUTEX, mutex, id_of(&first));
	poll_now_end(&second);
	poll_now_end(&third);
	poll_now_end(&first);
}

TEST(a_mutex_that_is_handed_over_has_its_new_owner, .to = 2)
{
	/* 0: the next has had no poll since, 1: it has */
	poll_now_start(&first, holder());
	poll_now_start(&second, holder());
	poll_now_start(&third, holder());
	expect_waits_for(third.traced.handle, TDT_WAIT_MUTEX, mutex, id_of(&first));
	second.held = _i == 0;
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	expect_waits_for(third.traced.handle, TDT_WAIT_MUTEX, mutex, id_of(&second));
	second.held = false;
	poll_now_end(&second);
	if (_i == 1)
		ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	ck_assert(!tdt_mutex_try_lock(mutex)); /* the third has it */
	poll_now_end(&third);
	poll_now_end(&first);
}

CASE(others)

TEST(a_value_is_awaited_from_its_channel)
{
	struct tdt_oneshot_sender *sender[2];
	struct tdt_oneshot_receiver *receiver[2];
	void *value[2];

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(tdt_oneshot(&sender[i], &receiver[i], NULL), 0);
	poll_now_start(&first, tdt_oneshot_receive(receiver[0], &value[0], NULL));
	poll_now_start(&second, tdt_oneshot_receive(receiver[1], &value[1], NULL));
	expect_waits_for(first.traced.handle, TDT_WAIT_CHANNEL, sender[0], 0);
	expect_waits_for(second.traced.handle, TDT_WAIT_CHANNEL, sender[1], 0);
	for (int i = 0; i < 2; i++)
		tdt_oneshot_sender_free(sender[i]);
	ck_assert_uint_eq(inspect(first.traced.handle).info.n_waits, 0); /* it has ended */
	poll_now_end(&first);
	poll_now_end(&second);
	for (int i = 0; i < 2; i++)
		tdt_oneshot_receiver_free(receiver[i]);
}

TEST(the_end_of_a_task_is_awaited_from_that)
{
	poll_now_start(&first, future_of(stay_pending, NULL));
	poll_now_start(&second, tdt_join(first.traced.handle, NULL));
	expect_waits_for(second.traced.handle, TDT_WAIT_TASK, first.traced.handle, id_of(&first));
	poll_now_end(&second);
	poll_now_end(&first);
}

CASE(mutex)

/* The first is held, so that it does not answer. */
TEST(a_trace_is_awaited_from_its_task)
{
	struct tdt_trace *trace;

	ck_assert(tdt_mutex_try_lock(mutex));
	poll_now_start(&first, holder());
	first.held = true;
	poll_now_start(&second, tdt_backtrace_async(first.traced.handle, NULL, &trace, NULL));
	expect_waits_for(second.traced.handle, TDT_WAIT_TASK, first.traced.handle, id_of(&first));
	poll_now_end(&second);
	poll_now_end(&first);
}

/* Lets others go first, over and over. */
static tdt_poll_t yielding(void *state, struct tdt_context *cx)
{
	struct tdt_future yield = tdt_yield_now();
	tdt_poll_t result = tdt_future_poll(&yield, cx);

	tdt_future_drop(&yield);
	return result;
}

CASE(others)

TEST(who_lets_others_go_first_waits_for_nothing)
{
	struct known known;

	poll_now_start(&first, future_of(yielding, NULL));
	known = ask(first.traced.handle);
	ck_assert_uint_eq(known.info.leaves, 1);
	ck_assert_uint_eq(known.info.n_waits, 0);
	poll_now_end(&first);
}

CASE(mutex)

/* In the order in which they report; but the lock comes first, in the trace as in the record. */
TEST(several_leaves_wait_for_one_thing_each, .to = 4)
{
	/* 0: for all of them, 1: for one; 2 and 3: the same, and the lock is reported last */
	struct tdt_future both[2];
	struct known known;

	ck_assert(tdt_mutex_try_lock(mutex));
	poll_now_start(&first, future_of(stay_pending, NULL));
	both[_i / 2] = tdt_mutex_lock(mutex);
	both[!(_i / 2)] = tdt_join(first.traced.handle, NULL);
	poll_now_start(&second, _i % 2 == 0 ? tdt_join_all(both, 2) : tdt_select(both, 2, NULL));
	for (int i = 0; i < 2; i++) { /* each poll tells anew */
		known = ask(second.traced.handle);
		ck_assert_uint_eq(known.info.leaves, 2);
		ck_assert_uint_eq(known.info.n_waits, 2);
		ck_assert_uint_eq(known.waits[0].kind, TDT_WAIT_MUTEX);
		ck_assert_uint_eq(known.waits[0].object, (uintptr_t)mutex);
		ck_assert_uint_eq(known.waits[1].kind, TDT_WAIT_TASK);
		ck_assert_uint_eq(known.waits[1].owner, id_of(&first));
	}
	poll_now_end(&second);
	poll_now_end(&first);
}

/* --- Tasks of the runtime ------------------------------------------------------------------- */

static struct tdt_rt *rt;

static void rt_setup(void)
{
	rt = tdt_rt_new(NULL);
	ck_assert_ptr_nonnull(rt);
}

CASE(runtime, .setup = rt_setup)

TEST(a_time_is_awaited_from_a_timer)
{
	struct known known;

	HANDLE(task, tdt_rt_spawn(rt, tdt_sleep_ms(UINT64_MAX), NULL));
	known = ask(task);
	ck_assert_uint_ne(known.waits[0].object, 0);
	expect_waits_for(task, TDT_WAIT_TIMER, (void *)(uintptr_t)known.waits[0].object, 0);
	tdt_rt_free(rt);
}

CASE(mutex)

TEST(a_limit_of_time_is_awaited_beside_what_it_limits)
{
	struct tdt_handle *task;
	struct known known;

	rt_setup();
	ck_assert(tdt_mutex_try_lock(mutex));
	task = tdt_rt_spawn(rt, tdt_timeout_ms(tdt_mutex_lock(mutex), UINT64_MAX, NULL), NULL);
	known = ask(task);
	ck_assert_uint_eq(known.info.leaves, 2);
	ck_assert_uint_eq(known.info.n_waits, 2);
	ck_assert_uint_eq(known.waits[0].kind, TDT_WAIT_MUTEX);
	ck_assert_uint_eq(known.waits[1].kind, TDT_WAIT_TIMER);
	tdt_handle_unref(task);
	tdt_rt_free(rt);
}

static in_port_t port_of(int descriptor)
{
	struct sockaddr_in address;

	ck_assert_int_eq(
	    getsockname(descriptor, (struct sockaddr *)&address, &(socklen_t){ sizeof address }),
	    0);
	return ntohs(address.sin_port);
}

CASE(runtime)

TEST(a_socket_is_awaited_by_its_descriptor)
{
	struct tdt_tcp_listener *listener = tdt_tcp_listen("127.0.0.1", 0);
	struct tdt_handle *task;
	struct tdt_tcp *tcp;
	struct known known;
	int error;

	ck_assert_ptr_nonnull(listener);
	task = tdt_rt_spawn(rt, tdt_tcp_accept(listener, &tcp, &error), NULL);
	known = ask(task);
	ck_assert_uint_eq(port_of((int)known.waits[0].object), tdt_tcp_listener_port(listener));
	expect_waits_for(task, TDT_WAIT_IO, (void *)(uintptr_t)known.waits[0].object, 0);
	tdt_handle_unref(task);
	tdt_rt_free(rt);
	tdt_tcp_listener_free(listener);
}

/*
 * Without a request: it may be on its way when the task is woken, and hide that wake-up.
 */
static void wait_for(struct tdt_handle *task, enum tdt_wait_kind kind)
{
	struct known known;

	while (known = inspect(task), known.info.n_waits != 1 || known.waits[0].kind != kind)
		usleep(1000);
}

/* Two tasks that each hold a mutex and want the other's. */
struct crossing {
	struct tdt_async async;
	struct tdt_mutex *own, *others;
	atomic_int *holding;
};

static tdt_poll_t cross(void *state, struct tdt_context *cx)
{
	struct crossing *crossing = state;

	TDT_BEGIN(&crossing->async, cx);
	TDT_AWAIT(tdt_mutex_lock(crossing->own));
	atomic_fetch_add(crossing->holding, 1);
	while (atomic_load(crossing->holding) < 2)
		TDT_AWAIT(tdt_yield_now());
	TDT_AWAIT(tdt_mutex_lock(crossing->others));
	TDT_END();
}

TEST(tasks_that_wait_for_each_other_say_so)
{
	struct tdt_mutex *two[] = { tdt_mutex_new(), tdt_mutex_new() };
	struct tdt_handle *task[2];
	atomic_int holding = 0;

	for (int i = 0; i < 2; i++)
		task[i] =
		    tdt_rt_spawn(rt,
				 TDT_ASYNC_NEW(cross, (struct crossing){ .own = two[i],
									 .others = two[!i],
									 .holding = &holding }),
				 NULL);
	for (int i = 0; i < 2; i++)
		wait_for(task[i], TDT_WAIT_MUTEX);
	for (int i = 0; i < 2; i++)
		expect_waits_for(task[i], TDT_WAIT_MUTEX, two[!i], tdt_handle_id(task[!i]));
	for (int i = 0; i < 2; i++)
		tdt_handle_unref(task[i]);
	tdt_rt_free(rt);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(tdt_mutex_unlock(two[i]), 0);
		tdt_mutex_free(two[i]);
	}
}

/* --- The waker of a task ---------------------------------------------------------------------- */

struct receiving {
	struct tdt_async async;
	struct tdt_oneshot_receiver *receiver;
	void *value;
};

static tdt_poll_t receive_and_stay(void *state, struct tdt_context *cx)
{
	struct receiving *receiving = state;

	TDT_BEGIN(&receiving->async, cx);
	TDT_AWAIT(tdt_oneshot_receive(receiving->receiver, &receiving->value, NULL));
	TDT_AWAIT(tdt_sleep_ms(UINT64_MAX));
	TDT_END();
}

static tdt_poll_t send_and_stay(void *state, struct tdt_context *cx)
{
	struct tdt_oneshot_sender **sender = state;

	if (*sender != NULL)
		tdt_oneshot_send(*sender, NULL);
	*sender = NULL;
	return TDT_PENDING;
}

TEST(who_sends_a_value_wakes_its_receiver, .to = 2)
{
	/* 0: a task, 1: a thread that is no task */
	struct tdt_oneshot_sender *sender;
	struct receiving receiving = { .value = NULL };
	struct tdt_handle *receiver, *from = NULL;
	struct known known;

	ck_assert_int_eq(tdt_oneshot(&sender, &receiving.receiver, NULL), 0);
	receiver = tdt_rt_spawn(rt, TDT_ASYNC_NEW(receive_and_stay, receiving), NULL);
	wait_for(receiver, TDT_WAIT_CHANNEL);
	expect_waits_for(receiver, TDT_WAIT_CHANNEL, sender, 0);
	ck_assert_uint_eq(inspect(receiver).info.woken_ns, 0); /* a request does not count */
	if (_i == 0)
		from = tdt_rt_spawn(rt, future_of(send_and_stay, &sender), NULL);
	else
		tdt_oneshot_send(sender, NULL);
	wait_for(receiver, TDT_WAIT_TIMER);
	do
		known = ask(receiver);
	while (known.info.woken_ns ==
	       0); /* it was polled in the turn it was woken in, which has one time */
	ck_assert_uint_eq(known.info.woken_by, tdt_handle_id(from));
	ck_assert_uint_eq(inspect(receiver).info.woken_by, tdt_handle_id(from));
	ck_assert_uint_gt(inspect(receiver).info.woken_ns, 0);
	tdt_handle_unref(from);
	tdt_handle_unref(receiver);
	tdt_rt_free(rt);
	tdt_oneshot_receiver_free(receiving.receiver);
}

struct sleeping {
	struct tdt_async async;
};

static tdt_poll_t nap_and_stay(void *state, struct tdt_context *cx)
{
	struct sleeping *sleeping = state;

	TDT_BEGIN(&sleeping->async, cx);
	TDT_AWAIT(tdt_sleep_ms(1));
	TDT_AWAIT(future_of(stay_pending, NULL));
	TDT_END();
}

TEST(a_timer_is_no_task)
{
	HANDLE(task, tdt_rt_spawn(rt, TDT_ASYNC_NEW(nap_and_stay, (struct sleeping){ 0 }), NULL));
	while (inspect(task).info.woken_ns == 0)
		usleep(1000);
	ck_assert_uint_eq(inspect(task).info.woken_by, 0);
	tdt_rt_free(rt);
}

/* --- The spawner of a task -------------------------------------------------------------------- */

struct spawning {
	struct tdt_handle *child;
};

static tdt_poll_t spawn_and_stay(void *state, struct tdt_context *cx)
{
	struct spawning *spawning = state;

	if (spawning->child == NULL)
		spawning->child =
		    tdt_rt_spawn(tdt_rt_current(), future_of(stay_pending, NULL), NULL);
	return TDT_PENDING;
}

static int keep_of_id(struct tdt_handle *handle, const struct tdt_task_info *info, void *known)
{
	if (info->id == ((struct known *)known)->info.id)
		keep(known, info);
	return 0;
}

TEST(a_task_knows_who_spawned_it)
{
	struct spawning spawning = { NULL };
	struct known child = { .info.id = 0 };

	HANDLE(parent, tdt_rt_spawn(rt, future_of(spawn_and_stay, &spawning), NULL));
	ck_assert_uint_eq(ask(parent).info.parent, 0);
	ck_assert_uint_eq(ask(spawning.child).info.parent, tdt_handle_id(parent));
	child.info.id = tdt_handle_id(spawning.child);
	ck_assert_int_eq(tdt_tasks(NULL, keep_of_id, &child), 0);
	ck_assert_uint_eq(child.info.parent, tdt_handle_id(parent));
	tdt_handle_unref(spawning.child);
	tdt_rt_free(rt);
}
