/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_FIND_FP_H
#define TDT_SRC_CAPTURE_FIND_FP_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/walk.h"

struct tdt__stack_copy;

/*
 * The frame pointer of the frame with registers `at`, which lies in the copy, and is the first whose caller can't be
 * found without.  TDT__NO_FP: none fits.  `*sure` says whether it can be no other.  Leaves the walk anywhere.
 */
uintptr_t tdt__find_fp(const struct tdt__stack_copy *copy, struct tdt__walk *walk, struct tdt__registers at, bool *sure);

#endif
