/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Returns a copy of `text` that lives as long as the process: one copy per text, however often it
 * is requested.  NULL: no memory.  For the namer only (namer.h).
 */
const char *tdt__intern(const char *text);

/* Called in a child of fork(): see tdt__symbols_abandon(). */
void tdt__intern_abandon(void);
