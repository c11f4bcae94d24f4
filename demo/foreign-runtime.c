// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt on a runtime that is not part of tdt, and was not written for tdt: their_runtime.c.
 *
 * Without any change of the runtime, backtraces of its tasks can be requested, and these probes
 * fire: task-spawn, task-poll-start, task-poll-end, task-terminate and task-waker-clone.  For this,
 * wrap each future before it is spawned, as spawn_traced() below does.
 *
 * Six calls added to the runtime (grep 'added for tdt' their_runtime.c) give the rest:
 *
 *	tdt_worker_thread_start()    probe worker-thread-start; tdt_backtrace() is refused on this
 *	                             thread, which it would keep from polling the task
 *	tdt_worker_thread_stop()     probe worker-thread-stop
 *	tdt_worker_thread_park()     probe worker-thread-park: the thread has nothing to do
 *	tdt_worker_thread_unpark()   probe worker-thread-unpark
 *	tdt_task_woken(handle)       probe task-wake: shows the time from a wake-up to its poll
 *	tdt_worker_now(ns)           no probe; polls need not read the clock themselves
 *
 * The program: an order waits for its goods and its payment, side by side, and is then shipped.
 */

#include <locale.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <tdt/async.h>
#include <tdt/combine.h>
#include <tdt/trace.h>

#include "help.h"
#include "their_runtime.h"

static const char foreign_help[] =
	"Usage: foreign-runtime [--help]\n"
	"Trace a task on a runtime that is not part of tdt.\n";

/* Something that happens once.  One task may wait for it. */
struct event {
	pthread_mutex_t lock; /* protects the other members */
	bool happened;
	const struct tdt_waker *waker; /* of the task that waits; owned */
};

#define EVENT_INIT									\
	{										\
		PTHREAD_MUTEX_INITIALIZER, false, NULL					\
	}

/* Store `waker` (or NULL), to be woken by the event.  The caller drops or wakes the old one. */
static const struct tdt_waker *exchange_waker(struct event *event, const struct tdt_waker *waker)
{
	const struct tdt_waker *old;

	pthread_mutex_lock(&event->lock);
	old = event->waker;
	event->waker = waker;
	pthread_mutex_unlock(&event->lock);
	return old;
}

static bool event_happened(struct event *event)
{
	bool happened;

	pthread_mutex_lock(&event->lock);
	happened = event->happened;
	pthread_mutex_unlock(&event->lock);
	return happened;
}

static void event_happens(struct event *event)
{
	pthread_mutex_lock(&event->lock);
	event->happened = true;
	pthread_mutex_unlock(&event->lock);
	tdt_waker_wake(exchange_waker(event, NULL));
}

/* The leaf: it first stores a clone of the waker and then tests again, so it misses no event. */
static tdt_poll_t event_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker *waker;

	if (event_happened(state))
		return TDT_READY;
	waker = tdt_waker_clone(cx->waker);
	if (waker == NULL)
		return TDT_PANICKED;
	tdt_waker_drop(exchange_waker(state, waker));
	return event_happened(state) ? TDT_READY : TDT_PENDING;
}

static void event_drop(void *state)
{
	tdt_waker_drop(exchange_waker(state, NULL));
}

static struct tdt_future event_wait(struct event *event)
{
	return (struct tdt_future){ event, event_poll, event_drop };
}

/* The order, and what it waits for. */
struct shop {
	struct event goods, payment;
	sem_t shipped;
};

struct order {
	struct tdt_async async;
	struct shop *shop;
};

static tdt_poll_t pack_poll(void *state, struct tdt_context *cx)
{
	struct order *order = state;

	TDT_BEGIN(&order->async, cx);
	TDT_AWAIT(event_wait(&order->shop->goods));
	TDT_END();
}

static tdt_poll_t bill_poll(void *state, struct tdt_context *cx)
{
	struct order *order = state;

	TDT_BEGIN(&order->async, cx);
	TDT_AWAIT(event_wait(&order->shop->payment));
	TDT_END();
}

static struct tdt_future pack_and_bill(struct shop *shop)
{
	struct tdt_future both[] = { TDT_ASYNC_NEW(pack_poll, (struct order){ .shop = shop }),
				     TDT_ASYNC_NEW(bill_poll, (struct order){ .shop = shop }) };
	struct tdt_future joined = tdt_join_all(both, 2);

	if (tdt_future_is_none(&joined)) {
		tdt_future_drop(&both[0]);
		tdt_future_drop(&both[1]);
	}
	return joined;
}

static tdt_poll_t order_poll(void *state, struct tdt_context *cx)
{
	struct order *order = state;

	TDT_BEGIN(&order->async, cx);
	TDT_AWAIT(pack_and_bill(order->shop));
	puts("And the payment: shipped.");
	sem_post(&order->shop->shipped);
	TDT_END();
}

/* Spawn `future`, traced.  The caller owns the handle.  NULL and errno: `future` is dropped. */
static struct tdt_handle *spawn_traced(struct their_runtime *runtime, struct tdt_future future,
				       const struct tdt_task_attr *attr)
{
	struct tdt_traced traced = tdt_traced_with(future, attr);

	if (traced.handle != NULL && their_runtime_spawn(runtime, traced.future) == 0)
		return traced.handle;
	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
	return NULL;
}

static int print_tree(const char *when, struct tdt_handle *task)
{
	struct tdt_trace *trace = tdt_backtrace(task);
	int error;

	if (trace == NULL) {
		perror("foreign-runtime: tdt_backtrace");
		return -1;
	}
	puts(when);
	error = tdt_trace_print(trace, stdout);
	tdt_trace_free(trace);
	return error;
}

static int run(struct their_runtime *runtime, struct shop *shop)
{
	struct tdt_future order = TDT_ASYNC_NEW(order_poll, (struct order){ .shop = shop });
	struct tdt_handle *task = spawn_traced(runtime, order, TDT_TASK_ATTR(.name = "order 1"));
	int error;

	if (task == NULL) {
		perror("foreign-runtime: spawn_traced");
		return -1;
	}
	error = print_tree("Nothing has come yet:", task);
	event_happens(&shop->goods);
	error |= print_tree("The goods have come:", task);
	event_happens(&shop->payment);
	sem_wait(&shop->shipped);
	tdt_handle_unref(task);
	return error;
}

int main(int argc, char **argv)
{
	struct shop shop = { .goods = EVENT_INIT, .payment = EVENT_INIT };
	int error = read_options(argc, argv, foreign_help);
	struct their_runtime *runtime;

	if (error >= 0)
		return error;
	setlocale(LC_ALL, "");
	runtime = their_runtime_new(2);
	if (runtime == NULL) {
		perror("foreign-runtime: their_runtime_new");
		return EXIT_FAILURE;
	}
	sem_init(&shop.shipped, 0, 0);
	error = run(runtime, &shop);
	their_runtime_free(runtime);
	sem_destroy(&shop.shipped);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
