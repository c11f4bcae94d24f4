// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include "lib/bell.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "lib/must.h"

atomic_long bells;

static struct bell *bell_of(const struct tdt_waker *waker)
{
	return (struct bell *)(uintptr_t)waker;
}

static const struct tdt_waker *bell_clone(const struct tdt_waker *waker)
{
	atomic_fetch_add(&bell_of(waker)->refs, 1);
	return waker;
}

static void bell_ring(const struct tdt_waker *waker)
{
	sem_post(&bell_of(waker)->rung);
}

static void bell_drop(const struct tdt_waker *waker)
{
	struct bell *bell = bell_of(waker);

	if (atomic_fetch_sub(&bell->refs, 1) == 1) {
		sem_destroy(&bell->rung);
		free(bell);
		atomic_fetch_sub(&bells, 1);
	}
}

static void bell_wake(const struct tdt_waker *waker)
{
	bell_ring(waker);
	bell_drop(waker);
}

struct bell *bell_new(void)
{
	static const struct tdt_waker_vtable vtable = { bell_clone, bell_wake, bell_ring,
							bell_drop };
	struct bell *bell = calloc(1, sizeof(*bell));

	MUST(bell != NULL);
	atomic_fetch_add(&bells, 1);
	bell->waker.vtable = &vtable;
	atomic_init(&bell->refs, 1);
	sem_init(&bell->rung, 0, 0);
	return bell;
}

void bell_wait(struct bell *bell)
{
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += 30;
	while (sem_clockwait(&bell->rung, CLOCK_MONOTONIC, &deadline) != 0)
		MUST(errno == EINTR);
}
