/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/walk.h"

struct tdt__stack_copy;

/*
 * Find the frame pointer of a frame in the copy, the first frame whose caller cannot be found
 * without it.  `at` are the frame's other registers.  Returns TDT__NO_FP if no place fits.  `*sure`
 * says whether no other value is possible.  The walk may be at any frame afterwards.
 */
uintptr_t tdt__find_fp(const struct tdt__stack_copy *copy, struct tdt__walk *walk,
		       struct tdt__registers at, bool *sure);
