/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The function behind tdt_sleep_ms(): futures.c says why. */

#include <tdt/future.h>

struct tdt_future tdt__sleep_ms_new(uint64_t ms);
