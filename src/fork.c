// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The locks, and what happens to them when the process forks. */

#include <config.h>

#include "fork.h"

#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "barrier.h"
#include "counted.h"
#include "interrupt.h"
#include "namer.h"
#include "poll.h"
#include "probes.h"
#include "registry.h"
#include "task.h"
#include "thread.h"
#include "unloads.h"
#include "watch.h"

pthread_mutex_t tdt__signal_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t tdt__symbol_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t tdt__unwind_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t tdt__interrupt_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Enough that the askers of a dump rarely meet, and few enough that a host under ThreadSanitizer can fork, which holds
 * them all: more than 64 at once are too many for it.
 */
#define REQUEST_LOCKS 32

/* Each on a cache line of its own. */
static struct {
	_Alignas(64) pthread_mutex_t mutex;
} request_locks[REQUEST_LOCKS] = { [0 ... REQUEST_LOCKS - 1] = { PTHREAD_MUTEX_INITIALIZER } };

pthread_mutex_t *tdt__request_lock(const void *task)
{
	uintptr_t address = (uintptr_t)task;

	return &request_locks[(address >> 6 ^ address >> 12) % REQUEST_LOCKS].mutex;
}

void tdt__request_locks_pass(void)
{
	for (int i = 0; i < REQUEST_LOCKS; i++) {
		pthread_mutex_lock(&request_locks[i].mutex);
		pthread_mutex_unlock(&request_locks[i].mutex);
	}
}

static void before_fork(void)
{
	pthread_mutex_lock(&tdt__signal_lock);
	pthread_mutex_lock(&tdt__watch_lock);
	pthread_mutex_lock(&tdt__counted_lock);
	pthread_mutex_lock(&tdt__symbol_lock);
	pthread_mutex_lock(&tdt__unwind_lock);
	pthread_mutex_lock(&tdt__interrupt_lock);
	tdt__unloads_lock();
	for (int i = 0; i < REQUEST_LOCKS; i++)
		pthread_mutex_lock(&request_locks[i].mutex);
	tdt__registry_lock_all();
}

static void after_fork(void)
{
	tdt__registry_unlock_all();
	for (int i = REQUEST_LOCKS; i-- > 0;)
		pthread_mutex_unlock(&request_locks[i].mutex);
	tdt__unloads_unlock();
	pthread_mutex_unlock(&tdt__interrupt_lock);
	pthread_mutex_unlock(&tdt__unwind_lock);
	pthread_mutex_unlock(&tdt__symbol_lock);
	pthread_mutex_unlock(&tdt__counted_lock);
	pthread_mutex_unlock(&tdt__watch_lock);
	pthread_mutex_unlock(&tdt__signal_lock);
}

uint32_t tdt__forks;

/* The ids that the thread that forked, and its parents', had in the processes before: the last few of them. */
static struct {
	uint32_t id[16];
	unsigned n;
} lineage;

bool tdt__thread_is_here(uint32_t id)
{
	if (tdt__forks == 0 || id == 0)
		return true;
	for (unsigned i = 0; i < sizeof lineage.id / sizeof lineage.id[0]; i++)
		if (lineage.id[i] == id)
			return true;
	return tgkill(getpid(), (pid_t)id, 0) == 0;
}

/* This thread has another id in the child, and is in the middle of the same polls. */
static void take_polls_along(void)
{
	lineage.id[lineage.n++ % (sizeof lineage.id / sizeof lineage.id[0])] = tdt__thread.id;
	tdt__thread.id = 0;
	for (const struct tdt__poll *poll = tdt__thread.poll; poll != NULL; poll = poll->outer)
		TDT__POKE(poll->task->record.thread, tdt__thread_id());
}

static bool registered; /* in a child: these handlers have run */

static void after_fork_in_child(void)
{
	registered = true;
	tdt__forks++;
	tdt__probes_forked();
	take_polls_along();
	tdt__interrupt_forked();
	tdt__barrier_init();
	tdt__watch_forked();
	tdt__unloads_forked();
	tdt__namer_forked();
	after_fork();
}

static int fork_status;

static void init(void)
{
	tdt__barrier_init();
	/* A child that was forked while another thread was here comes here again: twice locked would be for ever. */
	if (!registered)
		fork_status = -pthread_atfork(before_fork, after_fork, after_fork_in_child);
	/* Whoever wants their service may do so when threads can't be started: see service.h. */
	tdt__namer_begin();
	tdt__unloads_begin();
}

int tdt__fork_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init);
	return fork_status;
}
