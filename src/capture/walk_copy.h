/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/registers.h"

struct tdt__capture;
struct tdt__stack_copy;

/*
 * Walk the copy from `at`, and add its frames to the leaf that was begun.  `last` says that the top
 * is the traced future's own frame.  `registers`: see follow.h.
 *
 * Returns true if the copy was walked to its top and the leaf continues outside it.  Otherwise the
 * leaf has ended.
 */
bool tdt__walk_copy(const struct tdt__stack_copy *copy, struct tdt__registers at,
			     const uintptr_t *registers, bool last, struct tdt__capture *capture);
