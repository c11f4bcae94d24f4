/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

struct tdt__modules;
struct tdt__recording;

/*
 * The modules by which the addresses of the recording are named, in any process.  If modules lay at
 * the same addresses, one after the other, the table has one of them.  The caller gives the
 * reference up.  NULL: no memory.
 */
struct tdt__modules *tdt__recorded_module_table(const struct tdt__recording *recording);
