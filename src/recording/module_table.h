/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdint.h>

struct tdt__modules;
struct tdt__recording;

/*
 * The modules by which the addresses of the recording are named, in any process.  If modules lay at
 * the same addresses, one after the other, the table has one of them.  The caller gives the
 * reference up.  NULL: no memory.
 */
struct tdt__modules *tdt__recorded_module_table(const struct tdt__recording *recording);

/*
 * Give tasks without a name that of the function that they began with, by `deadline`: as
 * tdt__tasks_name() does to those of a process.
 */
void tdt__recorded_tasks_name(struct tdt__recording *recording, struct tdt__modules *modules,
			      uint64_t deadline);
