/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Counts of references, and what ThreadSanitizer is told.
 *
 * A host may be compiled with ThreadSanitizer while the library is not.  Then it sees the memory
 * functions of the C library that this one calls, but not the atomics that order these calls, and
 * would report races of the library.  So the library says where one thread's accesses come before
 * another's, by two functions that ThreadSanitizer's runtime has; in other processes both are NULL.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

void AnnotateHappensBefore(const char *file, int line, const volatile void *where)
    __attribute__((weak, visibility("default")));
void AnnotateHappensAfter(const char *file, int line, const volatile void *where)
    __attribute__((weak, visibility("default")));

/* Call it before an atomic release of `where`. */
static inline void tdt__tsan_release(const volatile void *where)
{
	if (__builtin_expect(AnnotateHappensBefore != NULL, 0))
		AnnotateHappensBefore(__FILE__, __LINE__, where);
}

/* Call it behind the atomic acquire that pairs with it. */
static inline void tdt__tsan_acquire(const volatile void *where)
{
	if (__builtin_expect(AnnotateHappensAfter != NULL, 0))
		AnnotateHappensAfter(__FILE__, __LINE__, where);
}

/*
 * Give up a reference.  Returns whether it was the last one.
 *
 * Release: this holder's accesses come before what the last holder does to the object.  Acquire,
 * for the last holder: so do the accesses of all others.  Pairs with itself.
 */
static inline bool tdt__refs_drop(atomic_uint *refs)
{
	tdt__tsan_release(refs);
	if (atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) != 1)
		return false;
	tdt__tsan_acquire(refs);
	return true;
}
