/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * How public calls report an error, which is 0 or a negative errno here: errno has it, too.  If
 * there is none, errno stays as it is.
 */

#include <errno.h>
#include <stddef.h>

#include <tdt/future.h>

/* For calls that return an error. */
static inline int tdt__result(int error)
{
	if (error != 0)
		errno = -error;
	return error;
}

/* For calls that return a pointer, and had an error. */
static inline void *tdt__nothing(int error)
{
	errno = -error;
	return NULL;
}

/* For calls that return a future, and had an error. */
static inline struct tdt_future tdt__no_future(int error)
{
	errno = -error;
	return TDT_FUTURE_NONE;
}
