// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/idle.  A runtime that has nothing to do does nothing, and a task that waits can be
 * requested.
 */

#include <tdt/rt/runtime.h>

#include "lib/leaf.h"
#include "lib/request_waiting.h"
#include "lib/test.h"
#include "lib/threads.h"

static void rest(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/*
 * On a busy machine the threads may take a while to come to rest: so it is some second that must be
 * quiet.
 */
static void expect_quiet(void)
{
	long before, after = threads_slept("tdt-");

	do {
		before = after;
		rest(500);
		after = threads_slept("tdt-");
	} while (after != before);
}

#define TASKS 1000

CASE(idle)

TEST(nothing_wakes_while_nothing_is_to_do)
{
	static struct leaf leaves[TASKS];
	struct tdt_rt *rt = tdt_rt_new(
	    &(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), .workers = 4 });

	ck_assert_ptr_nonnull(rt);
	expect_quiet();
	for (int i = 0; i < TASKS; i++)
		tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaves[i]), NULL));
	for (int i = 0; i < TASKS; i++)
		UNTIL(leaves[i].waker != NULL);
	expect_quiet();
	for (int i = 0; i < TASKS; i++)
		leaf_open(&leaves[i]);
	for (int i = 0; i < TASKS; i++)
		UNTIL(leaves[i].drops == 1);
	expect_quiet();
	tdt_rt_free(rt);
}

/* --- A requested task is polled ------------------------------------------------- */

static __attribute__((noinline)) tdt_poll_t inner_poll(struct tdt_future *leaf,
						       struct tdt_context *cx)
{
	tdt_poll_t result = tdt_future_poll(leaf, cx);

	TDT_KEEP_FRAME();
	return result;
}

static tdt_poll_t outer_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = inner_poll(state, cx);

	TDT_KEEP_FRAME();
	return result;
}

static void outer_drop(void *state)
{
	tdt_future_drop(state);
}

TEST(a_sleeping_task_tells_its_own_frames_only)
{
	struct tdt_rt *rt = tdt_rt_new(
	    &(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), .workers = 2 });
	struct leaf leaf = { 0 };
	struct tdt_future child = leaf_future(&leaf);
	struct tdt_handle *handle =
	    tdt_rt_spawn(rt, (struct tdt_future){ &child, outer_poll, outer_drop },
			 TDT_TASK_ATTR(.name = "mine", .id = 4711));
	struct tdt_trace *trace;
	char *text, *line;
	size_t size;
	FILE *out;

	UNTIL(leaf.waker != NULL);
	trace = request_waiting(handle);
	out = open_memstream(&text, &size);
	ck_assert_int_eq(tdt_trace_print(trace, out), 0);
	fclose(out);
	line = text;
	ck_assert_msg(strncmp(line, "task 4711 \"mine\" ", 17) == 0, "%s", text);
	ck_assert_ptr_nonnull(strstr(line, "spawned at "));
	line = strchr(line, '\n') + 1;
	ck_assert_msg(strstr(line, "outer_poll at ") != NULL &&
			  strstr(line, "inner_poll at ") != NULL &&
			  strstr(line, "leaf_poll at ") != NULL,
		      "%s", text);
	for (int i = 0; i < 3; i++)
		line = strchr(line, '\n') + 1;
	ck_assert_msg(*line == '\0', "%s", text);
	free(text);
	tdt_trace_free(trace);
	tdt_handle_unref(handle);
	tdt_rt_free(rt);
}
