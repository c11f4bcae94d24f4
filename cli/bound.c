// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What a command may take: see bound.h. */

#include "cli/bound.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitized.h"
#include "cli/tdt.h"

#define MOST_MAPPED ((rlim_t)16 << 30) /* bytes of address space; debug files are mapped */
#define MOST_MEMORY ((rlim_t)4 << 30)  /* bytes of memory that is the process's own */
#define NAMES_SECONDS 30 /* and as many for what is done without them */
#define BYTES_A_SECOND ((size_t)4 << 20) /* that are written at least, even compressed */

void bound_limit(int resource, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur <= most)
		return;
	limit.rlim_cur = most;
	setrlimit((__rlimit_resource_t)resource, &limit);
}

/* The other half of the machine's memory is for all others. */
void bound_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	rlim_t half = pages > 0 ? (rlim_t)pages / 2 * (rlim_t)page : MOST_MEMORY;

	if (TDT__ASAN || TDT__TSAN)
		return; /* these map terabytes */
	bound_limit(RLIMIT_AS, MOST_MAPPED);
	bound_limit(RLIMIT_DATA, half < MOST_MEMORY ? half : MOST_MEMORY);
}

/* Sequentially consistent: nothing else is shared with the thread. */
static _Atomic uint64_t ends; /* when the time is over; 0: there is no bound */
static const char *_Atomic unfinished;
static sem_t thread_runs;

#define BOUND_GRACE (2 * (uint64_t)TDT__SECOND)

/*
 * A thread, because a signal does not interrupt a read of memory that the target does not supply.
 * The end of the process does, and that of a parent ends its children (apart.c).  The time may
 * become longer meanwhile.
 */
static void *end_overdue(void *unused)
{
	static const char text[] = "tdt: reading the target took too long\n";
	const char *path;
	uint64_t end, now;

	(void)unused;
	sem_post(&thread_runs);
	while ((end = atomic_load(&ends)) != 0 && (now = tdt__clock()) < end + BOUND_GRACE)
		sleep((unsigned)((end + BOUND_GRACE - now) / TDT__SECOND) + 1);
	if (end == 0)
		return NULL;
	path = atomic_load(&unfinished);
	if (path != NULL)
		unlink(path);
	_exit(write(STDERR_FILENO, text, sizeof text - 1) > 0 ? TDT_TROUBLE : EXIT_BAD_INPUT);
}

/*
 * Signals are for the command's own thread, whose calls they interrupt.  That waits until the new
 * thread runs: while it begins, it may have the lock of a sanitizer's allocator, for which a child
 * of fork() would wait for ever.
 */
static void start_overseer(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sem_init(&thread_runs, 0, 0);
	if (pthread_create(&thread, NULL, end_overdue, NULL) == 0) {
		pthread_detach(thread);
		sem_wait(&thread_runs);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* What the command does apart ends by itself, before the thread ends it. */
void bound_time(unsigned seconds)
{
	ends = seconds != 0 ? tdt__clock() + seconds * (uint64_t)TDT__SECOND : 0;
	if (seconds != 0)
		start_overseer();
}

unsigned bound_left(unsigned most)
{
	uint64_t now = tdt__clock(), end = ends;
	uint64_t left = end > now ? (end - now) / TDT__SECOND + 1 : 0;

	return end == 0 || left > most ? most : (unsigned)left;
}

void bound_more(size_t bytes)
{
	if (ends != 0)
		ends += bytes / BYTES_A_SECOND * TDT__SECOND;
}

unsigned bound_names(void)
{
	unsigned left = bound_left(UINT32_MAX);

	if (ends == 0)
		return NAMES_SECONDS;
	return left > 2 * NAMES_SECONDS ? left - NAMES_SECONDS : left / 2 + 1;
}

static void remove_unfinished(int signo)
{
	const char *path = atomic_load(&unfinished);

	if (path != NULL)
		unlink(path);
	signal(signo, SIG_DFL);
	raise(signo);
}

/* A signal that is ignored, as nohup(1) has it, stays so. */
void bound_unfinished(const char *path)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction before;

	atomic_store(&unfinished, path);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (path != NULL && sigaction(signals[i], NULL, &before) == 0 &&
		    before.sa_handler == SIG_DFL)
			signal(signals[i], remove_unfinished);
}
