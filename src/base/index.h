/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * An index: a hash table that finds the entries of an array by their keys; and hash functions.
 *
 * The array belongs to the caller.  The index holds the number and the hash of each entry: entries
 * need no allocation of their own, the array may move when it grows, and growing the index looks at
 * no key.  Entries are never removed.  The caller compares a key with each entry that has its hash:
 *
 *	uint32_t i;
 *
 *	TDT__INDEX_EACH (i, &index, hash)
 *		if (is_same(&array[i], key))
 *			break;
 *
 * Rules have a table of their own: they are found without a lock while others are added (rules.h).
 *
 * An index has no lock: its owner's thread or the lock of its array protects it.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TDT__INDEX_NONE UINT32_MAX

struct tdt__index_slot {
	uint32_t hash;
	uint32_t entry; /* the number of the entry + 1; 0: the slot is free */
};

/* A struct of all zeros is an index without entries. */
struct tdt__index {
	struct tdt__index_slot *slot;
	size_t slots; /* a power of two, and at least twice the entries; or 0 */
};

/* Make room for `n` entries in total, including those that the index has.  Returns 0 or -ENOMEM. */
int tdt__index_reserve(struct tdt__index *index, size_t n);

/*
 * Add an entry, for which there must be room.  The low bits of `hash` should differ between keys.
 * The index does not compare keys: of two entries with the same key, a search may find either.
 */
void tdt__index_add(struct tdt__index *index, uint32_t hash, uint32_t entry);

void tdt__index_fini(struct tdt__index *index);

/*
 * Returns the next entry that has this hash; TDT__INDEX_NONE: there are no more.  `*tried` must be
 * 0 for the first call of a search, and belongs to the index from then on.  The search ends at a
 * free slot, and there always is one.
 */
static inline uint32_t tdt__index_next(const struct tdt__index *index, uint32_t hash, size_t *tried)
{
	if (index->slots == 0)
		return TDT__INDEX_NONE;
	for (;;) {
		const struct tdt__index_slot *slot =
			&index->slot[(hash + (*tried)++) & (index->slots - 1)];

		if (slot->entry == 0)
			return TDT__INDEX_NONE;
		if (slot->hash == hash)
			return slot->entry - 1;
	}
}

/*
 * A loop over the entries with this hash: `i` is the number of each.  If no `break` ends the loop,
 * `i` is TDT__INDEX_NONE behind it.
 */
#define TDT__INDEX_EACH(i, index, hash)                                                            \
	for (size_t tried = 0;                                                                     \
	     ((i) = tdt__index_next((index), (hash), &tried)) != TDT__INDEX_NONE;)

/* Mix `value` into a hash.  The first hash may be any number.  The low half may be used alone. */
static inline uint64_t tdt__mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* The hash of a task's id. */
static inline uint32_t tdt__hash_id(uint64_t id)
{
	return (uint32_t)tdt__mix(0, id);
}

/*
 * Mix bytes into a hash by FNV-1a.  The first hash is TDT__HASH_START.  The high half is mixed
 * best.
 */
#define TDT__HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t tdt__hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *byte = bytes; /* may be NULL if there are none */

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Fold a hash of 64 bits to the 32 bits that an index takes. */
static inline uint32_t tdt__hash_fold(uint64_t hash)
{
	return (uint32_t)(hash ^ hash >> 32);
}

static inline uint32_t tdt__hash_text(const char *text)
{
	return tdt__hash_fold(tdt__hash_bytes(TDT__HASH_START, text, strlen(text)));
}
