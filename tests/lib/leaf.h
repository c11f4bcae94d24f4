/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_LEAF_H
#define TESTS_LEAF_H

/*
 * A leaf for tests with threads: it waits until somebody opens it, and counts what is done to it.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include <tdt/future.h>

struct leaf {
	/* What the test sets beforehand: all zero is a leaf that waits. */
	tdt_poll_t result;					    /* when it is open */
	void (*on_poll)(struct leaf *leaf,
			struct tdt_context *cx); /* called in each poll; NULL: nothing */
	void (*on_drop)(struct leaf *leaf);      /* called in the drop; NULL: nothing */
	void *data;						    /* the test's */

	/* A poll from now on ends it; one that goes on, and has left its waker, does not. */
	atomic_bool open;
	atomic_int polls;
	atomic_int drops;		       /* counted when the drop is over */
	const struct tdt_waker *_Atomic waker; /* of the last pending poll, owned */
};

/* The future that is `leaf`, which must outlive it. */
struct tdt_future leaf_future(struct leaf *leaf);

/* Wake its task, if it waits. */
void leaf_wake(struct leaf *leaf);

/* Let it end. */
void leaf_open(struct leaf *leaf);

/* Sleep until `condition` holds; if it never does, Check ends the test. */
#define UNTIL(condition)                                                                           \
	while (!(condition))                                                                       \
	leaf_pause()

void leaf_pause(void);

#endif
