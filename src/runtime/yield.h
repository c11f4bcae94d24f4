/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The function behind tdt_yield_now(): futures.c says why. */

#include <tdt/future.h>

struct tdt_future tdt__yield_now_new(void);
