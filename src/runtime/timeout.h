/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The function behind tdt_timeout_ms(): futures.c says why. */

#include <stdbool.h>

#include <tdt/future.h>

struct tdt_future tdt__timeout_new(struct tdt_future future, uint64_t ms, bool *elapsed);
