// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Lists of named frames, in the order from the newest to the oldest. */

#include "tree/named.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/refs.h"

#define NAMED_BIT ((uintptr_t)1 << (8 * sizeof(uintptr_t) - 1))

static uint64_t hash_string(uint64_t hash, const char *text)
{
	if (text == NULL)
		return tdt__mix(hash, 1);
	return tdt__mix(tdt__hash_bytes(hash, text, strlen(text)), 2);
}

static uintptr_t pc_of_named(const char *function, const char *file, uint32_t line, uint32_t column)
{
	uint64_t hash = hash_string(hash_string(TDT__HASH_START, function), file);

	return tdt__mix(hash, (uint64_t)line << 32 | column) | NAMED_BIT;
}

/* The bytes that a string takes with its NUL. */
static size_t size_of(const char *text)
{
	return text != NULL ? strlen(text) + 1 : 0;
}

uintptr_t tdt__named_add(struct tdt__named **list, const char *function, const char *file,
			 uint32_t line, uint32_t column)
{
	uintptr_t pc = pc_of_named(function, file, line, column);
	size_t function_size = size_of(function), file_size = size_of(file);
	struct tdt__named *named;

	if (tdt__named_find(*list, pc) != NULL)
		return pc;
	named = malloc(sizeof *named + function_size + file_size);
	if (named == NULL)
		return 0;
	*named = (struct tdt__named){ .next = *list, .pc = pc, .line = line, .column = column };
	atomic_init(&named->refs, 1);
	if (function != NULL)
		named->function = memcpy(named->text, function, function_size);
	if (file != NULL)
		named->file = memcpy(named->text + function_size, file, file_size);
	*list = named; /* the reference to the old list is in `next` now */
	return pc;
}

const struct tdt__named *tdt__named_find(const struct tdt__named *list, uintptr_t pc)
{
	while (list != NULL && list->pc != pc)
		list = list->next;
	return list;
}

struct tdt__named *tdt__named_ref(struct tdt__named *list)
{
	if (list != NULL)
		atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
	return list;
}

void tdt__named_unref(struct tdt__named *list)
{
	while (list != NULL && tdt__refs_drop(&list->refs)) {
		struct tdt__named *next = list->next;

		free(list);
		list = next;
	}
}
