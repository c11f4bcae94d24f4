// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/rt, runtime/task.  The runtime when there is no memory, or no thread can be
 * started: pthread_create() is wrapped (--wrap), and so this suite is linked with the insides of
 * libtdt-rt.
 */

#include <tdt/rt/runtime.h>

#include "lib/leaf.h"
#include "lib/no_threads.h"
#include "lib/test.h"
#include "lib/threads.h"

static const struct tdt_rt_config config = { .size = sizeof config, .workers = 4 };

CASE(nomem)

/* The runtime, and its driver. */
TEST(no_memory_for_a_runtime, .to = 2)
{
	struct tdt_rt *made;
	int error;

	NEEDS_FAILING_MEMORY();
	no_memory_begin(_i);
	made = tdt_rt_new(&config);
	error = errno;
	no_memory_end();
	ck_assert_ptr_null(made);
	ck_assert_int_eq(error, ENOMEM);
}

TEST(no_thread_for_a_runtime)
{
	struct tdt_rt *made;
	int n;

	for (n = 0;; n++) {
		threads_left = n;
		errno = 0;
		made = tdt_rt_new(&config);
		if (made != NULL)
			break;
		ck_assert_int_eq(errno, EAGAIN);
		UNTIL(threads_named("tdt-") == 0);
	}
	tdt_rt_free(made);
	ck_assert_int_ge(n, 4);
	threads_left = -1;
}

static struct tdt_rt *rt;

TEST(no_memory_for_a_task)
{
	struct leaf leaf = { .open = true };
	struct tdt_handle *handle = NULL;
	int first, error;

	NEEDS_FAILING_MEMORY();
	rt = tdt_rt_new(&config);
	for (first = 0; handle == NULL; first++) {
		ck_assert_int_eq(leaf.polls, 0);
		ck_assert_int_eq(leaf.drops, 0);
		no_memory_begin(first);
		handle = tdt_rt_spawn(rt, leaf_future(&leaf), TDT_TASK_ATTR(.name = "x"));
		error = errno;
		no_memory_end();
		if (handle == NULL)
			ck_assert_int_eq(error, ENOMEM);
	}
	ck_assert_int_eq(first, 1 + 1);
	tdt_handle_unref(handle);
	UNTIL(leaf.drops == 1);
	tdt_rt_free(rt);
}

TEST(no_memory_to_block_on_a_future)
{
	struct leaf leaf = { .open = true };
	int result;

	NEEDS_FAILING_MEMORY();
	rt = tdt_rt_new(&config);
	/* The library's threads take memory, too: not here. */
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	no_memory_begin(0);
	result = tdt_rt_block_on(rt, leaf_future(&leaf));
	no_memory_end();
	ck_assert_int_eq(result, -ENOMEM);
	ck_assert_int_eq(leaf.polls, 0);
	ck_assert_int_eq(leaf.drops, 0);
	/* It can't be traced, but polled. */
	no_memory_begin(1);
	result = tdt_rt_block_on(rt, leaf_future(&leaf));
	ck_assert_int_eq(no_memory_end(), 2);
	ck_assert_int_eq(result, 0);
	ck_assert_int_eq(leaf.drops, 1);
	tdt_rt_free(rt);
}
