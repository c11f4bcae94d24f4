// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Tasks that wait at known places.  One thread is the timer of all: it notes in the ledger when a
 * wait is over, right before it wakes the task.
 */

#include <config.h>

#include "waits.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "lib/must.h"

#define BURST 10
#define MS UINT64_C(1000000)

const char *const waits_function[WAITS_PLACES] = { "wait_constant", "wait_exponential",
						   "wait_short", "wait_burst", "wait_rest" };

/* A task.  The ledger's lock protects all but `next` and `random`, which the task's polls have. */
struct waiting {
	enum waits_place kind; /* of the first wait */
	unsigned next;         /* how many waits there were */
	unsigned short random[3];
	enum waits_place place;
	uint64_t begun, end; /* of the present wait */
	bool waits, over;
	const struct tdt_waker *waker;
};

static struct waits_ledger *the_ledger;
static struct waiting *tasks;
static size_t n_tasks;
static pthread_cond_t sooner;

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

/* --- The ledger ---------------------------------------------------------------------------- */

void waits_ledger_init(struct waits_ledger *ledger)
{
	pthread_mutexattr_t shared;

	*ledger = (struct waits_ledger){ .over = { 0 } };
	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	MUST(pthread_mutex_init(&ledger->lock, &shared) == 0);
	pthread_mutexattr_destroy(&shared);
}

void waits_ledger_read(struct waits_ledger *ledger, uint64_t ns[WAITS_PLACES])
{
	uint64_t now;

	pthread_mutex_lock(&ledger->lock);
	now = clock_ns();
	for (int i = 0; i < WAITS_PLACES; i++)
		ns[i] = ledger->over[i] + ledger->going_on[i] * now - ledger->begun[i];
	pthread_mutex_unlock(&ledger->lock);
}

static void note_begin(struct waiting *task)
{
	the_ledger->going_on[task->place]++;
	the_ledger->begun[task->place] += task->begun;
}

static void note_end(const struct waiting *task, uint64_t now)
{
	the_ledger->going_on[task->place]--;
	the_ledger->begun[task->place] -= task->begun;
	the_ledger->over[task->place] += now - task->begun;
}

/* --- The timer ----------------------------------------------------------------------------- */

/* End a wait whose time is over, with the lock held, which is given up meanwhile. */
static void end_wait(struct waiting *task, uint64_t now)
{
	const struct tdt_waker *waker = task->waker;

	note_end(task, now);
	task->over = true;
	task->waits = false;
	task->waker = NULL;
	pthread_mutex_unlock(&the_ledger->lock);
	tdt_waker_wake(waker);
	pthread_mutex_lock(&the_ledger->lock);
}

/* End the waits whose time is over.  Returns when the next one is. */
static uint64_t end_waits(void)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < n_tasks; i++) {
		uint64_t now = clock_ns();

		if (tasks[i].waits && tasks[i].end <= now)
			end_wait(&tasks[i], now);
		else if (tasks[i].waits && tasks[i].end < next)
			next = tasks[i].end;
	}
	return next;
}

static void *be_timer(void *arg)
{
	pthread_mutex_lock(&the_ledger->lock);
	for (;;) {
		uint64_t next = end_waits(), soon = clock_ns() + MS;
		struct timespec time;

		next = next < soon ? next : soon; /* a task may have begun to wait meanwhile */
		time = (struct timespec){ (time_t)(next / 1000 / MS), (long)(next % (1000 * MS)) };
		pthread_cond_timedwait(&sooner, &the_ledger->lock, &time);
	}
	return arg;
}

/* --- Tasks --------------------------------------------------------------------------------- */

static tdt_poll_t wait_for_timer(struct waiting *task, struct tdt_context *cx)
{
	bool over;

	pthread_mutex_lock(&the_ledger->lock);
	over = task->over;
	if (!over) {
		const struct tdt_waker *before = task->waker;

		task->waker = tdt_waker_clone(cx->waker);
		task->waits = true;
		pthread_mutex_unlock(&the_ledger->lock);
		tdt_waker_drop(before);
		return TDT_PENDING;
	}
	pthread_mutex_unlock(&the_ledger->lock);
	return TDT_READY;
}

