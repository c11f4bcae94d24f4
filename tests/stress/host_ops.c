// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See host_ops.h. */

#include <config.h>

#include "stress/host_ops.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/must.h"

#define THREADS 128

/* One thread writes, the watchdog reads: what it finds may be a moment old. */
static struct op {
	atomic_bool taken;
	_Atomic(const char *) what; /* NULL: nothing */
	atomic_uint_fast64_t since;
	atomic_int thread;
} ops[THREADS];

static _Thread_local struct op *mine;
static atomic_uint_fast64_t longest;
static _Atomic(const char *) longest_what;

uint64_t ops_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct op *join(void)
{
	for (int i = 0; i < THREADS; i++) {
		if (atomic_exchange(&ops[i].taken, true))
			continue;
		atomic_store(&ops[i].thread, gettid());
		return &ops[i];
	}
	MUST(!"there are more threads than expected");
	return NULL;
}

void ops_begin(const char *what)
{
	if (mine == NULL)
		mine = join();
	atomic_store(&mine->since, ops_now());
	atomic_store(&mine->what, what);
}

void ops_end(void)
{
	const char *what = atomic_exchange(&mine->what, NULL);
	uint64_t took = ops_now() - atomic_load(&mine->since);

	if (took > atomic_load(&longest)) {
		atomic_store(&longest, took);
		atomic_store(&longest_what, what);
	}
}

void ops_leave(void)
{
	if (mine != NULL)
		atomic_store(&mine->taken, false);
	mine = NULL;
}

uint64_t ops_longest(const char **what)
{
	*what = atomic_load(&longest_what);
	return atomic_load(&longest);
}

static void print_all(uint64_t now)
{
	for (int i = 0; i < THREADS; i++) {
		const char *what = atomic_load(&ops[i].what);

		if (what != NULL)
			printf("# thread %d: %s, for %.3f s\n", atomic_load(&ops[i].thread), what,
			       (double)(now - atomic_load(&ops[i].since)) / 1e9);
	}
	fflush(stdout);
}

void ops_look(unsigned limit_s)
{
	uint64_t now = ops_now();

	for (int i = 0; i < THREADS; i++) {
		uint64_t since = atomic_load(&ops[i].since);
		const char *what = atomic_load(&ops[i].what);

		if (what == NULL || now < since || now - since < limit_s * UINT64_C(1000000000) ||
		    atomic_load(&ops[i].since) != since)
			continue;
		printf("# hangs: %s, for %.0f s; all that goes on:\n", what,
		       (double)(now - since) / 1e9);
		print_all(now);
		abort();
	}
}
