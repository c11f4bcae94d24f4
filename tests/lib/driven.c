// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A driver, and tasks that the test polls. */

#include <config.h>

#include "lib/driven.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "lib/must.h"
#include "runtime/driver.h"
#include "runtime/rt.h"

/* --- The driver --------------------------------------------------------------- */

void driven_setup(void)
{
	MUST(tdt__driver_new(&tdt__current.driver, NULL) == 0);
}

void driven_stop(void)
{
	tdt__driver_stop(tdt__current.driver);
}

void driven_teardown(void)
{
	driven_stop();
	tdt__driver_unref(tdt__current.driver);
	tdt__current.driver = NULL;
}

struct tdt__driver *driven_driver(void)
{
	return tdt__current.driver;
}

void driven_use(struct tdt__driver *driver)
{
	tdt__current.driver = driver;
}

/* --- Tasks -------------------------------------------------------------------- */

struct driven {
	struct tdt_waker waker; /* first; a clone of it is one more reference */
	atomic_int refs;	/* the wakers, and the test: they keep the memory */
	atomic_int wakers;
	atomic_int wakes;
	sem_t woken;
	struct tdt_future future;
};

static struct driven *of(const struct tdt_waker *waker)
{
	return (struct driven *)(uintptr_t)waker;
}

static const struct tdt_waker *clone_driven(const struct tdt_waker *waker)
{
	of(waker)->refs++;
	of(waker)->wakers++;
	return waker;
}

static void unref(struct driven *task)
{
	if (--task->refs != 0)
		return;
	sem_destroy(&task->woken);
	free(task);
}

static void drop(const struct tdt_waker *waker)
{
	of(waker)->wakers--;
	unref(of(waker));
}

static void wake_by_ref(const struct tdt_waker *waker)
{
	of(waker)->wakes++;
	sem_post(&of(waker)->woken);
}

static void wake(const struct tdt_waker *waker)
{
	of(waker)->wakers--; /* first, since the woken thread counts them */
	wake_by_ref(waker);
	unref(of(waker));
}

struct driven *driven_new(struct tdt_future future)
{
	static const struct tdt_waker_vtable vtable = { clone_driven, wake, wake_by_ref, drop };
	struct driven *task = calloc(1, sizeof(*task));

	MUST(task != NULL);
	MUST(!tdt_future_is_none(&future));
	task->waker.vtable = &vtable;
	task->refs = 1;
	task->future = future;
	sem_init(&task->woken, 0, 0);
	return task;
}

tdt_poll_t driven_poll(struct driven *task)
{
	struct tdt_context cx = { &task->waker };

	return tdt_future_poll(&task->future, &cx);
}

void driven_wait(struct driven *task)
{
	while (sem_wait(&task->woken) != 0)
		MUST(errno == EINTR);
}

int driven_wakes(struct driven *task)
{
	return task->wakes;
}

int driven_wakers(struct driven *task)
{
	return task->wakers;
}

void driven_end(struct driven *task)
{
	tdt_future_drop(&task->future);
	unref(task);
}

tdt_poll_t drive(struct tdt_future future)
{
	struct driven *task = driven_new(future);
	tdt_poll_t result;

	while ((result = driven_poll(task)) == TDT_PENDING)
		driven_wait(task);
	driven_end(task);
	return result;
}

uint64_t driven_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
