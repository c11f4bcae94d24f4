// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Strings that symbols share. */

#include "symbolize/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static struct {
	TDT__TABLE(char *, text, n); /* never removed */
} interned;

const char *tdt__intern(const char *text)
{
	uint32_t hash = tdt__hash_text(text), i;
	char *copy;

	TDT__INDEX_EACH (i, &interned.text_table.index, hash)
		if (strcmp(interned.text[i], text) == 0)
			return interned.text[i];
	copy = strdup(text);
	if (copy != NULL && tdt__table_add(&interned.text_table, hash, &copy, sizeof(copy)) !=
				    TDT__INDEX_NONE)
		return copy;
	free(copy);
	return NULL;
}

void tdt__intern_abandon(void)
{
	interned.text_table = (struct tdt__table){ 0 };
}
