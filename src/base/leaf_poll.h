/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_BASE_LEAF_POLL_H
#define TDT_SRC_BASE_LEAF_POLL_H

#include <tdt/future.h>

/*
 * Declare the poll of a future of the library, and export it.  A static function has a name in the
 * debug information only, which packages are without; this one is found among what the library
 * exports, as tdt_sleep_ms.poll, because tdt_sleep_ms itself is what makes the future.  Views leave
 * out the `.poll` (symbolize/demangle.h).
 */
#define TDT__LEAF_POLL(future)                                                                     \
	tdt_poll_t future(void *state, struct tdt_context *cx) __asm__(#future ".poll")            \
		__attribute__((visibility("default")))

#endif
