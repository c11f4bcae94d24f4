/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <tdt/future.h>

/*
 * Declare the poll of a future of the library, and export it.  A static function has a name in the
 * debug information only, which packages are without; this one is found among what the library
 * exports, as tdt_sleep_ms.poll, because tdt_sleep_ms itself is what makes the future.  Views leave
 * out the `.poll` (symbolize/demangle.h).
 */
#define TDT__LEAF_POLL(future)                                                                     \
	tdt_poll_t future(void *state, struct tdt_context *cx) __asm__(#future ".poll")            \
		__attribute__((visibility("default"))) TDT__NO_ICF

/* Define such a poll, which returns what an expression with `state` and `cx` gives. */
#define TDT__LEAF_POLL_BY(future, expression)                                                      \
	TDT__LEAF_POLL(future);                                                                    \
	tdt_poll_t future(void *state, struct tdt_context *cx)                                     \
	{                                                                                          \
		return expression;                                                                 \
	}

/* Polls with the same code stay apart: each has its name. */
#if __has_attribute(no_icf)
#define TDT__NO_ICF __attribute__((no_icf))
#else
#define TDT__NO_ICF
#endif

/*
 * Say which call makes the future, in a declaration of the function that does so.  Where the poll
 *is defined, the call's own name is the poll's, and so the function has another one there:
 *
 *	struct tdt_future tdt__sleep_ms_new(uint64_t ms) TDT__LEAF_CALL(tdt_sleep_ms);
 */
#define TDT__LEAF_CALL(call) __asm__(#call) __attribute__((visibility("default")))

/*
 * Export a second name of a function that stands in trees and is known there by its name
 * (tree/over.c): tdt.coroutine_main for tdt__coroutine_main.  No call goes by the second name, so
 * the code is as it would be without it.
 */
#define TDT__NAME_IN_TREES(function)                                                               \
	extern __typeof__(tdt__##function) tdt__##function##_in_trees __asm__("tdt." #function)    \
		__attribute__((alias("tdt__" #function), visibility("default")))
