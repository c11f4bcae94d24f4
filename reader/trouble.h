/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Why a target cannot be read, as sentences for the user: what is wrong, and what helps against it.
 * The text may contain names that come from the target, so whoever prints it escapes it.
 */

struct tdt__trouble {
	char text[512];
};

/* Set the text, and return `error`, a negative errno.  A text that is too long is cut. */
int tdt__trouble(struct tdt__trouble *trouble, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
