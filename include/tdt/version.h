/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_VERSION_H
#define TDT_VERSION_H /* stable from 1.0: docs/compatibility.md */

/*
 * The version of these headers, and that of the library that the program runs with, which may be
 * another one.
 *
 *	#if TDT_VERSION >= TDT_VERSION_OF(0, 2, 0)
 *		options.newer_field = 1;
 *	#endif
 *	if (tdt_version_number() < TDT_VERSION)
 *		warnx("compiled for tdt " TDT_VERSION_TEXT ", and runs with %s", tdt_version());
 */

#include <stdint.h>

#include <tdt/decls.h>

#define TDT_VERSION_MAJOR 0
#define TDT_VERSION_MINOR 1
#define TDT_VERSION_PATCH 0
#define TDT_VERSION_TEXT "0.1.0"

/* Versions as numbers, which can be compared.  Each part is at most 255. */
#define TDT_VERSION_OF(major, minor, patch) ((major) << 16 | (minor) << 8 | (patch))
#define TDT_VERSION TDT_VERSION_OF(TDT_VERSION_MAJOR, TDT_VERSION_MINOR, TDT_VERSION_PATCH)

TDT_DECLS_BEGIN

/* TDT_VERSION_TEXT, as it was when the library was compiled.  Any thread; async-signal-safe. */
const char *tdt_version(void);

/* TDT_VERSION, as it was when the library was compiled.  Any thread; async-signal-safe. */
uint32_t tdt_version_number(void);

TDT_DECLS_END

#endif
