// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The texts of troubles. */

#include "reader/trouble.h"

#include <stdarg.h>
#include <stdio.h>

int tdt__trouble(struct tdt__trouble *trouble, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(trouble->text, sizeof trouble->text, format, arguments);
	va_end(arguments);
	return error;
}