#define PLACE(name)								\
	static __attribute__((noinline)) tdt_poll_t name(struct waiting *task,	\
							 struct tdt_context *cx) \
	{									\
		tdt_poll_t result = wait_for_timer(task, cx);			\
										\
		TDT_KEEP_FRAME();						\
		return result;							\
	}
PLACE(wait_constant)
PLACE(wait_exponential)
PLACE(wait_short)
PLACE(wait_burst)
PLACE(wait_rest)

static tdt_poll_t (*const wait_at[WAITS_PLACES])(struct waiting *, struct tdt_context *) = {
	wait_constant, wait_exponential, wait_short, wait_burst, wait_rest
};

/* The first wait is of any length, so that the tasks do not wait in step. */
static uint64_t length_of_wait(struct waiting *task)
{
	if (task->next == 1)
		return (uint64_t)(erand48(task->random) * 300 * (double)MS);
	switch (task->place) {
	case WAITS_CONSTANT:
		return 20 * MS;
	case WAITS_EXPONENTIAL:
		return (uint64_t)(-log(1 - erand48(task->random)) * 30 * (double)MS);
	case WAITS_SHORT:
		return 4 * MS;
	case WAITS_BURST:
		return 10 * MS;
	default:
		return 200 * MS;
	}
}

static void begin_wait(struct waiting *task)
{
	bool rests = task->kind == WAITS_BURST && task->next % (BURST + 1) == BURST;

	pthread_mutex_lock(&the_ledger->lock);
	task->place = rests ? WAITS_REST : task->kind;
	task->next++;
	task->over = false;
	task->begun = clock_ns();
	task->end = task->begun + length_of_wait(task);
	note_begin(task);
	pthread_mutex_unlock(&the_ledger->lock);
}

static tdt_poll_t waiting_poll(void *state, struct tdt_context *cx)
{
	struct waiting *task = state;

	for (;;) {
		tdt_poll_t result = wait_at[task->place](task, cx);

		TDT_KEEP_FRAME();
		if (result == TDT_PENDING)
			return result;
		begin_wait(task);
	}
}

static void waiting_drop(void *state)
{
	(void)state;
}

static void spawn_waiting(struct tdt_rt *rt, size_t i)
{
	struct tdt_future future = { &tasks[i], waiting_poll, waiting_drop };
	struct tdt_handle *handle;
	char name[32];

	snprintf(name, sizeof name, "worker %zu", i);
	begin_wait(&tasks[i]);
	handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = name));
	MUST(handle != NULL);
	tdt_handle_unref(handle);
}

/* Of 15 tasks: most of the time goes where there are most of them. */
static const enum waits_place kinds[WAITS_TASKS] = {
	WAITS_CONSTANT,	   WAITS_CONSTANT,    WAITS_CONSTANT,	 WAITS_CONSTANT,
	WAITS_EXPONENTIAL, WAITS_EXPONENTIAL, WAITS_EXPONENTIAL, WAITS_EXPONENTIAL,
	WAITS_SHORT,	   WAITS_BURST,	      WAITS_BURST,	 WAITS_BURST,
	WAITS_BURST,	   WAITS_BURST,	      WAITS_BURST,
};

void waits_start(struct waits_ledger *ledger, unsigned times, uint64_t seed)
{
	const struct tdt_rt_config config = { .size = sizeof config, .workers = 1 };
	struct tdt_rt *rt = tdt_rt_new(&config);
	pthread_condattr_t monotonic;
	pthread_t thread;

	MUST(rt != NULL);
	the_ledger = ledger;
	n_tasks = (size_t)times * WAITS_TASKS;
	tasks = calloc(n_tasks, sizeof tasks[0]);
	MUST(tasks != NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	MUST(pthread_cond_init(&sooner, &monotonic) == 0);
	for (size_t i = 0; i < n_tasks; i++) {
		tasks[i].kind = kinds[i % WAITS_TASKS];
		tasks[i].random[0] = (unsigned short)i;
		tasks[i].random[1] = (unsigned short)seed;
		tasks[i].random[2] = (unsigned short)(seed >> 16);
		erand48(tasks[i].random); /* the first numbers of near seeds are near */
		spawn_waiting(rt, i);
	}
	MUST(pthread_create(&thread, NULL, be_timer, NULL) == 0);
}
