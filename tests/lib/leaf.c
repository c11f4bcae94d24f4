// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A leaf for tests with threads. */

#include <config.h>

#include "lib/leaf.h"

#include <stddef.h>
#include <time.h>

#include "lib/must.h"

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	struct leaf *leaf = state;
	const struct tdt_waker *clone;
	bool open;

	MUST(atomic_load(&leaf->drops) == 0);
	atomic_fetch_add(&leaf->polls, 1);
	if (leaf->on_poll != NULL)
		leaf->on_poll(leaf, cx);
	clone = tdt_waker_clone(cx->waker);
	/*
	 * Before the waker is there: if a thread has seen the waker and opens the leaf, the next
	 * poll ends it.
	 */
	open = atomic_load(&leaf->open);
	tdt_waker_drop(atomic_exchange(&leaf->waker, clone));
	if (!open && atomic_load(&leaf->open))
		leaf_wake(leaf); /* a thread that opened it meanwhile may have found no waker */
	return open ? leaf->result : TDT_PENDING;
}

static void leaf_drop(void *state)
{
	struct leaf *leaf = state;

	if (leaf->on_drop != NULL)
		leaf->on_drop(leaf);
	tdt_waker_drop(atomic_exchange(&leaf->waker, NULL));
	MUST(atomic_fetch_add(&leaf->drops, 1) == 0);
}

struct tdt_future leaf_future(struct leaf *leaf)
{
	return (struct tdt_future){ leaf, leaf_poll, leaf_drop };
}

void leaf_wake(struct leaf *leaf)
{
	tdt_waker_wake(atomic_exchange(&leaf->waker, NULL));
}

void leaf_open(struct leaf *leaf)
{
	atomic_store(&leaf->open, true);
	leaf_wake(leaf);
}

void leaf_pause(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}
