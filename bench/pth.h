/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCH_PTH_H
#define BENCH_PTH_H

/*
 * GNU Pth, an executor in C whose tasks are threads of its own on one thread of the kernel's; if it
 * was there when tdt was configured.
 */

#include <stdbool.h>
#include <stdint.h>

extern const bool have_pth;
#define NO_PTH "(GNU Pth: not measured.  Install libpth-dev and configure anew.)"

/*
 * How many ns it takes to spawn `n` of its threads that do nothing, some at a time, and join them.
 */
int64_t pth_spawns(int n);

/* The same for two of them that yield in turn, `n` times each. */
int64_t pth_turns(int n);

#endif
