// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A program with planted facts, for summary.sh: two workers that are written here, so that nothing
 * else happens.
 *
 *	planted         records in memory, and prints the summary of itself
 *	planted json    the same as JSON
 *	planted stay    records as the environment says, prints "ready" and its id, and waits to be killed
 *	planted tick    the same, and polls ticker meanwhile
 *	planted hang    the same as stay, while tasks hang, for tdt_last.sh
 *	planted settle  the same, and then ticker's polls overwrite what the main thread has recorded
 *	planted bury    the same, and polls ticker all the time
 *
 * What happens:
 *
 *	worker a  pinned, roamer, holder │ spinner, which computes for 50 ms │ pinned
 *	worker b  reader                 │ wakes pinned and roamer, parks    │ roamer
 *
 *	reader waits for a lock that holder has: 80 ms later holder wakes it.  Then rash panics.
 *
 * In a hang, stuck waits for a lock that owner has, owner waits for nothing that is known, late was
 * woken and is not polled, fresh was never polled, and stone is being polled, in pause().
 *
 * Before that, worker a polls ticker now and then: the recorder looks more often while tasks are
 * polled.
 */

#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <tdt/hooks.h>
#include <tdt/recorder.h>

#include "lib/must.h"

#define MS 1000000L

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void waker_nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { waker_clone, waker_nothing, waker_nothing,
						waker_nothing };
static const struct tdt_waker waker = { &vtable };

static void drop(void *state)
{
	(void)state;
}

static struct tdt_traced ticker, pinned, roamer, holder, reader, spinner, rash;
static pthread_barrier_t barrier;
static struct timespec locked; /* since then reader waits */
static struct tdt_traced stuck, owner, late, fresh, stone;
static char gate; /* the lock in a hang */

/* ---- Time ---- */

static struct timespec now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time;
}

static long ns_since(struct timespec begin)
{
	struct timespec end = now();

	return (end.tv_sec - begin.tv_sec) * 1000 * MS + end.tv_nsec - begin.tv_nsec;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * MS }, NULL);
}

/* ---- Polls ---- */

static tdt_poll_t wait_once(void *state, struct tdt_context *cx)
{
	bool *again = state;
	tdt_poll_t result = *again ? TDT_READY : TDT_PENDING;

	(void)cx;
	*again = true;
	return result;
}

static tdt_poll_t wait_always(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static __attribute__((noinline)) unsigned long spin(long ns)
{
	volatile unsigned long turns = 0;
	struct timespec begin = now();

	while (ns_since(begin) < ns)
		turns++;
	return turns;
}

static tdt_poll_t spinner_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return spin(50 * MS) == 0 ? TDT_PENDING : TDT_READY;
}

static tdt_poll_t reader_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = wait_once(state, cx);

	if (result == TDT_PENDING)
		tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, &locked, tdt_handle_id(holder.handle),
					"table");
	return result;
}

/* Its first poll takes the lock; its second one gives it to the reader. */
static tdt_poll_t holder_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = wait_once(state, cx);

	if (result == TDT_READY)
		tdt_task_woken(reader.handle);
	return result;
}

static tdt_poll_t rash_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PANICKED;
}

static void poll_now(struct tdt_traced *task)
{
	struct tdt_context cx = { &waker };

	tdt_future_poll(&task->future, &cx);
}

static struct tdt_traced spawn(tdt_poll_t (*poll)(void *, struct tdt_context *), void *state,
			       const char *name)
{
	struct tdt_traced task = tdt_traced_with((struct tdt_future){ state, poll, drop },
						 TDT_TASK_ATTR(.name = name));

	MUST(task.handle != NULL);
	return task;
}

/* ---- The workers ---- */

static void *worker_a(void *nothing)
{
	pthread_setname_np(pthread_self(), "worker a");
	tdt_worker_thread_start();
	for (int i = 0; i < 50; i++) {
		poll_now(&ticker);
		sleep_ms(5);
	}
	poll_now(&pinned);
	poll_now(&roamer);
	poll_now(&holder);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	poll_now(&spinner);
	poll_now(&pinned);
	pthread_barrier_wait(&barrier);
	tdt_worker_thread_stop();
	return nothing;
}

