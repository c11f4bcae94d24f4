/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The functions to which the public calls of <tdt/combine.h> forward.  Why they are separate is
 * said in combine.c.
 */

#include <tdt/future.h>

struct tdt_future tdt__join_all_new(const struct tdt_future *futures, size_t n);
struct tdt_future tdt__select_new(const struct tdt_future *futures, size_t n, size_t *winner);
