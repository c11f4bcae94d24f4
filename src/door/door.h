/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Listen if TDT_OUTSIDE says so.  tdt__start() calls this, in each process once.  If this is not
 * possible, the registry says why.
 */
void tdt__door_begin(void);

/* In a child of fork, under tdt__door_lock: there is no door, nor any connection. */
void tdt__door_forked(void);
