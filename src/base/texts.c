// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Texts that have numbers: see texts.h. */

#include "base/texts.h"

#include <string.h>

/* Words at a time, since texts of trees are long. */
static uint32_t hash_of_bytes(const char *bytes, size_t n)
{
	uint64_t hash = n, word;

	for (; n >= sizeof word; bytes += sizeof word, n -= sizeof word) {
		memcpy(&word, bytes, sizeof word);
		hash = tdt__mix(hash, word);
	}
	return tdt__hash_fold(tdt__mix(tdt__hash_bytes(hash, bytes, n), n));
}

uint32_t tdt__texts_number(struct tdt__texts *texts, const void *bytes, size_t n)
{
	uint32_t hash = hash_of_bytes(bytes, n), i;
	const struct tdt__text *text;
	char *copy;

	TDT__INDEX_EACH (i, &texts->text_table.index, hash) {
		text = &texts->text[i];
		if (text->n == n && (n == 0 || memcmp(text->bytes, bytes, n) == 0))
			return i;
	}
	copy = tdt__arena_text(&texts->arena, bytes, n);
	if (copy == NULL)
		return TDT__INDEX_NONE;
	return tdt__table_add(&texts->text_table, hash, &(struct tdt__text){ copy, n },
			      sizeof(struct tdt__text));
}

const char *tdt__texts_keep(struct tdt__texts *texts, const void *bytes, size_t n)
{
	uint32_t number = tdt__texts_number(texts, bytes, n);

	return number == TDT__INDEX_NONE ? NULL : texts->text[number].bytes;
}

void tdt__texts_fini(struct tdt__texts *texts)
{
	tdt__table_fini(&texts->text_table);
	tdt__arena_fini(&texts->arena);
}
