// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The namer's queue.
 *
 * A job holds the addresses for which one requester wants names.  The requester may give up at its
 * deadline, while the queue's work on the job goes on.  So both have a reference to the job, and
 * the job has a reference to the modules.
 */

#include "symbolize/namer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/service.h"
#include "symbolize/debugfile.h"
#include "symbolize/modules.h"
#include "symbolize/symbolize.h"

struct wanted {
	const struct tdt__module *module;
	uintptr_t pc;
	/* NULL: not looked up yet, or, when the job is done, no memory. */
	const struct tdt__symbol *symbol;
};

struct job {
	struct job *next;
	int refs;
	struct tdt__modules *modules;
	bool done;
	size_t n;
	struct wanted wanted[];
};

/* All fields, and the jobs, are under tdt__symbol_lock. */
static struct {
	pthread_cond_t wanted; /* there is a job */
	pthread_cond_t done;   /* a job was done, or the namer has nothing to do */
	struct job *first;
	struct job *last;
	bool running;   /* there is a thread, or it is being started */
	bool busy;      /* the thread, or a requester in its place, is at work */
	uint64_t since; /* when the work on the current address began */
} namer = { .wanted = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER };

/* --- The namer's side ------------------------------------------------------------ */

static void unref_job(struct job *job)
{
	if (--job->refs > 0)
		return;
	tdt__modules_unref(job->modules);
	free(job);
}

/* Look up one address.  Releases the lock meanwhile. */
static void look_up_wanted(struct wanted *wanted)
{
	const struct tdt__symbol *symbol;

	namer.since = tdt__clock();
	pthread_mutex_unlock(&tdt__symbol_lock);
	symbol = tdt__symbolize(wanted->module, wanted->pc, true);
	pthread_mutex_lock(&tdt__symbol_lock);
	wanted->symbol = symbol;
}

/* Do all jobs of the queue. */
static void do_jobs(void)
{
	namer.busy = true;
	while (namer.first != NULL) {
		struct job *job = namer.first;

		namer.first = job->next;
		for (size_t i = 0; i < job->n; i++)
			look_up_wanted(&job->wanted[i]);
		job->done = true;
		unref_job(job);
		pthread_cond_broadcast(&namer.done);
	}
	namer.busy = false;
	pthread_cond_broadcast(&namer.done);
}

static void *name(void *nothing)
{
	pthread_setname_np(pthread_self(), "tdt-names");
	pthread_mutex_lock(&tdt__symbol_lock);
	for (;;) {
		while (namer.first == NULL || namer.busy)
			pthread_cond_wait(namer.busy ? &namer.done : &namer.wanted,
					  &tdt__symbol_lock);
		do_jobs();
	}
	return nothing;
}

/* Start the thread, unless there is one.  Releases the lock meanwhile. */
static void need_namer(void)
{
	if (tdt__service_need(name, &namer.running, &tdt__symbol_lock) != 0)
		pthread_cond_broadcast(&namer.done); /* for those who counted on the thread */
}

/* --- The requester's -------------------------------------------------------------- */

/* Take the symbols that are cached.  Returns how many addresses have none. */
static size_t find_known(struct tdt__name *names, size_t n)
{
	size_t unknown = 0;

	for (size_t i = 0; i < n; i++) {
		if (names[i].module == NULL)
			continue;
		names[i].symbol = tdt__symbol_known(names[i].module, names[i].pc, true);
		unknown += names[i].symbol == NULL;
	}
	return unknown;
}

/*
 * Make a job for the addresses that have no symbol, with one reference for the requester and one
 * for the queue.  NULL: no memory.
 */
static struct job *new_job(struct tdt__modules *modules, const struct tdt__name *names, size_t n,
			   size_t unknown)
{
	struct job *job = calloc(1, sizeof *job + unknown * sizeof job->wanted[0]);

	if (job == NULL)
		return NULL;
	job->refs = 2;
	job->modules = tdt__modules_ref(modules);
	for (size_t i = 0; i < n && job->n < unknown; i++)
		if (names[i].module != NULL && names[i].symbol == NULL)
			job->wanted[job->n++] =
			    (struct wanted){ names[i].module, names[i].pc, NULL };
	return job;
}

static void enqueue(struct job *job)
{
	if (namer.first == NULL)
		namer.first = job;
	else
		namer.last->next = job;
	namer.last = job;
	pthread_cond_signal(&namer.wanted);
}

static void wait_job(const struct job *job, uint64_t deadline)
{
	const struct timespec until = tdt__timespec(deadline);
	int error = 0;

	while (!job->done && error == 0) {
		if (!namer.running && !namer.busy)
			do_jobs(); /* there is no thread to do the job */
		else
			error = pthread_cond_clockwait(&namer.done, &tdt__symbol_lock,
						       CLOCK_MONOTONIC, &until);
	}
}

/* Take over the symbols that were found.  Returns how many addresses have none, or -ENOMEM. */
static long take_symbols(const struct job *job, struct tdt__name *names, size_t n)
{
	size_t at = 0;
	long left = 0;

	for (size_t i = 0; i < n && at < job->n; i++) {
		if (names[i].module == NULL || names[i].symbol != NULL)
			continue;
		names[i].symbol = job->wanted[at++].symbol;
		left += names[i].symbol == NULL;
	}
	return left > 0 && job->done ? -ENOMEM : left;
}

static long find_symbols(struct tdt__modules *modules, struct tdt__name *names, size_t n,
			 uint64_t deadline)
{
	size_t unknown = find_known(names, n);
	struct job *job;
	long left;

	if (unknown == 0)
		return 0;
	need_namer();
	if (namer.busy && tdt__clock() - namer.since > TDT__NAMER_TIME) /* no progress */
		return (long)unknown;
	job = new_job(modules, names, n, unknown);
	if (job == NULL)
		return -ENOMEM;
	enqueue(job);
	wait_job(job, deadline);
	left = take_symbols(job, names, n);
	unref_job(job);
	return left;
}

long tdt__namer_find(struct tdt__modules *modules, struct tdt__name *names, size_t n,
		     uint64_t deadline)
{
	long left;
	int cancel;

	/* Waiting and opening files are cancellation points. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&tdt__symbol_lock);
	left = find_symbols(modules, names, n, deadline);
	pthread_mutex_unlock(&tdt__symbol_lock);
	pthread_setcancelstate(cancel, NULL);
	return left;
}

const char *tdt__namer_function(struct tdt__modules *modules, uintptr_t address,
				uint64_t deadline)
{
	/* As if it were a return address, which is looked up one byte before. */
	struct tdt__name name = { tdt__modules_find(modules, address), address + 1, NULL };

	if (name.module != NULL) {
		tdt__module_path(name.module); /* looked up here, where no lock is held */
		tdt__namer_find(modules, &name, 1, deadline);
	}
	return name.symbol != NULL && name.symbol->n != 0
		       ? name.symbol->place[name.symbol->n - 1].function
		       : NULL;
}

void tdt__namer_begin(void)
{
	tdt__debugfile_by_environment();
	pthread_mutex_lock(&tdt__symbol_lock);
	need_namer();
	pthread_mutex_unlock(&tdt__symbol_lock);
}

void tdt__namer_forked(void)
{
	if (namer.busy)
		tdt__symbols_abandon();
	namer.wanted = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	namer.done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	namer.first = NULL;
	namer.running = false;
	namer.busy = false;
}
