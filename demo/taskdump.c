// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Where is my task waiting?  The well-known example:
 *
 *	foo awaits bar, which joins fiz (awaits pending)
 *	                        and buz (awaits baz, which awaits pending).
 *
 * A thread polls the task (their_runtime.c); the main thread prints the task's backtrace to stderr.
 */

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include <tdt/async.h>
#include <tdt/combine.h>
#include <tdt/trace.h>

#include "help.h"
#include "their_runtime.h"

static const char taskdump_help[] =
	"Usage: taskdump [--help]\n"
	"Print where a task waits that awaits others.\n";

/* The leaf: it waits for ever.  Like any leaf it keeps a clone of the waker for a later wake-up. */
struct pending {
	const struct tdt_waker *waker;
};

static tdt_poll_t pending_poll(void *state, struct tdt_context *cx)
{
	struct pending *pending = state;

	if (!tdt_waker_will_wake(pending->waker, cx->waker)) {
		tdt_waker_drop(pending->waker);
		pending->waker = tdt_waker_clone(cx->waker);
	}
	if (pending->waker == NULL) /* nobody could wake this task again */
		return TDT_PANICKED;
	return TDT_PENDING;
}

static void pending_drop(void *state)
{
	struct pending *pending = state;

	tdt_waker_drop(pending->waker);
	free(pending);
}

static struct tdt_future pending(void)
{
	struct pending *pending = calloc(1, sizeof(*pending));

	if (pending == NULL)
		return TDT_FUTURE_NONE;
	return (struct tdt_future){ pending, pending_poll, pending_drop };
}

/* The async functions.  None of them has variables, so all have this state. */
struct plain {
	struct tdt_async async;
};

static tdt_poll_t baz_poll(void *state, struct tdt_context *cx)
{
	struct plain *baz = state;

	TDT_BEGIN(&baz->async, cx);
	TDT_AWAIT(pending());
	TDT_END();
}

static struct tdt_future baz(void)
{
	return TDT_ASYNC_NEW(baz_poll, (struct plain){ 0 });
}

static tdt_poll_t buz_poll(void *state, struct tdt_context *cx)
{
	struct plain *buz = state;

	TDT_BEGIN(&buz->async, cx);
	TDT_AWAIT(baz());
	TDT_END();
}

static struct tdt_future buz(void)
{
	return TDT_ASYNC_NEW(buz_poll, (struct plain){ 0 });
}

static tdt_poll_t fiz_poll(void *state, struct tdt_context *cx)
{
	struct plain *fiz = state;

	TDT_BEGIN(&fiz->async, cx);
	TDT_AWAIT(pending());
	TDT_END();
}

static struct tdt_future fiz(void)
{
	return TDT_ASYNC_NEW(fiz_poll, (struct plain){ 0 });
}

static struct tdt_future fiz_and_buz(void)
{
	struct tdt_future both[] = { fiz(), buz() };
	struct tdt_future joined = tdt_join_all(both, 2);

	if (tdt_future_is_none(&joined)) {
		tdt_future_drop(&both[0]);
		tdt_future_drop(&both[1]);
	}
	return joined;
}

static tdt_poll_t bar_poll(void *state, struct tdt_context *cx)
{
	struct plain *bar = state;

	TDT_BEGIN(&bar->async, cx);
	TDT_AWAIT(fiz_and_buz());
	TDT_END();
}

static struct tdt_future bar(void)
{
	return TDT_ASYNC_NEW(bar_poll, (struct plain){ 0 });
}

static tdt_poll_t foo_poll(void *state, struct tdt_context *cx)
{
	struct plain *foo = state;

	TDT_BEGIN(&foo->async, cx);
	TDT_AWAIT(bar());
	TDT_END();
}

static struct tdt_future foo(void)
{
	return TDT_ASYNC_NEW(foo_poll, (struct plain){ 0 });
}

/* Request a backtrace of the task, and print it. */
static int print_backtrace(struct tdt_handle *handle)
{
	struct tdt_trace *trace = tdt_backtrace(handle);
	int error;

	if (trace == NULL) {
		perror("taskdump: tdt_backtrace");
		return -1;
	}
	error = tdt_trace_print(trace, stderr);
	tdt_trace_free(trace);
	return error;
}

int main(int argc, char **argv)
{
	int error = read_options(argc, argv, taskdump_help);
	struct their_runtime *runtime;
	struct tdt_traced traced;

	if (error >= 0)
		return error;
	traced = tdt_traced_with(foo(), TDT_TASK_ATTR(.name = "foo"));
	setlocale(LC_ALL, ""); /* in a UTF-8 locale the tree is drawn in UTF-8 */
	if (traced.handle == NULL) {
		perror("taskdump: tdt_traced_with");
		tdt_future_drop(&traced.future);
		return EXIT_FAILURE;
	}
	runtime = their_runtime_new(1);
	if (runtime != NULL && their_runtime_spawn(runtime, traced.future) == 0) {
		error = print_backtrace(traced.handle);
	} else {
		perror("taskdump: their_runtime");
		tdt_future_drop(&traced.future);
	}
	their_runtime_free(runtime);
	tdt_handle_unref(traced.handle);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
