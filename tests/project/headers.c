// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A user's C program with every macro of the headers in it: headers.sh compiles it with many
 * warnings.
 */

#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

struct twice {
	struct tdt_async async;
	struct tdt_future first;
	int turns;
};

tdt_poll_t twice_poll(void *state, struct tdt_context *cx);
struct tdt_traced spawn(struct tdt_future first);
tdt_poll_t pass_on(void *state, struct tdt_context *cx);
tdt_poll_t no_await(void *state, struct tdt_context *cx);

tdt_poll_t twice_poll(void *state, struct tdt_context *cx)
{
	struct twice *twice = state;

	TDT_BEGIN(&twice->async, cx);
	TDT_PROBE(shop, none);
	TDT_PROBE(shop, polled, twice, twice->turns, "twice", 2.5, 2.5L, (_Bool)1, 'c', 1ULL);
	TDT_AWAIT(twice->first);
	for (twice->turns = 0; twice->turns < 2; twice->turns++) {
		struct tdt_future none = TDT_FUTURE_NONE;

		if (tdt_future_is_none(&none) && twice->turns > 0)
			TDT_AWAIT(tdt_join_all(&none, 0));
		else
			TDT_AWAIT(tdt_select(NULL, 0, NULL));
		if (twice->turns > 5)
			return TDT_PANICKED;
	}
	TDT_AWAIT(TDT_FUTURE_NONE); TDT_AWAIT(TDT_FUTURE_NONE);
	TDT_END();
}

tdt_poll_t no_await(void *state, struct tdt_context *cx)
{
	struct twice *twice = state;

	TDT_BEGIN(&twice->async, cx);
	twice->turns++;
	TDT_END();
}

tdt_poll_t pass_on(void *state, struct tdt_context *cx)
{
	struct tdt_future *child = state;
	tdt_poll_t result = child->poll(child->state, cx);

	TDT_KEEP_FRAME();
	return result;
}

struct tdt_handle *spawn_here(struct tdt_future first);

struct tdt_handle *spawn_here(struct tdt_future first)
{
	struct tdt_rt_config config = { .size = sizeof(config), .workers = TDT_RT_MAX_WORKERS };

	return tdt_rt_spawn(tdt_rt_new(&config), first, TDT_TASK_ATTR(.name = "here"));
}

struct tdt_traced spawn(struct tdt_future first)
{
	struct twice variable = { .first = TDT_FUTURE_NONE };
	struct tdt_traced traced =
	    tdt_traced(TDT_ASYNC_NEW(twice_poll, (struct twice){ .first = first, .turns = 1 }));

	if (traced.handle == NULL)
		traced = tdt_traced_with(TDT_ASYNC_NEW(no_await, variable), TDT_TASK_ATTR());
	if (traced.handle == NULL)
		traced = tdt_traced_with(TDT_ASYNC_NEW(no_await, (struct twice){ 0 }),
					 TDT_TASK_ATTR(.name = "twice", .id = 7));
	return traced;
}
