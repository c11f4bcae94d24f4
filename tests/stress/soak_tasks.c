// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What tasks do in the soak: they sleep, lock, send, join, race, block their thread, spin, panic,
 * and run as coroutines.
 */

#include <config.h>

#include "stress/soak_tasks.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>
#include <tdt/tdt.h>

#include "lib/must.h"
#include "lib/seeded.h"

#define MUTEXES 8

static struct tdt_rt *rt;
static atomic_uint seed;
static atomic_bool stopping;
static atomic_ulong spawned, ended, sent, received, taken, interrupted;
static struct tdt_mutex *mutexes[MUTEXES];
static unsigned long locked[MUTEXES]; /* each under its mutex */

struct soak_counts soak_counts(void)
{
	struct soak_counts counts = { .spawned = spawned,
				      .ended = ended,
				      .sent = sent,
				      .received = received,
				      .taken = taken,
				      .interrupted = interrupted };

	for (int i = 0; i < MUTEXES; i++)
		counts.locked += locked[i];
	return counts;
}

unsigned long soak_ended(void)
{
	return ended;
}

/* Several threads choose: which of them gets which number is not in the seed's hands. */
static unsigned choose(unsigned n)
{
	unsigned state = atomic_fetch_add_explicit(&seed, 0x9e3779b9u, memory_order_relaxed);

	random_below(&state, n);
	return random_below(&state, n);
}

/* What every task's state begins with. */
struct soak {
	struct tdt_async async;
	unsigned n;
};

static void count_end(void *state)
{
	(void)state;
	atomic_fetch_add(&ended, 1);
}

static struct tdt_handle *spawn(struct tdt_future future, const char *name)
{
	struct tdt_handle *handle;

	MUST(!tdt_future_is_none(&future));
	atomic_fetch_add(&spawned, 1);
	handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = name));
	MUST(handle != NULL);
	return handle;
}

#define SPAWN(poll, name) tdt_handle_unref(spawn(SOAK(poll), name))
#define SOAK(poll) TDT_ASYNC_NEW(poll, (struct soak){ .async.fini = count_end })

/* --- Those that wait ------------------------------------------------------------ */

static tdt_poll_t sleeper_poll(void *state, struct tdt_context *cx)
{
	struct soak *soak = state;

	TDT_BEGIN(&soak->async, cx);
	for (soak->n = choose(5); soak->n > 0; soak->n--)
		TDT_AWAIT(tdt_sleep_ms(choose(30)));
	TDT_END();
}

static tdt_poll_t yielder_poll(void *state, struct tdt_context *cx)
{
	struct soak *soak = state;

	TDT_BEGIN(&soak->async, cx);
	for (soak->n = choose(20); soak->n > 0; soak->n--)
		TDT_AWAIT(tdt_yield_now());
	TDT_END();
}

struct locker {
	struct tdt_async async;
	unsigned first, second; /* in this order, as all do */
	bool has_first, has_second;
};

static void locker_fini(void *state)
{
	struct locker *locker = state;

	if (locker->has_second)
		tdt_mutex_unlock(mutexes[locker->second]);
	if (locker->has_first)
		tdt_mutex_unlock(mutexes[locker->first]);
	count_end(state);
}

static tdt_poll_t locker_poll(void *state, struct tdt_context *cx)
{
	struct locker *locker = state;

	TDT_BEGIN(&locker->async, cx);
	locker->first = choose(MUTEXES);
	locker->second = choose(MUTEXES);
	TDT_AWAIT(tdt_mutex_lock(mutexes[locker->first]));
	locker->has_first = true;
	locked[locker->first]++;
	atomic_fetch_add(&taken, 1);
	if (locker->second > locker->first) {
		TDT_AWAIT(tdt_mutex_lock(mutexes[locker->second]));
		locker->has_second = true;
		locked[locker->second]++;
		atomic_fetch_add(&taken, 1);
	}
	TDT_AWAIT(tdt_sleep_ms(choose(3)));
	TDT_END();
}

struct hurried {
	struct tdt_async async;
	bool elapsed;
};

/* Gives up a lock that is long in coming; what it got it gives back. */
static tdt_poll_t hurried_poll(void *state, struct tdt_context *cx)
{
	struct hurried *hurried = state;

	TDT_BEGIN(&hurried->async, cx);
	TDT_AWAIT(tdt_timeout_ms(tdt_mutex_lock(mutexes[0]), 1 + choose(5), &hurried->elapsed));
	if (!hurried->elapsed)
		MUST(tdt_mutex_unlock(mutexes[0]) == 0);
	TDT_END();
}

struct end {
	struct tdt_async async;
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;
	void *value;
	int error;
};

static void end_fini(void *state)
{
	struct end *end = state;

	tdt_oneshot_sender_free(end->sender);
	tdt_oneshot_receiver_free(end->receiver);
	count_end(state);
}

