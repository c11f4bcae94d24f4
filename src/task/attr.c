// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The strings of a struct tdt_task_attr: which part of a name is kept, and where file names lie. */

#include "task/attr.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/name.h"

/* Whether the byte belongs to a word.  All characters beyond ASCII do. */
static bool is_word(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '_' || (unsigned char)byte >= 0x80;
}

/* Whether a word begins at `at`, which is not 0, or a `::` ends there. */
static bool may_begin(const char *name, size_t at)
{
	return (is_word(name[at]) && !is_word(name[at - 1])) ||
	       (at >= 2 && name[at - 1] == ':' && name[at - 2] == ':');
}

/*
 * Where the end of a default name begins that is kept.  If no word begins in the first half of what
 * there is room for, the end begins with any character.
 */
static size_t kept_end(const char *name, size_t length)
{
	size_t begin;

	if (length <= TDT_TASK_NAME_MAX)
		return 0;
	begin = length - TDT_TASK_NAME_MAX;
	for (size_t at = begin; at < begin + TDT_TASK_NAME_MAX / 2; at++)
		if (may_begin(name, at))
			return at;
	/* No part of a UTF-8 character. */
	while (begin < length && ((unsigned char)name[begin] & 0xc0) == 0x80)
		begin++;
	return begin;
}

static size_t default_name(const struct tdt_task_attr *attr, const char **name)
{
	size_t length = attr->default_name_length, begin;

	if (attr->default_name == NULL)
		return 0;
	if (length == 0)
		length = strlen(attr->default_name);
	begin = kept_end(attr->default_name, length);
	*name = attr->default_name + begin;
	return length - begin;
}

size_t tdt__attr_name(const struct tdt_task_attr *attr, const char **name)
{
	size_t length = TDT_TASK_NAME_MAX + 1;

	if (attr->name_length != 0 && attr->name_length < length)
		length = attr->name_length;
	length = attr->name != NULL ? strnlen(attr->name, length) : 0;
	*name = attr->name;
	return length != 0 ? tdt__name_kept(attr->name, length) : default_name(attr, name);
}

struct stored_file {
	struct stored_file *next; /* in the bucket; the struct is constant once it is there */
	size_t length;
	char name[]; /* ends with a NUL */
};

#define BUCKETS 64

/* Files are only added, always in front. */
static struct stored_file *_Atomic buckets[BUCKETS];

/* The last 16 bytes tell most paths apart.  They are hashed as words: byte by byte takes 15 ns. */
static struct stored_file *_Atomic *bucket_of(const char *name, size_t length)
{
	uint64_t end[2] = { 0 };

	if (length >= sizeof end)
		memcpy(end, name + length - sizeof end, sizeof end);
	else
		memcpy(end, name, length);
	return &buckets[tdt__hash_fold(tdt__mix(tdt__mix(length, end[0]), end[1])) % BUCKETS];
}

static struct stored_file *file_find(struct stored_file *file, const char *name, size_t length)
{
	while (file != NULL && (file->length != length || memcmp(file->name, name, length) != 0))
		file = file->next;
	return file;
}

static struct stored_file *file_new(const char *name, size_t length)
{
	struct stored_file *file = malloc(sizeof *file + length + 1);

	if (file == NULL)
		return NULL;
	file->length = length;
	memcpy(file->name, name, length);
	file->name[length] = '\0';
	return file;
}

/* Add `file` to the bucket, whose first file was `first`, unless it has the same name already. */
static struct stored_file *file_add(struct stored_file *_Atomic *bucket,
				    struct stored_file *first, struct stored_file *file)
{
	struct stored_file *same;

	do {
		same = file_find(first, file->name, file->length);
		if (same != NULL) { /* another thread added it */
			free(file);
			return same;
		}
		file->next = first;
	/*
	 * Release the file, and acquire the files that others added.  Pairs with itself and with
	 * the load in tdt__attr_keep_file().
	 */
	} while (!atomic_compare_exchange_weak_explicit(bucket, &first, file, memory_order_release,
							memory_order_acquire));
	return file;
}

int tdt__attr_keep_file(struct tdt_task_attr *attr)
{
	struct stored_file *_Atomic *bucket;
	struct stored_file *first, *file;
	size_t length;

	if (attr->file == NULL || attr->file_length == 0)
		return 0;
	length = strnlen(attr->file, attr->file_length);
	bucket = bucket_of(attr->file, length);
	/* Acquire the files of the bucket.  Pairs with file_add(). */
	first = atomic_load_explicit(bucket, memory_order_acquire);
	file = file_find(first, attr->file, length);
	if (file == NULL) {
		file = file_new(attr->file, length);
		if (file == NULL)
			return -ENOMEM;
		file = file_add(bucket, first, file);
	}
	attr->file = file->name;
	return 0;
}

uint64_t tdt__attr_stored_file(const struct tdt_task_record *record)
{
	struct tdt_task_attr attr = { .file = (const char *)(uintptr_t)record->file };

	if (attr.file == NULL || attr.file[0] == '\0')
		return 0;
	attr.file_length = strlen(attr.file);
	return tdt__attr_keep_file(&attr) == 0 ? (uintptr_t)attr.file : 0;
}
