// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include "pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "report.h"

struct job {
	struct job *next;
	void (*call)(void *data);
	void *data;
};

static struct pool {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct job *first, *last;
	bool stopping;
	pthread_t *threads;
	unsigned n_threads;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static void *work(void *unused)
{
	struct job *job;

	(void)unused;
	for (;;) {
		pthread_mutex_lock(&pool.lock);
		while (pool.first == NULL && !pool.stopping)
			pthread_cond_wait(&pool.more, &pool.lock);
		job = pool.first;
		if (job != NULL)
			pool.first = job->next;
		pthread_mutex_unlock(&pool.lock);
		if (job == NULL)
			return NULL;
		job->call(job->data);
		free(job);
	}
}

void pool_submit(void (*call)(void *data), void *data)
{
	struct job *job = malloc(sizeof *job);

	if (job == NULL)
		die("malloc");
	*job = (struct job){ NULL, call, data };
	pthread_mutex_lock(&pool.lock);
	if (pool.first == NULL)
		pool.first = job;
	else
		pool.last->next = job;
	pool.last = job;
	pthread_mutex_unlock(&pool.lock);
	pthread_cond_signal(&pool.more);
}

void pool_start(unsigned threads)
{
	pool.threads = calloc(threads, sizeof *pool.threads);
	if (pool.threads == NULL)
		die("calloc");
	pool.n_threads = threads;
	pool.stopping = false;
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&pool.threads[i], NULL, work, NULL) != 0)
			die("pthread_create");
}

void pool_stop(void)
{
	pthread_mutex_lock(&pool.lock);
	pool.stopping = true;
	pthread_mutex_unlock(&pool.lock);
	pthread_cond_broadcast(&pool.more);
	for (unsigned i = 0; i < pool.n_threads; i++)
		pthread_join(pool.threads[i], NULL);
	free(pool.threads);
}
