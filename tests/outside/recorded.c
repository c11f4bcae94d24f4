// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A program that records itself, and knows what it did: 8 tasks "yielding" on two workers, each
 * polled 401 times, and 4 tasks "sleeping", each polled 21 times.  The former wake themselves, the
 * latter are woken by a timer.  It prints how many polls there were of each.
 *
 * One worker may poll all of them before the recorder's thread has had its first round, and its
 * ring has 8,192 slots until then.
 */

#include <config.h>

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tdt/join.h>
#include <tdt/rt/runtime.h>
#include <tdt/trace.h>

#include "lib/must.h"

#define YIELDING 8
#define SLEEPING 4
#define YIELDS 400
#define SLEEPS 20

static atomic_uint yield_polls, sleep_polls;

struct state {
	struct tdt_future current;
	unsigned left;
	bool sleeps;
};

static struct tdt_future next(const struct state *state)
{
	return state->sleeps ? tdt_sleep_ms(1) : tdt_yield_now();
}

static tdt_poll_t poll_state(void *data, struct tdt_context *cx)
{
	struct state *state = data;

	atomic_fetch_add(state->sleeps ? &sleep_polls : &yield_polls, 1);
	while (tdt_future_poll(&state->current, cx) == TDT_READY) {
		tdt_future_drop(&state->current);
		state->current = TDT_FUTURE_NONE;
		if (--state->left == 0)
			return TDT_READY;
		state->current = next(state);
	}
	return TDT_PENDING;
}

static void drop_state(void *data)
{
	struct state *state = data;

	tdt_future_drop(&state->current);
	free(state);
}

static struct tdt_handle *spawn(struct tdt_rt *rt, bool sleeps)
{
	struct state *state = calloc(1, sizeof(*state));
	struct tdt_future future = { state, poll_state, drop_state };
	struct tdt_handle *handle;

	MUST(state != NULL);
	state->sleeps = sleeps;
	state->left = sleeps ? SLEEPS : YIELDS;
	state->current = next(state);
	handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = sleeps ? "sleeping" : "yielding"));
	MUST(handle != NULL);
	return handle;
}

int main(void)
{
	const struct tdt_rt_config config = { .size = sizeof(config), .workers = 2 };
	struct tdt_handle *handles[YIELDING + SLEEPING];
	struct tdt_rt *rt = tdt_rt_new(&config);

	MUST(rt != NULL);
	for (int i = 0; i < YIELDING + SLEEPING; i++)
		handles[i] = spawn(rt, i >= YIELDING);
	for (int i = 0; i < YIELDING + SLEEPING; i++) {
		MUST(tdt_rt_block_on(rt, tdt_join(handles[i], NULL)) == 0);
		tdt_handle_unref(handles[i]);
	}
	tdt_rt_free(rt);
	printf("%u %u\n", atomic_load(&yield_polls), atomic_load(&sleep_polls));
	return 0;
}
