/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_CALLS_H
#define TDT_TESTS_CALLS_H

/*
 * Calls of libc's functions that a test sees, and can hold up, before and after they are made:
 * calls.c defines the functions, in the test's executable, and each calls the real one.
 */

#include <stdbool.h>

enum call {
	CALL_ITERATE, /* dl_iterate_phdr() */
	CALL_READV,   /* process_vm_readv() */
	CALL_DLOPEN,
	CALL_OPEN, /* and openat() */
	CALL_PREAD,
	CALL_MMAP /* of a file */
};

/*
 * Called on the calling thread, with no lock held by the function itself.  `path` is the file that
 * is opened, read or mapped; NULL: another kind of call.  Calls in callbacks of dl_iterate_phdr()
 * are not seen.  `done` says whether the real call was made.
 */
typedef void call_fn(enum call call, const char *path, bool done);

/* From now on `fn` sees the calls of all threads but those that have said calls_are_mine(); NULL:
 * no more. */
void calls_seen_by(call_fn *fn);

/* The calls that this thread makes are the test's own (or are not any more). */
void calls_are_mine(bool mine);

#endif
