// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A task on this thread, and its tree as text. */

#include <config.h>

#include "lib/poll_now.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/tree.h>

/* --- The runtime ------------------------------------------------------------ */

static struct poll_now *task_of(const struct tdt_waker *waker)
{
	return (struct poll_now *)(uintptr_t)waker;
}

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void waker_wake(const struct tdt_waker *waker)
{
	struct poll_now *task = task_of(waker);

	if (!task->polling && !task->held)
		poll_now(task);
}

static void waker_drop(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { waker_clone, waker_wake, waker_wake, waker_drop };

void poll_now(struct poll_now *task)
{
	struct tdt_context cx = { &task->waker };

	task->polling = true;
	task->result = tdt_future_poll(&task->traced.future, &cx);
	task->polling = false;
}

void poll_now_start(struct poll_now *task, struct tdt_future future)
{
	*task = (struct poll_now){ .waker = { &vtable }, .traced = tdt_traced(future) };
	ck_assert_ptr_nonnull(task->traced.handle);
	poll_now(task);
}

struct tdt_trace *poll_now_ask(struct poll_now *task, uint32_t max_frames)
{
	struct tdt_backtrace_options options = { .size = sizeof options, .max_frames = max_frames };
	struct tdt_trace *trace = tdt_backtrace_with(task->traced.handle, &options);

	ck_assert_ptr_nonnull(trace);
	return trace;
}

void poll_now_end(struct poll_now *task)
{
	tdt_future_drop(&task->traced.future);
	tdt_handle_unref(task->traced.handle);
}

static void nothing(void *state)
{
	(void)state;
}

struct tdt_future future_of(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state)
{
	return (struct tdt_future){ state, poll, nothing };
}

/* --- The text ----------------------------------------------------------------- */

static bool is_plumbing(const struct tdt_node *node)
{
	const char *function = tdt_node_frame(node)->function;

	return function != NULL && strncmp(function, "tdt_", 4) == 0;
}

static unsigned depth_of(const struct tdt_node *node)
{
	unsigned depth = 0;

	while ((node = tdt_node_parent(node)) != NULL && tdt_node_parent(node) != NULL)
		depth += !is_plumbing(node);
	return depth;
}

/* Leaves of a node, and of the plumbing right below it. */
static uint32_t leaves_of(const struct tdt_node *node)
{
	uint32_t leaves = tdt_node_leaves(node);

	for (node = tdt_node_first_child(node); node != NULL; node = tdt_node_next_sibling(node))
		if (is_plumbing(node))
			leaves += leaves_of(node);
	return leaves;
}

static void print_node(const struct tdt_node *node, FILE *out)
{
	const struct tdt_frame *frame = tdt_node_frame(node);
	uint32_t leaves = leaves_of(node);

	fprintf(out, "%*s%s", (int)depth_of(node), "", frame->guessed ? "~" : "");
	if (frame->kind == TDT_NODE_CUT)
		fprintf(out, "cut %d", (int)frame->cut);
	else if (frame->function != NULL)
		fprintf(out, "%s:%u", frame->function, frame->line);
	else
		fprintf(out, "0x%llx", (unsigned long long)frame->pc);
	if (leaves != 0)
		fprintf(out, " x%u", leaves);
	fputc('\n', out);
}

char *tree_text(const struct tdt_trace *trace)
{
	const struct tdt_node *node = tdt_trace_root(trace);
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(node);
	ck_assert_ptr_nonnull(out);
	while ((node = tdt_node_next(node)) != NULL)
		if (!is_plumbing(node))
			print_node(node, out);
	fclose(out);
	return text;
}
