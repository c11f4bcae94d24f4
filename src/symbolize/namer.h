/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_NAMER_H
#define TDT_SRC_SYMBOLIZE_NAMER_H

/*
 * Names of return addresses, for requesters, who wait for them until a deadline.
 *
 * Looking names up may take long, or for ever: debug information may be huge, a file system may be stalled, a debuginfod
 * server may be asked.  So a thread of the library's, the *namer*, does it, with no lock held; requesters take what is
 * cached (symbolize.h), and wait for the rest.  A name that comes too late for its requester is cached for the next.
 */

#include <stddef.h>
#include <stdint.h>

struct tdt__module;
struct tdt__modules;
struct tdt__symbol;

/* How long those wait who have no deadline of their own, ns. */
#define TDT__NAMER_TIME UINT64_C(5000000000)

struct tdt__name {
	const struct tdt__module *module; /* of those that are given with it; NULL: there is nothing to be named */
	uintptr_t pc;                     /* a return address there */
	const struct tdt__symbol *symbol; /* the answer, which lives as long as the process; NULL: none */
};

/*
 * Look up the names of `n` addresses in `modules`, until `deadline` (tdt__clock()).  If the namer has been busy with one
 * address for longer than TDT__NAMER_TIME, it is not waited for.  In a child of fork() the first call starts the child's
 * own.  Without a thread to be had the caller does the work, however long it takes.  Returns how many are left without a symbol, or -ENOMEM.  Any thread that may wait.
 */
long tdt__namer_find(struct tdt__modules *modules, struct tdt__name *names, size_t n, uint64_t deadline);

/* Start the namer, for those who come later: see service.h. */
void tdt__namer_begin(void);

/* In a child of fork(): the namer is gone.  With tdt__symbol_lock held, as it was when the process forked. */
void tdt__namer_forked(void);

#endif
