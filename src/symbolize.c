// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Symbolization: what is known is cached for good, in two hash tables of libiberty's; what isn't is put together from
 * the ELF symbols (elfsym.h) and from DWARF (inlines.h).
 *
 * A symbol belongs to a file and an address in it, not to a place in memory: it stays right when a module is unloaded,
 * and loaded elsewhere.  Everything here is protected by tdt__symbol_lock.
 */

#include <config.h>

#include "symbolize.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/hashtab.h>

#include "debuginfo.h"
#include "demangle.h"
#include "elfsym.h"
#include "fork.h"
#include "inlines.h"
#include "intern.h"

struct file {
	char *path;
	char build_id[sizeof(((struct tdt__module *)NULL)->build_id)];
	struct tdt__debuginfo info;
	struct tdt__ranges symbols;
	struct tdt__inlines inlines;
	Dwarf_Addr dwarf_bias;
	enum { CLOSED, FOUND, OPEN, OVERWRITTEN } state; /* not looked for; the ELF file was; all was; and no use now */
};

/* What is asked for. */
struct key {
	const struct file *file;
	uint64_t address; /* of the PC, in the file */
	bool return_address;
};

struct entry {
	struct key key;
	bool unread;		   /* the file could not be opened then: to be looked up again when it is */
	struct entry *older;	   /* which was; who got it may use it still */
	struct tdt__symbol symbol; /* last: it grows */
};

static htab_t files;   /* struct file *, by path and build-id; never removed */
static htab_t entries; /* struct entry *, by key; never freed */

static hashval_t hash_file(const void *file)
{
	const struct file *it = file;

	return htab_hash_string(it->build_id[0] != '\0' ? it->build_id : it->path);
}

static int same_file(const void *left, const void *right)
{
	const struct file *a = left;
	const struct file *b = right;

	return strcmp(a->build_id, b->build_id) == 0 && strcmp(a->path, b->path) == 0;
}

