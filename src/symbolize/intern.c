// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Strings that symbols share. */

#include "symbolize/intern.h"

#include <string.h>

#include "base/texts.h"

static struct tdt__texts interned;

const char *tdt__intern(const char *text)
{
	return tdt__texts_keep(&interned, text, strlen(text));
}

void tdt__intern_abandon(void)
{
	interned = (struct tdt__texts){ 0 };
}