static void park_ms(long ms)
{
	tdt_worker_thread_park();
	sleep_ms(ms);
	tdt_worker_thread_unpark();
}

static void *worker_b(void *nothing)
{
	pthread_setname_np(pthread_self(), "worker b");
	tdt_worker_thread_start();
	pthread_barrier_wait(&barrier);
	poll_now(&reader);
	locked = now();
	pthread_barrier_wait(&barrier);
	sleep_ms(5); /* spinner computes now */
	tdt_task_woken(pinned.handle);
	tdt_task_woken(roamer.handle);
	park_ms(20);
	poll_now(&roamer);
	while (ns_since(locked) < 80 * MS)
		park_ms(1);
	poll_now(&holder);
	poll_now(&reader);
	poll_now(&rash);
	pthread_barrier_wait(&barrier);
	tdt_worker_thread_stop();
	return nothing;
}

static void run(void)
{
	static bool states[4];
	pthread_t threads[2];

	ticker = spawn(wait_always, NULL, "ticker");
	pinned = spawn(wait_once, &states[0], "pinned");
	roamer = spawn(wait_once, &states[1], "roamer");
	holder = spawn(holder_poll, &states[2], "holder");
	reader = spawn(reader_poll, &states[3], "reader");
	spinner = spawn(spinner_poll, NULL, "spinner");
	rash = spawn(rash_poll, NULL, "rash");
	MUST(pthread_barrier_init(&barrier, NULL, 2) == 0);
	MUST(pthread_create(&threads[0], NULL, worker_a, NULL) == 0);
	MUST(pthread_create(&threads[1], NULL, worker_b, NULL) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
}

/* ---- The hang ---- */

static tdt_poll_t stuck_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, &gate, tdt_handle_id(owner.handle), "gate");
	return TDT_PENDING;
}

static tdt_poll_t stone_poll(void *state, struct tdt_context *cx)
{
	(void)cx;
	pthread_barrier_wait(state);
	while (pause() != 0)
		; /* a signal was handled */
	return TDT_READY;
}

static void *poll_stone(void *nothing)
{
	poll_now(&stone);
	return nothing;
}

static void hang(void)
{
	static pthread_barrier_t polling;
	pthread_t thread;

	MUST(pthread_barrier_init(&polling, NULL, 2) == 0);
	owner = spawn(wait_always, NULL, "owner");
	stuck = spawn(stuck_poll, NULL, "stuck");
	late = spawn(wait_always, NULL, "late");
	fresh = spawn(wait_always, NULL, "fresh");
	stone = spawn(stone_poll, &polling, "stone");
	poll_now(&owner);
	for (int i = 0; i < 10; i++) { /* one of these polls is captured, if they all are to be */
		poll_now(&stuck);
		sleep_ms(20);
	}
	poll_now(&late);
	tdt_task_woken(late.handle);
	MUST(pthread_create(&thread, NULL, poll_stone, NULL) == 0);
	pthread_barrier_wait(&polling);
}

static void bury(void)
{
	for (int i = 0; i < 100000; i++)
		poll_now(&ticker);
}

static int summarize(bool json)
{
	const struct tdt_print_options print = { .size = sizeof print,
						 .format = json ? TDT_PRINT_JSON
								: TDT_PRINT_TEXT };
	const struct tdt_summary_options options = { .size = sizeof options, .print = &print };

	return tdt_recorder_summary(stdout, &options) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	bool ticks = strcmp(mode, "tick") == 0, always = strcmp(mode, "bury") == 0;
	bool buries = always || strcmp(mode, "settle") == 0;
	bool hangs = buries || strcmp(mode, "hang") == 0;
	bool stays = ticks || hangs || strcmp(mode, "stay") == 0;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (!stays)
		MUST(tdt_recorder_start(NULL) == 0);
	sleep_ms(100); /* the rings of the workers are ready then */
	run();
	if (!stays)
		return summarize(argc > 1);
	if (hangs)
		hang();
	sleep_ms(1500); /* the recorder has written down the modules then */
	if (buries)
		bury();
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (always)
		poll_now(&ticker);
	for (;; sleep_ms(5))
		if (ticks)
			poll_now(&ticker);
		else
			pause();
}
