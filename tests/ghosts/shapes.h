/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_GHOSTS_SHAPES_H
#define TESTS_GHOSTS_SHAPES_H

/*
 * Shapes of tasks in which leaves register their waker first and look second, so that one poll runs
 * through leaves that are ready and stops at others.  Each language has a program with its shapes;
 * harness.c drives them, knows which leaves wait, and compares the trees with that.
 */

#include <stdbool.h>

#include <tdt/tdt.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Leaves have the numbers 1 to 9, and their poll functions are named after these.  Those of one
 * number share items.  Number 0 is for leaves that register with another waker than the task's, so
 * that the library can't know of them.
 */
#define GHOSTS_LEAVES 10

/* What of a shape the library can't know. */
enum ghosts_limit {
	KNOWN,
	UNKNOWN_CALLER, /* it goes on in a function that may be a combinator, for all that is seen
			 */
	HELPER /* a leaf registers twice by a helper: for all that is seen it may be two leaves */
};

struct shape {
	const char *name;
	struct tdt_future (*make)(void);
	unsigned given[GHOSTS_LEAVES]; /* items that leaves get before the poll that is looked at */
	unsigned want;		       /* leaves that wait after that poll */
	enum ghosts_limit limit;
};

/* Run all shapes, or those that `argv` names.  Returns the status to exit with. */
int ghosts_main(int argc, char **argv, const char *language, const struct shape *shapes, size_t n);

/*
 * What a leaf calls in its poll: take an item of leaf `n`, or begin to wait; and when it is dropped
 * while it waits. `waits` is the leaf's own note.
 */
bool ghosts_take(unsigned n, bool *waits);
void ghosts_gone(unsigned n, bool *waits);

/* Whether waker slots are emptied when their leaf has ended.  If not, the resource keeps what is in
 * them to the end. */
bool ghosts_empties(void);

/* A program whose leaves have slots of its own: wake all that slots of leaf `n` hold, and return
 * how many; empty all. */
struct slots {
	unsigned (*wake)(unsigned n);
	void (*clear)(void);
};
void ghosts_own_slots(const struct slots *slots);

/* --- Leaves in C and C++ --------------------------------------------------- */

struct ghosts_slot;

struct ghosts_leaf {
	unsigned n;
	bool waits;
	struct ghosts_slot *slot[2]; /* the second: for writing */
};

struct ghosts_leaf *ghosts_leaf_new(unsigned n);
void ghosts_keep(struct ghosts_leaf *leaf, int slot, const struct tdt_waker *clone);
bool ghosts_look(struct ghosts_leaf *leaf, unsigned n);
void ghosts_leaf_drop(void *state);

/* Register in a slot of the leaf, by a function that is inlined. */
static inline __attribute__((always_inline)) void ghosts_register(struct ghosts_leaf *leaf,
								  int slot, struct tdt_context *cx)
{
	ghosts_keep(leaf, slot, tdt_waker_clone(cx->waker));
}

/* Define leaf_N(), which makes a leaf of number N that registers so, and then looks. */
#define LEAF(number, ...)                                                                          \
	static tdt_poll_t leaf_##number##_poll(void *state, struct tdt_context *cx)                \
	{                                                                                          \
		struct ghosts_leaf *leaf = (struct ghosts_leaf *)state;                            \
                                                                                                   \
		__VA_ARGS__;                                                                       \
		return ghosts_look(leaf, number) ? TDT_READY : TDT_PENDING;                        \
	}                                                                                          \
	static inline struct tdt_future leaf_##number(void)                                        \
	{                                                                                          \
		struct tdt_future leaf = { ghosts_leaf_new(number), leaf_##number##_poll,          \
					   ghosts_leaf_drop };                                     \
                                                                                                   \
		return leaf;                                                                       \
	}

LEAF(1, ghosts_keep(leaf, 0, tdt_waker_clone(cx->waker)))
LEAF(2, ghosts_keep(leaf, 0, tdt_waker_clone(cx->waker)))
LEAF(3, ghosts_keep(leaf, 0, tdt_waker_clone(cx->waker)))
LEAF(4, ghosts_keep(leaf, 0, tdt_waker_clone(cx->waker)))
LEAF(5, ghosts_keep(leaf, 0, tdt_waker_clone(cx->waker)))
/* For reading, and for writing. */
LEAF(8, ghosts_register(leaf, 0, cx), ghosts_register(leaf, 1, cx))
LEAF(9, ghosts_keep(leaf, 0, tdt_waker_clone(cx->waker)),
     ghosts_keep(leaf, 1, tdt_waker_clone(cx->waker)))

#ifdef __cplusplus
}
#endif

#endif
