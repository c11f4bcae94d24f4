/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The threads on which a runtime has functions called that block, and their queue of jobs. */

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <tdt/future.h>

struct tdt_rt;
struct tdt__job;

struct tdt__blocking {
	pthread_mutex_t lock; /* protects all of this, and the state of each job */
	pthread_cond_t come;  /* a job, or the end */
	pthread_cond_t gone;  /* the last thread */
	TAILQ_HEAD(, tdt__job) queue;
	unsigned queued, idle, threads;
	bool stopping;
};

void tdt__blocking_init(struct tdt__blocking *blocking);
void tdt__blocking_fini(struct tdt__blocking *blocking);

/* Take the jobs that no thread has begun out of the queue, and wait for the others. */
void tdt__blocking_stop(struct tdt__blocking *blocking);

/*
 * tdt_spawn_blocking(), whose task has the name `name` (may be NULL), which must stay as long as
 * `arg` does.
 */
struct tdt_future tdt__blocking_new(void (*job)(void *arg), void *arg, void (*arg_free)(void *arg),
				    const char *name);
