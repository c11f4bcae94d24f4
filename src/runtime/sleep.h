/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* tdt_sleep_ms(): leaf_poll.h says why it has another name here. */

#include <tdt/future.h>

#include "base/leaf_poll.h"

struct tdt_future tdt__sleep_ms_new(uint64_t ms) TDT__LEAF_CALL(tdt_sleep_ms);
