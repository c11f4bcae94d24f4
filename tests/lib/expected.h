/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_EXPECTED_H
#define TDT_TESTS_EXPECTED_H

/*
 * The tree that a capture must give.  Functions note where they are as they call on (HERE), and a
 * leaf makes of the notes the stack it expects to be captured with.
 */

#include <stddef.h>

#include <tdt/tree.h>

#include "lib/poll_now.h"

#define NOINLINE __attribute__((noinline))

/* The notes; and the tree made of them, NULL while there is no request. */
struct expected {
	struct tdt_frame at[16];
	unsigned depth;
	struct tdt_trace *trace;
};

extern struct expected expected;

/* Do `call` on this very line, noted. */
#define HERE(call)                                                                                 \
	do {                                                                                       \
		expected.at[expected.depth++] =                                                    \
		    (struct tdt_frame){ .size = sizeof(struct tdt_frame),                          \
					.kind = TDT_NODE_FRAME,                                    \
					.function = __func__,                                      \
					.line = __LINE__ };                                        \
		call;                                                                              \
		TDT_KEEP_FRAME();                                                                  \
		expected.depth--;                                                                  \
	} while (0)

/* The leaf is where the notes end. */
void expect_leaf(void);

/* Clone the waker in a frame of its own. */
void clone_here(struct tdt_context *cx);

/* Clone the waker in the caller's frame. */
#define CLONE(cx) HERE(expect_leaf(); tdt_waker_drop(tdt_waker_clone((cx)->waker)))

/*
 * From now on leaves are noted; until expect_same(), which compares what they noted with `trace`.
 */
void expect_begin(void);
void expect_same(const struct tdt_trace *trace);

/* How many nodes of `trace` are `function`. */
size_t nodes_of(const struct tdt_trace *trace, const char *function);

/*
 * Polls whose leaves are noted: one leaf; chain, which gets to it by chain_middle and chain_inner;
 * five leaves.
 */
tdt_poll_t leaf(void *state, struct tdt_context *cx);
tdt_poll_t other_leaf(void *state, struct tdt_context *cx);
tdt_poll_t chain(void *state, struct tdt_context *cx);
tdt_poll_t chain_middle(struct tdt_context *cx);
tdt_poll_t chain_inner(struct tdt_context *cx);
tdt_poll_t branches(void *state, struct tdt_context *cx);

/* A poll with a leaf and a future inside; its state is a struct nested. */
struct nested {
	struct tdt_future inner;
	void (*before)(void); /* the inner one is polled; may be NULL */
};

tdt_poll_t outer(void *state, struct tdt_context *cx);

/* Request both before the one poll that answers them.  The first argument is requested first. */
void ask_both(struct poll_now *task, struct tdt_handle *first, struct tdt_handle *second,
	      struct tdt_trace *traces[2]);

#endif