static hashval_t hash_entry(const void *entry)
{
	const struct key *key = entry; /* it begins with its key */
	uint64_t mixed = (uint64_t)(uintptr_t)key->file + 2 * key->address + key->return_address;

	return (hashval_t)(mixed * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static int same_entry(const void *left, const void *right)
{
	const struct key *a = left;
	const struct key *b = right;

	return a->address == b->address && a->file == b->file && a->return_address == b->return_address;
}

static bool create_tables(void)
{
	if (files == NULL)
		files = htab_create_alloc(16, hash_file, same_file, NULL, calloc, free);
	if (entries == NULL)
		entries = htab_create_alloc(256, hash_entry, same_entry, NULL, calloc, free);
	return files != NULL && entries != NULL;
}

static bool get_dwarf(void *data)
{
	struct file *file = data;

	file->inlines.dwarf = tdt__debuginfo_dwarf(&file->info, &file->dwarf_bias);
	return true;
}

/* As tdt__debuginfo_try(); what is damaged is dropped, without freeing, for there is no way to do that. */
static int try_dwarf(struct file *file, bool (*body)(void *data), void *data)
{
	int error = tdt__debuginfo_try(body, data);

	if (error == -ENOTRECOVERABLE)
		file->inlines = (struct tdt__inlines){ 0 };
	return error;
}

/* False: no memory; the next time it goes on from there.  Without descriptors it stays CLOSED. */
static bool open_file(struct file *file)
{
	if (file->state == CLOSED) {
		if (!tdt__debuginfo_reserve())
			return false;
		if (!tdt__debuginfo_descriptors())
			return true;
		tdt__debuginfo_open(&file->info, file->path, file->build_id);
		file->state = file->info.elf != NULL ? FOUND : OPEN;
	}
	if (file->state == FOUND) {
		/* DWARF first, because that finds the debug file, which has more symbols. */
		if (try_dwarf(file, get_dwarf, file) == -ENOMEM || !tdt__elfsym_read(&file->symbols, file->info.elf))
			return false;
		tdt__debuginfo_close_files(&file->info, file->inlines.dwarf);
		file->state = OPEN;
	}
	return true;
}

static struct file *new_file(const struct tdt__module *module)
{
	struct file *file = calloc(1, sizeof(*file));
	void **slot;

	if (file == NULL)
		return NULL;
	memcpy(file->build_id, module->build_id, sizeof(file->build_id));
	file->path = strdup(module->path);
	if (file->path == NULL)
		goto free_file;
	slot = htab_find_slot(files, file, INSERT);
	if (slot == NULL)
		goto free_path;
	*slot = file;
	return file;

free_path:
	free(file->path);
free_file:
	free(file);
	return NULL;
}

static struct file *find_file(const struct tdt__module *module)
{
	static struct file *last; /* most PCs of a stack are of one file */
	struct file sought;

	if (last != NULL && strcmp(last->build_id, module->build_id) == 0 && strcmp(last->path, module->path) == 0)
		return open_file(last) ? last : NULL;
	sought.path = module->path;
	memcpy(sought.build_id, module->build_id, sizeof(sought.build_id));
	last = htab_find(files, &sought);
	if (last == NULL)
		last = new_file(module);
	return last != NULL && open_file(last) ? last : NULL;
}

/* What a look-up of scopes needs, in one piece for tdt__debuginfo_try(). */
struct look_up {
	struct file *file;
	uint64_t address;
	struct tdt__scopes *scopes;
};

static bool find_scopes(void *data)
{
	struct look_up *it = data;

	return tdt__inlines_find(&it->file->inlines, it->address - it->file->dwarf_bias, it->scopes);
}

/*
 * Whether the mapped files may be read.  Who overwrites one in the middle of a look-up can't be helped.  What was
 * overwritten is not freed: libdwfl would read it once more.
 */
static bool may_read(struct file *file)
{
	if (file->state == OPEN && tdt__debuginfo_overwritten(&file->info))
		file->state = OVERWRITTEN;
	return file->state != OVERWRITTEN;
}

/* None if there is no debug information.  False: no memory. */
static bool look_up_scopes(struct file *file, uint64_t address, struct tdt__scopes *scopes)
{
	struct look_up it = { .file = file, .address = address, .scopes = scopes };
	int error = file->inlines.dwarf != NULL && may_read(file) ? try_dwarf(file, find_scopes, &it) : -ENODATA;

	if (error != 0)
		scopes->n = 0;
	return error != -ENOMEM;
}

/*
 * Line tables name most files relative to where the unit was compiled.  That may be relative itself, in packages that
 * don't tell where they were built.
 */
static const char *full_path(const char *directory, const char *file)
{
	char path[PATH_MAX];
	const char *full = NULL;

	if (file == NULL || file[0] == '/' || directory == NULL || directory[0] != '/')
		return file;
	if (snprintf(path, sizeof(path), "%s/%s", directory, file) < (int)sizeof(path))
		full = tdt__intern(path);
	return full != NULL ? full : file;
}

/* Scopes come outermost first, places innermost first. */
static void fill_places(struct tdt__symbol *symbol, const struct tdt__scopes *scopes)
{
	for (size_t i = 0; i < scopes->n; i++) {
		const struct tdt__scope *scope = &scopes->scope[scopes->n - 1 - i];

		symbol->place[i] = (struct tdt__place){
			.function = scope->name,
			.file = full_path(scopes->directory, scope->file),
			.directory = scopes->directory,
			.line = scope->line > 0 ? (uint32_t)scope->line : 0,
			.column = scope->column > 0 ? (uint32_t)scope->column : 0,
		};
	}
}

/* What DWARF doesn't say of the function that has the code, the symbol table may. */
static void fill_from_symbol(struct tdt__symbol *symbol)
{
	struct tdt__place *outermost;

	if (symbol->symbol == NULL)
		return;
	if (symbol->n == 0)
		symbol->n = 1;
	outermost = &symbol->place[symbol->n - 1];
	if (outermost->function == NULL)
		outermost->function = tdt__demangle(symbol->symbol);
	if (outermost->function == NULL)
		outermost->function = symbol->symbol;
}

static bool keep_string(const char **string)
{
	if (*string == NULL)
		return true;
	*string = tdt__intern(*string);
	return *string != NULL;
}

/* Most strings lie in the mapped files, which may be overwritten; an answer must last.  False: no memory. */
static bool keep_strings(struct tdt__symbol *symbol)
{
	bool kept = keep_string(&symbol->symbol);

	for (size_t i = 0; i < symbol->n; i++) {
		struct tdt__place *place = &symbol->place[i];

		kept = kept && keep_string(&place->function) && keep_string(&place->file) &&
		       keep_string(&place->directory);
	}
	return kept;
}

static struct entry *look_up(const struct key *key, struct file *file, struct entry *older)
{
	static struct tdt__scopes scopes; /* kept for the next time */
	uint64_t address = key->address - key->return_address;
	struct entry *entry;
	uint64_t start;

	if (!look_up_scopes(file, address, &scopes))
		return NULL;
	entry = calloc(1, sizeof(*entry) + (scopes.n + 1) * sizeof(entry->symbol.place[0]));
	if (entry == NULL)
		return NULL;
	entry->key = *key;
	entry->unread = file->state == CLOSED;
	entry->older = older;
	if (may_read(file))
		entry->symbol.symbol = tdt__elfsym_find(&file->symbols, file->info.elf, address, &start);
	if (entry->symbol.symbol != NULL)
		entry->symbol.symbol_offset = key->address - start;
	entry->symbol.n = scopes.n;
	fill_places(&entry->symbol, &scopes);
	fill_from_symbol(&entry->symbol);
	if (!keep_strings(&entry->symbol)) {
		free(entry);
		return NULL;
	}
	return entry;
}

static const struct tdt__symbol *find_symbol(struct file *file, uint64_t address, bool return_address)
{
	struct key key = { .file = file, .address = address, .return_address = return_address };
	struct entry *entry = htab_find(entries, &key);
	void **slot;

	if (entry != NULL && (!entry->unread || file->state == CLOSED))
		return &entry->symbol;
	entry = look_up(&key, file, entry);
	if (entry == NULL)
		return NULL;
	slot = htab_find_slot(entries, entry, INSERT);
	if (slot == NULL) {
		free(entry);
		return NULL;
	}
	*slot = entry;
	return &entry->symbol;
}

const struct tdt__symbol *tdt__symbolize(const struct tdt__module *module, uintptr_t pc, bool return_address)
{
	const struct tdt__symbol *symbol = NULL;
	struct file *file;
	int saved = errno;
	int cancel;

	/* Opening files is a cancellation point, and a thread must not end with the lock held. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&tdt__symbol_lock);
	file = create_tables() ? find_file(module) : NULL;
	if (file != NULL)
		symbol = find_symbol(file, pc - module->bias, return_address);
	pthread_mutex_unlock(&tdt__symbol_lock);
	pthread_setcancelstate(cancel, NULL);
	errno = symbol != NULL ? saved : ENOMEM;
	return symbol;
}