static tdt_poll_t sender_poll(void *state, struct tdt_context *cx)
{
	struct end *end = state;
	struct tdt_oneshot_sender *sender;

	TDT_BEGIN(&end->async, cx);
	TDT_AWAIT(tdt_sleep_ms(choose(20)));
	sender = end->sender;
	end->sender = NULL;
	atomic_fetch_add(&sent, 1);
	MUST(tdt_oneshot_send(sender, (void *)(uintptr_t)1) == 0);
	TDT_END();
}

static tdt_poll_t receiver_poll(void *state, struct tdt_context *cx)
{
	struct end *end = state;

	TDT_BEGIN(&end->async, cx);
	TDT_AWAIT(tdt_oneshot_receive(end->receiver, &end->value, &end->error));
	MUST(end->error == 0 && end->value == (void *)(uintptr_t)1);
	atomic_fetch_add(&received, 1);
	TDT_END();
}

static void spawn_pair(void)
{
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;

	MUST(tdt_oneshot(&sender, &receiver, NULL) == 0);
	tdt_handle_unref(spawn(TDT_ASYNC_NEW(receiver_poll, (struct end){ .async.fini = end_fini,
									  .receiver = receiver }),
			       "receiver"));
	tdt_handle_unref(spawn(
	    TDT_ASYNC_NEW(sender_poll, (struct end){ .async.fini = end_fini, .sender = sender }),
	    "sender"));
}

struct joiner {
	struct tdt_async async;
	struct tdt_handle *child;
	int outcome;
};

static void joiner_fini(void *state)
{
	struct joiner *joiner = state;

	tdt_handle_unref(joiner->child);
	count_end(state);
}

static tdt_poll_t joiner_poll(void *state, struct tdt_context *cx)
{
	struct joiner *joiner = state;

	TDT_BEGIN(&joiner->async, cx);
	joiner->child = spawn(SOAK(sleeper_poll), "child");
	TDT_AWAIT(tdt_join(joiner->child, &joiner->outcome));
	MUST(joiner->outcome == 0);
	TDT_END();
}

static struct tdt_future several(bool all)
{
	struct tdt_future futures[3] = { tdt_sleep_ms(choose(10)), tdt_sleep_ms(choose(20)),
					 tdt_sleep_ms(choose(30)) };

	return all ? tdt_join_all(futures, 3) : tdt_select(futures, 3, NULL);
}

static tdt_poll_t several_poll(void *state, struct tdt_context *cx)
{
	struct soak *soak = state;

	TDT_BEGIN(&soak->async, cx);
	TDT_AWAIT(several(true));
	TDT_AWAIT(several(false));
	TDT_END();
}

/* --- Those that keep their thread ------------------------------------------------- */

static tdt_poll_t blocker_poll(void *state, struct tdt_context *cx)
{
	struct soak *soak = state;
	struct timespec time = { .tv_nsec = 1000000L * (1 + (long)choose(15)) };

	TDT_BEGIN(&soak->async, cx);
	if (nanosleep(&time, NULL) != 0)
		atomic_fetch_add(&interrupted, 1);
	TDT_AWAIT(tdt_sleep_ms(choose(10)));
	TDT_END();
}

static tdt_poll_t spinner_poll(void *state, struct tdt_context *cx)
{
	struct soak *soak = state;

	TDT_BEGIN(&soak->async, cx);
	for (unsigned i = choose(10000000); i > 0; i--)
		__asm__ volatile("");
	TDT_AWAIT(tdt_sleep_ms(choose(10)));
	TDT_END();
}

/* --- Those that end otherwise -------------------------------------------------------- */

static tdt_poll_t panicker_poll(void *state, struct tdt_context *cx)
{
	struct soak *soak = state;

	TDT_BEGIN(&soak->async, cx);
	TDT_AWAIT(tdt_sleep_ms(choose(10)));
	return TDT_PANICKED;
	TDT_END();
}

/* Requests itself and others, from inside. */
struct curious {
	struct tdt_async async;
	struct tdt_handle *child;
	struct tdt_trace *trace;
	int error;
};

static void curious_fini(void *state)
{
	struct curious *curious = state;

	tdt_trace_free(curious->trace);
	tdt_handle_unref(curious->child);
	count_end(state);
}

static tdt_poll_t curious_poll(void *state, struct tdt_context *cx)
{
	struct curious *curious = state;

	TDT_BEGIN(&curious->async, cx);
	curious->child = spawn(SOAK(sleeper_poll), "asked");
	TDT_AWAIT(tdt_backtrace_async(curious->child, NULL, &curious->trace, &curious->error));
	MUST(curious->trace != NULL || curious->error == -ESRCH);
	TDT_END();
}

/* --- Coroutines ---------------------------------------------------------------------- */

static void co_sleep(unsigned ms)
{
	MUST(tdt_co_await(tdt_sleep_ms(ms)) == 0);
}

static int co_sleeper(void *unused)
{
	for (unsigned n = choose(5); n > 0; n--)
		co_sleep(choose(30));
	count_end(unused);
	return 0;
}

static void co_lock(unsigned i)
{
	MUST(tdt_co_await(tdt_mutex_lock(mutexes[i])) == 0);
	locked[i]++;
	atomic_fetch_add(&taken, 1);
}

