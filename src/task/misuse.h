/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The first misuse of the library: <tdt/misuse.h>. */

#include <tdt/misuse.h>

struct tdt_handle;

/*
 * Note a misuse that was noticed at `task`, whose record is read; NULL: at none.  Only the first
 * call of a process is kept.  Takes no lock, allocates nothing, and leaves errno as it is.
 */
void tdt__misuse(enum tdt_misuse_kind kind, const struct tdt_handle *task);
