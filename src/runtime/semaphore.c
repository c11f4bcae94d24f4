// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Semaphores and notifications. */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>
#include <tdt/rt/sync.h>

#include "base/hold.h"
#include "base/result.h"
#include "runtime/gate.h"
#include "runtime/name.h"

/* A struct tdt_notify is this, too. */
struct tdt_semaphore {
	pthread_mutex_t lock;
	struct tdt__gate gate; /* under `lock` */
	char *name;	       /* set before a task waits; NULL: none */
};

struct tdt_semaphore *tdt_semaphore_new(size_t permits)
{
	struct tdt_semaphore *semaphore = calloc(1, sizeof *semaphore);

	if (semaphore == NULL)
		return NULL;
	pthread_mutex_init(&semaphore->lock, NULL);
	tdt__gate_init(&semaphore->gate, permits);
	return semaphore;
}

int tdt_semaphore_set_name(struct tdt_semaphore *semaphore, const char *name)
{
	return tdt__name_set(semaphore != NULL ? &semaphore->name : NULL, name);
}

void tdt_semaphore_free(struct tdt_semaphore *semaphore)
{
	if (semaphore == NULL)
		return;
	pthread_mutex_destroy(&semaphore->lock);
	free(semaphore->name);
	free(semaphore);
}

bool tdt_semaphore_try_acquire(struct tdt_semaphore *semaphore)
{
	if (semaphore == NULL) {
		errno = EINVAL;
		return false;
	}
	TDT__HOLD(&semaphore->lock);
	return semaphore->gate.permits != 0 && semaphore->gate.permits-- != 0;
}

/* Add a permit, unless there are `most`. */
static int add_permit(struct tdt_semaphore *semaphore, size_t most)
{
	const struct tdt_waker *waker = NULL;

	if (semaphore == NULL)
		return tdt__result(-EINVAL);
	pthread_mutex_lock(&semaphore->lock);
	if (semaphore->gate.permits < most)
		waker = tdt__gate_admit(&semaphore->gate);
	pthread_mutex_unlock(&semaphore->lock);
	tdt_waker_wake(waker);
	return 0;
}

int tdt_semaphore_release(struct tdt_semaphore *semaphore)
{
	return add_permit(semaphore, SIZE_MAX);
}

/* --- The future that waits for a permit ------------------------------------------- */

struct acquiring {
	struct tdt__gate_leaf leaf;
	struct tdt_semaphore *semaphore; /* not used once the future has ended */
	enum tdt_wait_kind kind;
};

static bool pass_semaphore(void *state)
{
	struct acquiring *acquiring = state;

	TDT__HOLD(&acquiring->semaphore->lock);
	return tdt__gate_pass(&acquiring->semaphore->gate, &acquiring->leaf.place);
}

static void report_semaphore(void *state)
{
	const struct acquiring *acquiring = state;

	tdt_leaf_waits_on_named(acquiring->kind, acquiring->semaphore, 0,
				acquiring->semaphore->name);
}

TDT__LEAF(tdt_semaphore_acquire, tdt__gate_leaf_poll, pass_semaphore, report_semaphore)
TDT__LEAF(tdt_notify_wait, tdt__gate_leaf_poll, pass_semaphore, report_semaphore)

static void drop_acquiring(void *state)
{
	struct acquiring *acquiring = state;

	tdt__gate_leave(&acquiring->leaf, &acquiring->semaphore->gate,
			&acquiring->semaphore->lock);
	free(acquiring);
}

static struct tdt_future acquiring_new(struct tdt_semaphore *semaphore, enum tdt_wait_kind kind,
				       tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	const struct acquiring acquiring = { .semaphore = semaphore, .kind = kind };

	if (semaphore == NULL)
		return tdt__no_future(-EINVAL);
	return tdt__future_new(&acquiring, sizeof acquiring, poll, drop_acquiring);
}

struct tdt_future tdt_semaphore_acquire(struct tdt_semaphore *semaphore)
{
	return acquiring_new(semaphore, TDT_WAIT_SEMAPHORE, tdt_semaphore_acquire_poll);
}

/* --- Notifications: a semaphore without permits ----------------------------------- */

struct tdt_notify *tdt_notify_new(void)
{
	return (struct tdt_notify *)tdt_semaphore_new(0);
}

int tdt_notify_set_name(struct tdt_notify *notify, const char *name)
{
	return tdt_semaphore_set_name((struct tdt_semaphore *)notify, name);
}

void tdt_notify_free(struct tdt_notify *notify)
{
	tdt_semaphore_free((struct tdt_semaphore *)notify);
}

int tdt_notify_one(struct tdt_notify *notify)
{
	return add_permit((struct tdt_semaphore *)notify, 1);
}

int tdt_notify_all(struct tdt_notify *notify)
{
	struct tdt_semaphore *ours = (struct tdt_semaphore *)notify;

	if (ours == NULL)
		return tdt__result(-EINVAL);
	tdt__gate_release(&ours->gate, &ours->lock);
	return 0;
}

struct tdt_future tdt_notify_wait(struct tdt_notify *notify)
{
	return acquiring_new((struct tdt_semaphore *)notify, TDT_WAIT_NOTIFICATION,
			     tdt_notify_wait_poll);
}