/* In the same order as others. */
static int co_locker(void *unused)
{
	unsigned first = choose(MUTEXES - 1), second = first + 1 + choose(MUTEXES - 1 - first);

	co_lock(first);
	co_lock(second);
	co_sleep(choose(3));
	MUST(tdt_mutex_unlock(mutexes[first]) == 0);
	MUST(tdt_mutex_unlock(mutexes[second]) == 0);
	count_end(unused);
	return 0;
}

static int co_joiner(void *unused)
{
	struct tdt_handle *child = spawn(SOAK(sleeper_poll), "child");
	int outcome = -1;

	MUST(tdt_co_await(tdt_join(child, &outcome)) == 0 && outcome == 0);
	tdt_handle_unref(child);
	count_end(unused);
	return 0;
}

/* Keeps its thread, on a stack that is not the thread's. */
static int co_blocker(void *unused)
{
	struct timespec time = { .tv_nsec = 1000000L * (1 + (long)choose(10)) };

	co_sleep(choose(10));
	if (nanosleep(&time, NULL) != 0)
		atomic_fetch_add(&interrupted, 1);
	count_end(unused);
	return 0;
}

static int co_panicker(void *unused)
{
	co_sleep(choose(10));
	count_end(unused);
	return 1;
}

static void spawn_coroutine(tdt_coroutine_fn *function, const char *name)
{
	tdt_handle_unref(spawn(tdt_coroutine(function, NULL, NULL), name));
}

/* --- All of them ------------------------------------------------------------------------ */

/* Of a name that no other has. */
static void spawn_session(void)
{
	char name[32];

	snprintf(name, sizeof name, "session %lu", atomic_load(&spawned));
	SPAWN(sleeper_poll, name);
}

static void spawn_one(void)
{
	switch (choose(64)) {
	case 0:
		SPAWN(blocker_poll, "blocker");
		break;
	case 1:
		SPAWN(spinner_poll, "spinner");
		break;
	case 2 ... 5:
		SPAWN(panicker_poll, "panicker");
		break;
	case 6 ... 9:
		tdt_handle_unref(spawn(
		    TDT_ASYNC_NEW(curious_poll, (struct curious){ .async.fini = curious_fini }),
		    "curious"));
		break;
	case 10 ... 19:
		spawn_pair();
		break;
	case 20 ... 25:
		tdt_handle_unref(
		    spawn(TDT_ASYNC_NEW(joiner_poll, (struct joiner){ .async.fini = joiner_fini }),
			  "joiner"));
		break;
	case 26 ... 33:
		tdt_handle_unref(
		    spawn(TDT_ASYNC_NEW(locker_poll, (struct locker){ .async.fini = locker_fini }),
			  "locker"));
		break;
	case 34 ... 37:
		tdt_handle_unref(
		    spawn(TDT_ASYNC_NEW(hurried_poll, (struct hurried){ .async.fini = count_end }),
			  "hurried"));
		break;
	case 38 ... 43:
		SPAWN(several_poll, "several");
		break;
	case 44 ... 47:
		SPAWN(yielder_poll, "yielder");
		break;
	case 48 ... 50:
		spawn_coroutine(co_sleeper, "coroutine");
		break;
	case 51 ... 53:
		spawn_coroutine(co_locker, "coroutine that locks");
		break;
	case 54:
		spawn_coroutine(co_joiner, "coroutine that joins");
		break;
	case 55:
		spawn_coroutine(co_blocker, "coroutine that blocks");
		break;
	case 56:
		spawn_coroutine(co_panicker, "coroutine that panics");
		break;
	case 57 ... 58:
		spawn_session();
		break;
	default:
		SPAWN(sleeper_poll, "sleeper");
	}
}

static unsigned wanted;

static tdt_poll_t spawner_poll(void *state, struct tdt_context *cx)
{
	struct soak *soak = state;

	TDT_BEGIN(&soak->async, cx);
	while (!atomic_load(&stopping)) {
		while (atomic_load(&spawned) - atomic_load(&ended) < wanted)
			spawn_one();
		TDT_AWAIT(tdt_sleep_ms(1));
	}
	TDT_END();
}

void soak_tasks_begin(struct tdt_rt *runtime, unsigned start, unsigned live)
{
	rt = runtime;
	wanted = live;
	atomic_store(&seed, start);
	atomic_store(&stopping, false);
	for (int i = 0; i < MUTEXES; i++) {
		mutexes[i] = tdt_mutex_new();
		MUST(mutexes[i] != NULL);
	}
	SPAWN(spawner_poll, "spawner");
}

void soak_tasks_end(void)
{
	struct timespec moment = { .tv_nsec = 1000000 };

	atomic_store(&stopping, true);
	while (atomic_load(&ended) != atomic_load(&spawned))
		nanosleep(&moment, NULL);
	for (int i = 0; i < MUTEXES; i++)
		tdt_mutex_free(mutexes[i]);
}
