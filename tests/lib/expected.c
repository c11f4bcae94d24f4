// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What a capture is expected to give, and the polls to be captured. */

#include <config.h>

#include "lib/expected.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/combine.h>

struct expected expected;

/* --- Expecting --------------------------------------------------------------- */

void expect_leaf(void)
{
	const struct tdt_node *node = NULL;

	for (unsigned i = 0; expected.trace != NULL && i < expected.depth; i++)
		node =
		    tdt_trace_add(expected.trace, node, &expected.at[i], i == expected.depth - 1);
}

NOINLINE void clone_here(struct tdt_context *cx)
{
	expect_leaf();
	tdt_waker_drop(tdt_waker_clone(cx->waker));
}

void expect_begin(void)
{
	struct tdt_task_info info = { .size = sizeof info };

	expected.trace = tdt_trace_new(&info);
	ck_assert_ptr_nonnull(expected.trace);
}

void expect_same(const struct tdt_trace *trace)
{
	char *got = tree_text(trace), *wanted = tree_text(expected.trace);

	ck_assert_str_eq(got, wanted);
	ck_assert_str_ne(got, "");
	free(got);
	free(wanted);
	tdt_trace_free(expected.trace);
	expected.trace = NULL;
}

size_t nodes_of(const struct tdt_trace *trace, const char *function)
{
	size_t n = 0;

	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node))
		n += tdt_node_frame(node)->function != NULL &&
		     strcmp(tdt_node_frame(node)->function, function) == 0;
	return n;
}

/* --- Polls ------------------------------------------------------------------- */

NOINLINE tdt_poll_t leaf(void *state, struct tdt_context *cx)
{
	(void)state;
	CLONE(cx);
	return TDT_PENDING;
}

NOINLINE tdt_poll_t other_leaf(void *state, struct tdt_context *cx)
{
	(void)state;
	CLONE(cx);
	return TDT_PENDING;
}

NOINLINE tdt_poll_t chain_inner(struct tdt_context *cx)
{
	tdt_poll_t result;

	HERE(result = leaf(NULL, cx));
	return result;
}

NOINLINE tdt_poll_t chain_middle(struct tdt_context *cx)
{
	tdt_poll_t result;

	HERE(result = chain_inner(cx));
	return result;
}

NOINLINE tdt_poll_t chain(void *state, struct tdt_context *cx)
{
	tdt_poll_t result;

	(void)state;
	HERE(result = chain_middle(cx));
	return result;
}

NOINLINE tdt_poll_t branches(void *state, struct tdt_context *cx)
{
	(void)state;
	HERE(leaf(NULL, cx));
	HERE(chain_middle(cx));
	HERE(other_leaf(NULL, cx));
	HERE(leaf(NULL, cx));
	HERE(chain_inner(cx));
	return TDT_PENDING;
}

NOINLINE tdt_poll_t outer(void *state, struct tdt_context *cx)
{
	struct nested *nested = state;

	leaf(NULL, cx);
	if (nested->before != NULL)
		nested->before();
	tdt_future_poll(&nested->inner, cx);
	return TDT_PENDING;
}

/* --- Two questions at once --------------------------------------------------- */

void ask_both(struct poll_now *task, struct tdt_handle *first, struct tdt_handle *second,
	      struct tdt_trace *traces[2])
{
	struct poll_now requester = { 0 };
	struct tdt_future asks[2] = { tdt_backtrace_async(first, NULL, &traces[0], NULL),
				      tdt_backtrace_async(second, NULL, &traces[1], NULL) };

	traces[0] = traces[1] = NULL;
	task->held = true;
	poll_now_start(&requester, tdt_join_all(asks, 2));
	ck_assert_int_eq(requester.result, TDT_PENDING);
	poll_now(task);
	ck_assert_int_eq(requester.result, TDT_READY);
	ck_assert(traces[0] != NULL && traces[1] != NULL);
	poll_now_end(&requester);
	task->held = false;
}
