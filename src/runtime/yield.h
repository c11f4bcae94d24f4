/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_YIELD_H
#define TDT_RUNTIME_YIELD_H

/* Letting others go first (yield.c). */

#include <tdt/future.h>

struct tdt_future tdt__yield_now_new(void);

#endif
