// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A user's C++ program with every macro of the headers in it: headers.sh compiles it with many
 * warnings.
 */

#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

namespace
{

struct twice {
	tdt_async async;
	tdt_future first;
	int turns;
};

tdt_poll_t twice_poll(void *state, tdt_context *cx)
{
	auto *self = static_cast<twice *>(state);

	TDT_PROBE(shop, none);
	TDT_PROBE(shop, polled, self, self->turns, "twice", 2.5, 2.5L, true, 'c', 1ULL);
	TDT_BEGIN(&self->async, cx);
	TDT_AWAIT(self->first);
	for (self->turns = 0; self->turns < 2; self->turns++) {
		if (self->turns > 0)
			TDT_AWAIT(tdt_join_all(nullptr, 0));
		else
			TDT_AWAIT(tdt_select(nullptr, 0, nullptr));
		{
			int in_a_block = self->turns;

			if (in_a_block > 5)
				return TDT_PANICKED;
		}
	}
	TDT_AWAIT(TDT_FUTURE_NONE); TDT_AWAIT(TDT_FUTURE_NONE);
	TDT_END();
}

tdt_poll_t pass_on(void *state, tdt_context *cx)
{
	auto *child = static_cast<tdt_future *>(state);
	tdt_poll_t result = child->poll(child->state, cx);

	TDT_KEEP_FRAME();
	return result;
}

} // namespace

tdt_traced spawn(tdt_future first);
tdt_handle *spawn_here(tdt_future first);

tdt_handle *spawn_here(tdt_future first)
{
	tdt_rt_config config = {};

	config.size = sizeof(config);
	config.workers = TDT_RT_MAX_WORKERS;
	return tdt_rt_spawn(tdt_rt_new(&config), first, TDT_TASK_ATTR("here"));
}

tdt_traced spawn(tdt_future first)
{
	twice variable = {};
	tdt_future by_hand = { &variable, pass_on, nullptr };
	tdt_traced traced = tdt_traced(TDT_ASYNC_NEW(twice_poll, twice{ {}, first, 1 }));

	variable.first = by_hand;
	if (traced.handle == nullptr)
		traced = tdt_traced_with(TDT_ASYNC_NEW(twice_poll, variable), TDT_TASK_ATTR());
	if (traced.handle == nullptr)
		traced = tdt_traced_with(first, TDT_TASK_ATTR("twice"));
	if (traced.handle == nullptr)
		traced = tdt_traced_with(first, TDT_TASK_ATTR("twice", 7));
#if __cplusplus >= 202002L
		traced = tdt_traced_with(first, TDT_TASK_ATTR(.name = "twice", .parent = 7));
#endif
	return traced;
}
