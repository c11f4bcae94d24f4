// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Preloaded into a test (make check-delays): now and then a thread rests where it starts, starts
 * another, takes or frees a lock, or has woken somebody; and some threads only run when no other
 * wants to, so that a thread that wakes another is overtaken by it.  All that may happen on a busy
 * machine, too, but there once in a thousand runs.
 *
 * What is chosen depends on the seed in TDT_TEST_SEED, and on how many choices went before: as good
 * as the same in each run until threads compete.
 */

#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OFTEN 3     /* one in so many, at the start of threads */
#define SOMETIMES 6  /* after a wake-up */
#define SELDOM 40   /* at a lock */

static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static int (*real_lock)(pthread_mutex_t *);
static int (*real_unlock)(pthread_mutex_t *);
static int (*real_post)(sem_t *);
static int (*real_setname)(pthread_t, const char *);
static long (*real_syscall)(long, ...);

static uint64_t seed;
static _Atomic uint64_t choices;

static void *real(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (function == NULL)
		abort();
	return function;
}

/* Before all others: constructors of libraries take locks. */
static void prepare(void)
{
	const char *given = getenv("TDT_TEST_SEED");

	if (real_syscall != NULL)
		return;
	seed = given != NULL ? strtoull(given, NULL, 0) : 1;
	real_create = real("pthread_create");
	real_lock = real("pthread_mutex_lock");
	real_unlock = real("pthread_mutex_unlock");
	real_post = real("sem_post");
	real_setname = real("pthread_setname_np");
	real_syscall = real("syscall");
}

static __attribute__((constructor)) void prepared(void)
{
	prepare();
}

/* A number below `n` (splitmix64). */
static uint64_t choose(uint64_t n)
{
	/* Relaxed: it only counts. */
	uint64_t x = seed + 0x9e3779b97f4a7c15 *
				atomic_fetch_add_explicit(&choices, 1, memory_order_relaxed);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return ((x ^ (x >> 31)) >> 16) % n;
}

/* From its first rest on, this thread shall only run when no other wants to. */
static __thread bool gives_way;

static __thread bool is_awaited; /* within a limited time: the thread never rests */

/* One time in `n`, for up to 1.5 ms or, a few times, up to 30. */
static void rest(unsigned n)
{
	struct sched_param none = { 0 };
	struct timespec time = { 0, 0 };
	int saved = errno;

	if (is_awaited)
		return;
	if (gives_way)
		sched_setscheduler(0, SCHED_IDLE, &none);
	gives_way = false;
	if (choose(n) != 0)
		return;
	time.tv_nsec = (long)choose(choose(8) == 0 ? 30000000 : 1500000);
	real_syscall(SYS_nanosleep, &time, NULL);
	errno = saved;
}

struct start {
	void *(*function)(void *);
	void *argument;
};

/* The argument is never freed: with free(), glibc reserves an arena for the thread. */
static void *start(void *argument)
{
	struct start it = *(struct start *)argument;

	rest(OFTEN);
	gives_way = choose(3) == 0;
	return it.function(it.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
		   void *argument)
{
	struct start *it;
	int error;

	prepare();
	it = malloc(sizeof *it);
	if (it == NULL)
		return EAGAIN;
	*it = (struct start){ function, argument };
	error = real_create(thread, attr, start, it);
	if (error != 0)
		free(it);
	rest(OFTEN);
	return error;
}

/* Requesters wait for the namer and the reporter so (symbolize/namer.h, host/unloads.h). */
int pthread_setname_np(pthread_t thread, const char *name)
{
	prepare();
	if (pthread_equal(thread, pthread_self()) &&
	    (strcmp(name, "tdt-names") == 0 || strcmp(name, "tdt-unloads") == 0))
		is_awaited = true;
	return real_setname(thread, name);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	prepare();
	rest(2 * SELDOM);
	return real_lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int error;

	prepare();
	error = real_unlock(mutex);
	rest(SELDOM);
	return error;
}

int sem_post(sem_t *semaphore)
{
	int result;

	prepare();
	result = real_post(semaphore);
	rest(SOMETIMES);
	return result;
}

/* As libtdt calls the futexes. */
long syscall(long number, ...)
{
	long argument[6], result;
	va_list list;

	prepare();
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	result = real_syscall(number, argument[0], argument[1], argument[2], argument[3],
			      argument[4], argument[5]);
	if (number == SYS_futex)
		rest(SOMETIMES);
	return result;
}
