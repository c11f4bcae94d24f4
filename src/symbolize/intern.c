// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Strings that symbols share. */

#include "symbolize/intern.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/hashtab.h>

static htab_t texts; /* char *; never removed */

static int same_interned(const void *left, const void *right)
{
	return strcmp(left, right) == 0;
}

const char *tdt__intern(const char *text)
{
	char *copy;
	void **slot;

	if (texts == NULL)
		texts = htab_create_alloc(64, htab_hash_string, same_interned, NULL, calloc, free);
	if (texts == NULL)
		return NULL;
	copy = htab_find(texts, text);
	if (copy != NULL)
		return copy;
	copy = strdup(text);
	slot = copy != NULL ? htab_find_slot(texts, copy, INSERT) : NULL;
	if (slot == NULL) {
		free(copy);
		return NULL;
	}
	*slot = copy;
	return copy;
}

void tdt__intern_abandon(void)
{
	texts = NULL;
}
