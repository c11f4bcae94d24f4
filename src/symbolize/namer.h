/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Names of return addresses, for requesters, which wait for them until a deadline.
 *
 * Looking up names may take long, or for ever: debug information may be huge, a file system may be
 * stalled, a debuginfod server may have to answer.  So a thread of the library, the *namer*, looks
 * up names, with no lock held.  Requesters take the names that are cached (symbolize.h), and wait
 * for the others.  A name that comes too late for its requester is cached for the next one.
 */

#include <stddef.h>
#include <stdint.h>

struct tdt__module;
struct tdt__modules;
struct tdt__symbol;

/* How long requesters without a deadline of their own wait, ns. */
#define TDT__NAMER_TIME UINT64_C(5000000000)

struct tdt__name {
	/* One of the modules of the call; NULL: there is nothing to be named. */
	const struct tdt__module *module;
	uintptr_t pc; /* a return address in `module` */
	/* The result, which lives as long as the process; NULL: none. */
	const struct tdt__symbol *symbol;
};

/*
 * Look up the names of `n` addresses in `modules`, until `deadline` (tdt__clock()).  If the namer
 * has been busy with one address for longer than TDT__NAMER_TIME, the call does not wait for it.
 * In a child of fork() the first call starts a namer for the child.  If no thread can be started,
 * the caller does the work, however long it takes.  Returns how many addresses have no symbol, or
 * -ENOMEM.  Any thread that may wait.
 */
long tdt__namer_find(struct tdt__modules *modules, struct tdt__name *names, size_t n,
		     uint64_t deadline);

/*
 * The name of the function that begins at `address`, in `modules`, by `deadline`.  It lives as long
 * as the process.  NULL: it is unknown.
 */
const char *tdt__namer_function(struct tdt__modules *modules, uintptr_t address,
				uint64_t deadline);

/* Start the namer, for later requesters: see service.h. */
void tdt__namer_begin(void);

/*
 * Called in a child of fork(), which has no namer.  tdt__symbol_lock is held, as it was when the
 * process forked.
 */
void tdt__namer_forked(void);
