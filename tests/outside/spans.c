// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process for the program tdt to look at: the task "request" has a trace context, "query" has
 * inherited it, and "other" has none.  It prints "ready", and waits until its standard input ends.
 */

#include <config.h>

#include <stdio.h>
#include <unistd.h>

#include <tdt/tdt.h>

#include "lib/idle.h"
#include "lib/must.h"

static struct tdt_traced request, query, other;

static struct tdt_traced spawn(const char *name, tdt_poll_t (*poll)(void *, struct tdt_context *))
{
	const struct tdt_future future = { .poll = poll, .drop = drop_nothing };
	struct tdt_traced traced = tdt_traced_with(future, TDT_TASK_ATTR(.name = name));

	MUST(traced.handle != NULL);
	return traced;
}

static tdt_poll_t stay(void *state, struct tdt_context *cx)
{
	(void)state;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static tdt_poll_t serve(void *state, struct tdt_context *cx)
{
	static const struct tdt_trace_context context = {
		.trace_id = { 0x0b, 0xf9, [15] = 0x36 }, .span_id = { 0x12, [7] = 0xb7 }, .flags = 1
	};

	if (query.handle == NULL) {
		MUST(tdt_task_context(NULL, &context) == 0);
		query = spawn("query", stay);
	}
	return stay(state, cx);
}

int main(void)
{
	struct tdt_context cx = { &idle_waker };
	char byte;

	request = spawn("request", serve);
	other = spawn("other", stay);
	tdt_future_poll(&request.future, &cx);
	tdt_future_poll(&other.future, &cx);
	tdt_future_poll(&query.future, &cx);
	puts("ready");
	fflush(stdout);
	MUST(read(STDIN_FILENO, &byte, 1) == 0);
	end_traced(&query);
	end_traced(&other);
	end_traced(&request);
	return 0;
}
