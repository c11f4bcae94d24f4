// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What a terminal wants: for the library's printer, and for tdt-join-ustack. */

#include <config.h>

#include "printer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tdt__wants_color(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no_color != NULL && no_color[0] != '\0')
		return false;
	return term != NULL && strcmp(term, "dumb") != 0 && isatty(fileno(out));
}
