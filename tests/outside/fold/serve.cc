// SPDX-License-Identifier: Apache-2.0 OR MIT
// For fold.sh: a program whose task waits in a library of headers, behind std::function.
#include <cstdio>
#include <functional>

#include <pool.hpp>
#include <tdt/print.h>
#include <tdt/rt/runtime.h>

static pool::socket<int> peer;

__attribute__((noinline)) static tdt_poll_t greet(tdt_context *cx)
{
	tdt_poll_t poll = peer.read(cx); // greet
	asm volatile("");
	return poll;
}

static tdt_poll_t serve(void *, tdt_context *cx)
{
	std::function<tdt_poll_t(tdt_context *)> function = greet;
	tdt_poll_t poll = pool::initiate(function, cx); // serve
	asm volatile("");
	return poll;
}

int main(int argc, char **)
{
	tdt_print_options options = {};
	struct tdt_rt *rt = tdt_rt_new(nullptr);
	tdt_handle *task = tdt_rt_spawn(rt, { nullptr, serve, [](void *) {} }, nullptr);
	struct tdt_trace *trace = tdt_backtrace(task);

	options.size = sizeof(options);
	options.utf8 = TDT_PRINT_NO;
	options.full = argc > 1;
	if (trace == nullptr || tdt_trace_print_with(trace, stdout, &options) != 0)
		perror("no trace");
	tdt_trace_free(trace);
	tdt_handle_unref(task);
	tdt_rt_free(rt);
	if (pool::kept != nullptr)
		tdt_waker_drop(pool::kept);
}
