/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_TRUTH_H
#define TESTS_TRUTH_H

/*
 * What a generated program (generate.c) is made of beside its own functions: leaves that know
 * whether they wait, and combinators' states.  run.c has the functions, and main(): it polls the
 * future of the program and prints the trees that the library gives (`trace`), or only polls, for
 * gdb to look at (`truth`, frames.py).
 */

#include <stdbool.h>
#include <stddef.h>

#include <tdt/async.h>
#include <tdt/combine.h>
#include <tdt/future.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The program. */
struct tdt_future truth_root(void);
extern const unsigned truth_plain_polls; /* a bit for each poll that nobody requests a tree of */

/* A leaf is pending at each of its first `polls` polls, then ready.  FOR_EVER is more than all. */
struct truth_leaf;
#define TRUTH_FOR_EVER 1000
enum truth_slot {
	TRUTH_EMPTIED, /* the leaf drops its clone when it is ready or dropped */
	TRUTH_KEPT     /* the clone outlives the leaf, as in a resource that many leaves use */
};
struct tdt_future truth_leaf_new(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), int polls,
				 enum truth_slot slot);

/* For the leaf's poll: it begins; it has cloned the waker; whether it is ready. */
void truth_leaf_polled(struct truth_leaf *leaf);
void truth_leaf_cloned(struct truth_leaf *leaf, const struct tdt_waker *clone);
bool truth_leaf_ready(struct truth_leaf *leaf);

/* Where a coroutine, or another future, awaits; `parent` is where that is awaited itself. */
struct truth_here {
	const struct truth_here *parent;
	const char *function, *file;
	int line;
};

/* The same as truth_leaf_cloned(), of a leaf that knows its awaiter, in that line. */
void truth_leaf_is_at(struct truth_leaf *leaf, const struct truth_here *parent);
void truth_leaf_cloned_at(struct truth_leaf *leaf, const struct tdt_waker *clone,
			  const char *function, const char *file, int line);

/* The state of a combinator that is written by hand. */
struct truth_children {
	int step;
	int n;
	struct tdt_future child[6];
};
struct tdt_future truth_children_new(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), int n,
				     ...);
void truth_children_drop(struct truth_children *children);

/* A future that is traced itself, as one that was spawned would be. */
struct tdt_future truth_traced(struct tdt_future future);

/* The compiler can't know what these do: they do nothing, and give 0. */
int truth_use(const void *memory);
int truth_zero(void);

#ifdef __cplusplus
}
#endif

#endif
