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
 *	planted bury    the same, but the recorder lists no live tasks meanwhile, nor afterwards
 *	planted inside  the same as bury, and is in a poll of ticker when it says that it is ready
 *
 * What happens:
 *
 *	worker a  pinned, roamer, holder │ spinner, which takes 50 ms or more │ pinned
 *	worker b  reader                 │ wakes pinned and roamer, parks    │ roamer
 *
 *	reader waits for a lock that holder has: 80 ms later holder wakes it.  Then rash panics.
 *
 * In a hang, stuck waits for a lock that owner has, owner waits for nothing that is known, late was
 * woken and is not polled, fresh was never polled, and stone is being polled, in pause().
 *
 * What the recorder is to do meanwhile is waited for: it calls pthread_cond_clockwait() at the end
 * of each round, and the one of this program counts these calls.
 *
 * Before that, worker a polls ticker now and then: the recorder looks more often while tasks are
 * polled.
 */

#include <config.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>
#include <tdt/recorder.h>

#include "lib/asleep.h"
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
static bool stays_in_ticker;
static sem_t computes, was_parked; /* spinner does, and worker b was meanwhile */

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

/* ---- The recorder's rounds ---- */

static atomic_int wanted;   /* so many rounds are to end yet until `round_over` is posted */
static atomic_bool is_held; /* the recorder posts `held`, and begins no other round */
static sem_t round_over, held;

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		; /* a signal was handled */
}

static bool is_recorder(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name, 0, 0, 0);
	return strcmp(name, "tdt-recorder") == 0;
}

static void end_round(pthread_mutex_t *mutex)
{
	if (atomic_load(&wanted) != 0 && atomic_fetch_sub(&wanted, 1) == 1)
		sem_post(&round_over);
	if (!atomic_load(&is_held))
		return;
	pthread_mutex_unlock(mutex);
	sem_post(&held);
	while (atomic_load(&is_held))
		sleep_ms(1);
	pthread_mutex_lock(mutex);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			   const struct timespec *until)
{
	int (*wait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);

	*(void **)&wait = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	if (is_recorder())
		end_round(mutex);
	return wait(cond, mutex, clock, until);
}

static bool is_recording(void)
{
	struct tdt_recorder_status status = { .size = sizeof status };

	MUST(tdt_recorder_info(&status) == 0);
	return status.recording;
}

static void hold_recorder(void)
{
	if (!is_recording())
		return;
	atomic_store(&is_held, true);
	wait_for(&held);
}

/* Wait until the recorder has made a whole round. */
static void wait_for_round(void)
{
	if (!is_recording())
		return;
	atomic_store(&wanted, 2); /* the first of them may be in progress */
	wait_for(&round_over);
}

/* Wait until it has also done what it does once a second: it has listed the live tasks. */
static void wait_for_listing(void)
{
	if (is_recording())
		sleep_ms(1000);
	wait_for_round();
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

static __attribute__((noreturn)) void stay_ready(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (;;)
		pause();
}

static tdt_poll_t ticker_poll(void *state, struct tdt_context *cx)
{
	const bool *stays = state;

	(void)cx;
	if (*stays)
		stay_ready();
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

/* The recorder reads the stack of the poll while it is blocked: no signal has to come in time. */
static __attribute__((noinline)) void wait_to_be_read(void)
{
	wait_for(&was_parked);
	atomic_store(&is_held, false);
	wait_for_round();
}

static tdt_poll_t spinner_poll(void *state, struct tdt_context *cx)
{
	unsigned long turns;

	(void)state;
	(void)cx;
	sem_post(&computes);
	turns = spin(50 * MS);
	wait_to_be_read();
	return turns == 0 ? TDT_PENDING : TDT_READY;
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
	tdt_worker_thread_start(NULL);
	for (int i = 0; i < 50; i++) {
		poll_now(&ticker);
		sleep_ms(5);
	}
	poll_now(&pinned);
	poll_now(&roamer);
	poll_now(&holder);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	hold_recorder();
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
	tdt_worker_thread_start(NULL);
	pthread_barrier_wait(&barrier);
	poll_now(&reader);
	locked = now();
	pthread_barrier_wait(&barrier);
	wait_for(&computes);
	tdt_task_woken(pinned.handle);
	tdt_task_woken(roamer.handle);
	park_ms(20);
	sem_post(&was_parked);
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

	ticker = spawn(ticker_poll, &stays_in_ticker, "ticker");
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
	atomic_store((atomic_int *)state, gettid());
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
	static atomic_int polling;
	pthread_t thread;

	owner = spawn(wait_always, NULL, "owner");
	stuck = spawn(stuck_poll, NULL, "stuck");
	late = spawn(wait_always, NULL, "late");
	fresh = spawn(wait_always, NULL, "fresh");
	stone = spawn(stone_poll, &polling, "stone");
	poll_now(&owner);
	for (int i = 0; i < 10; i++) { /* one of these polls is captured, if they all are to be */
		poll_now(&stuck);
		wait_for_round();
	}
	poll_now(&late);
	tdt_task_woken(late.handle);
	MUST(pthread_create(&thread, NULL, poll_stone, NULL) == 0);
	wait_until_asleep(&polling);
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
	bool ticks = strcmp(mode, "tick") == 0, inside = strcmp(mode, "inside") == 0;
	bool is_unlisted = inside || strcmp(mode, "bury") == 0;
	bool buries = is_unlisted || strcmp(mode, "settle") == 0;
	bool hangs = buries || strcmp(mode, "hang") == 0;
	bool stays = ticks || hangs || strcmp(mode, "stay") == 0;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	sem_init(&round_over, 0, 0);
	sem_init(&held, 0, 0);
	sem_init(&computes, 0, 0);
	sem_init(&was_parked, 0, 0);
	if (!stays)
		MUST(tdt_recorder_start(NULL) == 0);
	wait_for_round(); /* the rings of the workers are ready then */
	run();
	if (!stays)
		return summarize(argc > 1);
	if (hangs)
		hang();
	wait_for_listing(); /* the modules are written down, too */
	if (is_unlisted)
		hold_recorder();
	if (buries)
		bury();
	stays_in_ticker = inside;
	if (inside)
		poll_now(&ticker);
	if (!ticks)
		stay_ready();
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (;; sleep_ms(5))
		poll_now(&ticker);
}
