/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

/*
 * Declare the poll of the future that the public call `call` makes, and export it.  A static
 * function has a name in the debug information only, which packages are without; this one is found
 * among what the library exports, as tdt_sleep_ms.poll.  In C its name is tdt_sleep_ms_poll.  Views
 * show tdt_sleep_ms (symbolize/demangle.h).
 */
#define TDT__LEAF_POLL(call)                                                                       \
	tdt_poll_t call##_poll(void *state, struct tdt_context *cx) __asm__(#call ".poll")         \
		__attribute__((visibility("default"))) TDT__NO_ICF

/* Define it by a call of `poll`, which is always inlined: the leaf's own poll clones the waker. */
#define TDT__LEAF(call, poll, ...)                                                                 \
	TDT__LEAF_POLL(call);                                                                      \
	tdt_poll_t call##_poll(void *state, struct tdt_context *cx)                                \
	{                                                                                          \
		return poll(state, cx, __VA_ARGS__);                                               \
	}

/* Polls with the same code stay apart: each has its name. */
#if __has_attribute(no_icf)
#define TDT__NO_ICF __attribute__((no_icf))
#else
#define TDT__NO_ICF
#endif

/*
 * Make a future whose state is a copy of the `size` bytes at `fields`, from malloc().
 * TDT_FUTURE_NONE and errno: there is no memory.
 */
static inline struct tdt_future tdt__future_new(const void *fields, size_t size,
						tdt_poll_t (*poll)(void *state,
								   struct tdt_context *cx),
						void (*drop)(void *state))
{
	void *state = malloc(size);

	if (state == NULL)
		return TDT_FUTURE_NONE;
	memcpy(state, fields, size);
	return (struct tdt_future){ state, poll, drop };
}

/*
 * Export a second name of a function that stands in trees and is known there by its name
 * (tree/over.c): tdt.coroutine_main for tdt__coroutine_main.  No call goes by the second name, so
 * the code is as it would be without it.
 */
#define TDT__NAME_IN_TREES(function)                                                               \
	extern __typeof__(tdt__##function) tdt__##function##_in_trees __asm__("tdt." #function)    \
		__attribute__((alias("tdt__" #function), visibility("default")))
