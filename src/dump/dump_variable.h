/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdbool.h>

struct tdt__dump_choice {
	int signo;	  /* a number that some system may have for a signal; 1 or more */
	const char *path; /* where the dumps go, in less than PATH_MAX bytes; "": to stderr */
};

/*
 * Read a value of TDT_DUMP: a signal, and a path after a colon.  tdt(3), "ENVIRONMENT", has the
 * syntax.  `choice->path` points into `text`.  Returns false if the value is not understood.
 */
bool tdt__dump_variable(const char *text, struct tdt__dump_choice *choice);
