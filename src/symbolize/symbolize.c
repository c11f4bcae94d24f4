// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Symbolization.  What is known is cached for good, in two tables.  What is not
 * known is put together from ELF symbols (elfsym.h) and DWARF (inlines.h).
 *
 * A symbol belongs to a file and an address in it, not to a place in memory, so it stays right when
 * a module is unloaded and loaded elsewhere.  The namer changes the tables under tdt__symbol_lock,
 * and other threads read them under that lock.  Everything else is used by the namer alone.
 */

#include "symbolize/symbolize.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "symbolize/debuginfo.h"
#include "symbolize/demangle.h"
#include "symbolize/diename.h"
#include "symbolize/elfsym.h"
#include "symbolize/inlines.h"
#include "symbolize/intern.h"
#include "symbolize/plt.h"

pthread_mutex_t tdt__symbol_lock = PTHREAD_MUTEX_INITIALIZER;

struct file {
	char *path; /* `path`, `mapped`, `foreign` and `build_id` never change */
	const char *mapped;
	bool foreign;
	char build_id[sizeof(((struct tdt__module *)NULL)->build_id)];
	struct tdt__debuginfo info;
	struct tdt__ranges symbols;
	struct tdt__inlines inlines;
	Dwarf_Addr dwarf_bias;
	/*
	 * CLOSED: nothing was looked for.  FOUND: the ELF file was opened.  OPEN: everything was
	 * looked for.  OVERWRITTEN: the file must not be read any more.
	 */
	enum { CLOSED, FOUND, OPEN, OVERWRITTEN } state;
	/* This file serves all modules with its build-id.  Under tdt__symbol_lock. */
	bool serves_copies;
};

/* What is looked up. */
struct key {
	const struct file *file;
	uint64_t address; /* of the PC, in the file */
	bool return_address;
};

struct named_address {
	struct key key;
	/*
	 * A file could not be opened at that time, or there was no memory to read the .dwo file:
	 * look the address up again when the module's file is open.
	 */
	bool unread;
	bool opened; /* the module's file was open at that time */
	/*
	 * The entry that this one replaces, whose file could not be opened.  Its symbol may still
	 * be in use.
	 */
	struct named_address *older;
	struct tdt__symbol symbol; /* the last field, because its size varies */
};

/* Neither files nor addresses are removed or freed. */
static struct {
	TDT__TABLE(struct file *, file, n); /* see is_file() */
} files;

static struct {
	TDT__TABLE(struct named_address *, address, n);
} entries;

static struct tdt__scopes spare_scopes; /* used by the namer alone; kept for the next look-up */

static void lock(void)
{
	pthread_mutex_lock(&tdt__symbol_lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&tdt__symbol_lock);
}

static uint32_t hash_file(const char *build_id, const char *path)
{
	return tdt__hash_text(build_id[0] != '\0' ? build_id : path);
}

/*
 * Whether `file` serves a module with this build-id and path.  A host may load a plugin from a new
 * copy of its file each time.  One entry serves all copies, because otherwise files would be opened
 * without end.
 */
static bool is_file(const struct file *file, const char *build_id, const char *path)
{
	return strcmp(file->build_id, build_id) == 0 &&
	       (file->serves_copies || strcmp(file->path, path) == 0);
}

static uint32_t hash_key(const struct key *key)
{
	return (uint32_t)tdt__mix(tdt__mix(0, (uintptr_t)key->file),
				  2 * key->address + key->return_address);
}

static bool get_dwarf(void *data)
{
	struct file *file = data;

	file->inlines.dwarf = tdt__debuginfo_dwarf(&file->info, &file->dwarf_bias);
	file->inlines.info = &file->info;
	return true;
}

/*
 * Like tdt__debuginfo_try(), but forgets a Dwarf that must not be used any more.  It cannot be
 * freed.
 */
static int try_dwarf(struct file *file, bool (*body)(void *data), void *data)
{
	int error = tdt__debuginfo_try(body, data);

	if (error == -ENOTRECOVERABLE)
		file->inlines = (struct tdt__inlines){ 0 };
	return error;
}

static void serve_copies(struct file *file, bool serves)
{
	lock();
	file->serves_copies = serves;
	unlock();
}

/*
 * Open the file, and read its symbols.  False: no memory; the next call goes on from there.
 * Without descriptors the file stays CLOSED.
 */
static bool open_module_file(struct file *file)
{
	if (file->state == CLOSED) {
		if (!tdt__debuginfo_reserve())
			return false;
		if (!tdt__debuginfo_descriptors())
			return true;
		if (!file->foreign)
			tdt__debuginfo_open(&file->info, file->path, file->mapped, file->build_id);
		else if (file->mapped != NULL)
			tdt__debuginfo_open(&file->info, NULL, file->mapped, file->build_id);
		file->state = file->info.elf != NULL ? FOUND : OPEN;
	}
	if (file->state == FOUND) {
		/*
		 * DWARF comes first, because its search finds the debug file, which has more
		 * symbols.
		 */
		if (try_dwarf(file, get_dwarf, file) == -ENOMEM ||
		    !tdt__elfsym_read(&file->symbols, file->info.elf))
			return false;
		tdt__debuginfo_close_files(&file->info, file->inlines.dwarf);
		file->state = OPEN;
		serve_copies(file, file->build_id[0] != '\0');
	}
	return true;
}

/* Enter a file in the table.  NULL: no memory. */
static struct file *new_file(const struct tdt__module *module)
{
	struct file *file = calloc(1, sizeof(*file));

	if (file == NULL)
		return NULL;
	memcpy(file->build_id, module->build_id, sizeof(file->build_id));
	file->mapped = module->mapped;
	file->foreign = module->foreign;
	file->path = strdup(tdt__module_path(module));
	if (file->path != NULL &&
	    tdt__table_add(&files.file_table, hash_file(file->build_id, file->path), &file,
			   sizeof(file)) != TDT__INDEX_NONE)
		return file;
	free(file->path);
	free(file);
	return NULL;
}

/* Returns the file of `module`; NULL: it is not in the table yet. */
static struct file *known_file(const struct tdt__module *module)
{
	static struct file *last; /* most PCs of a stack lie in one file */
	const char *path = tdt__module_path(module);
	uint32_t hash, i;

	if (last != NULL && is_file(last, module->build_id, path))
		return last;
	hash = hash_file(module->build_id, path);
	TDT__INDEX_EACH (i, &files.file_table.index, hash)
		if (is_file(files.file[i], module->build_id, path))
			return last = files.file[i];
	return NULL;
}

static struct file *find_file(const struct tdt__module *module)
{
	struct file *file;

	tdt__module_path(module); /* may have to be found out: without the lock */
	lock();
	file = known_file(module);
	if (file == NULL)
		file = new_file(module);
	unlock();
	return file != NULL && open_module_file(file) ? file : NULL;
}

/* The arguments of a look-up of scopes, in one struct for tdt__debuginfo_try(). */
struct look_up {
	struct file *file;
	uint64_t address;
	struct tdt__scopes *scopes;
};

static bool find_scopes(void *data)
{
	struct look_up *it = data;

	return tdt__inlines_find(&it->file->inlines, it->address - it->file->dwarf_bias,
				 it->scopes);
}

/*
 * Whether the mapped files may be read.  Nothing helps if a file is overwritten in the middle of a
 * look-up.  An overwritten file is not freed, because libdwfl would read it once more.
 */
static bool may_read(struct file *file)
{
	if (file->state == OPEN && tdt__debuginfo_overwritten(&file->info)) {
		file->state = OVERWRITTEN;
		serve_copies(file, false);
	}
	return file->state != OVERWRITTEN;
}

/* Find the scopes of `address`; none if there is no debug information.  False: no memory. */
static bool look_up_scopes(struct file *file, uint64_t address, struct tdt__scopes *scopes)
{
	struct look_up it = { .file = file, .address = address, .scopes = scopes };
	int error;

	scopes->n = 0;
	scopes->missing = NULL;
	scopes->unread = false;
	error = file->inlines.dwarf != NULL && may_read(file) ? try_dwarf(file, find_scopes, &it)
							      : -ENODATA;
	if (error != 0)
		scopes->n = 0;
	return error != -ENOMEM;
}

/*
 * Line tables name most files relative to the directory where the unit was compiled.  That
 * directory may be relative itself, in packages that do not say where they were built.
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

/* Scopes are in order from the outermost inwards, places from the innermost outwards. */
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
			.die = scope->die,
			.body = scope->body,
		};
	}
}

/* Whether `symbol` is the name `function` with qualifiers, and `function` has none. */
static bool is_qualified(const char *symbol, const char *function)
{
	size_t n = strlen(symbol), n_function = strlen(function);

	return strstr(function, "::") == NULL && n > n_function + 2 &&
	       strcmp(symbol + n - n_function, function) == 0 &&
	       strncmp(symbol + n - n_function - 2, "::", 2) == 0;
}

/* The length of a closure's part of a name, as symbols write it; 0: there is none at `name`. */
static size_t closure_length(const char *name)
{
	if (tdt__starts_with(name, "{{closure}}"))
		return strlen("{{closure}}");
	return tdt__starts_with(name, "{closure#") ? strcspn(name, "}") + 1 : 0;
}

/*
 * The same for Rust: rustc's line-tables-only names poll<serve::Nap> what the symbol table calls
 * pond::poll, and an async body {async}.  Without memory the name stays as it is.
 */
static void qualify_rust(const char **function, const char *symbol)
{
	size_t n = strcspn(*function, "<"), at = tdt__last_of_path(symbol, strlen(symbol));
	char text[NAME_MAX];
	const char *kept;

	if (n == 0 || at == 0 || memchr(*function, ':', n) != NULL)
		return;
	if (tdt__starts_with(*function, "{async}") && closure_length(symbol + at) != 0 &&
	    snprintf(text, sizeof(text), "%.*s{async}", (int)at, symbol) < (int)sizeof(text))
		symbol = text;
	else if ((strncmp(symbol + at, *function, n) != 0 ||
		  strchr(":<", symbol[at + n]) == NULL) &&
		 !(tdt__starts_with(*function, "{closure#") && closure_length(symbol + at) != 0))
		return;
	kept = tdt__intern(symbol);
	if (kept != NULL)
		*function = kept;
}

/* Complete the outermost function, which has the code, from the symbol table. */
static void fill_from_symbol(struct tdt__symbol *symbol)
{
	struct tdt__place *outermost;
	const char *demangled;

	if (symbol->symbol == NULL)
		return;
	if (symbol->n == 0)
		symbol->n = 1;
	outermost = &symbol->place[symbol->n - 1];
	demangled = tdt__demangle(symbol->symbol);
	/* With -g1 the DWARF says nothing of what is around a function, a lambda for example. */
	if (outermost->function == NULL ||
	    (demangled != NULL && is_qualified(demangled, outermost->function)))
		outermost->function = demangled;
	else if (demangled != NULL)
		qualify_rust(&outermost->function, demangled);
	if (outermost->function == NULL)
		outermost->function = symbol->symbol;
}

/* Whether the symbol is that of `function`, in which async closures are called so (diename.h). */
static bool is_symbol_of(const char *symbol, const char *function)
{
	if (is_qualified(symbol, function))
		return true;
	for (; *symbol == *function && *symbol != '\0'; symbol++, function++) {
		size_t n = closure_length(symbol);

		if (n != 0 && tdt__starts_with(function, "{async}")) {
			symbol += n - 1;
			function += strlen("{async}") - 1;
		}
	}
	return *symbol == *function;
}

static bool has_name(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (is_symbol_of(name, names[i]))
			return true;
	return false;
}

/* The next name of the function at `start`, as it is read; NULL: there is none. */
static const char *next_name(struct file *file, uint64_t start, size_t *at)
{
	const char *name = tdt__elfsym_next(&file->symbols, file->info.elf, start, at);
	const char *kept = name != NULL ? tdt__intern(name) : NULL;
	const char *demangled = kept != NULL ? tdt__demangle(kept) : NULL;

	return demangled != NULL ? demangled : kept;
}

/*
 * The name of the symbol that is the function's own.  Any of the symbols at `start` may be, since
 * the debug information is that of one of the functions that were folded.  If none has the name
 * of the function, it is the one that was found: `poll.constprop.0` is a part of `poll`.
 */
static const char *own_name(const struct tdt__symbol *symbol, const char *function,
			    struct file *file, uint64_t start)
{
	const char *demangled = tdt__demangle(symbol->symbol), *name;
	size_t at = 0;

	while ((name = next_name(file, start, &at)) != NULL)
		if (is_symbol_of(name, function))
			return name;
	return demangled != NULL ? demangled : symbol->symbol;
}

/*
 * Set the further names of the outermost function: functions with the same code may have been
 * folded into one.  This is done only where debug information describes the function.  Where there
 * is none, as in most system libraries, further names are mostly aliases.  Without memory the names
 * are left out.
 */
static void fill_also(struct tdt__symbol *symbol, struct file *file, uint64_t start)
{
	const struct tdt__place *outermost = &symbol->place[symbol->n - 1];
	const char *names[TDT__ALSO_MAX + 1], *name;
	const char **also;
	size_t n = 1, at = 0;

	if (outermost->die == 0 || outermost->function == NULL)
		return;
	names[0] = own_name(symbol, outermost->function, file, start);
	while (n <= TDT__ALSO_MAX && (name = next_name(file, start, &at)) != NULL)
		if (!has_name(names, n, name))
			names[n++] = name;
	also = n > 1 ? calloc(n, sizeof(also[0])) : NULL;
	if (also != NULL)
		symbol->also = memcpy(also, names + 1, (n - 1) * sizeof(also[0]));
}

static bool intern_string(const char **string)
{
	if (*string == NULL)
		return true;
	*string = tdt__intern(*string);
	return *string != NULL;
}

/*
 * Replace all strings by copies that last: most of them lie in the mapped files, which may be
 * overwritten.  False: no memory.
 */
static bool intern_strings(struct tdt__symbol *symbol)
{
	bool kept = intern_string(&symbol->symbol) && intern_string(&symbol->missing);

	for (size_t i = 0; i < symbol->n; i++) {
		struct tdt__place *place = &symbol->place[i];

		kept = kept && intern_string(&place->function) && intern_string(&place->file) &&
		       intern_string(&place->directory);
	}
	return kept;
}

static const char *find_elf_symbol(struct file *file, uint64_t address, uint64_t *start)
{
	const char *name = tdt__elfsym_find(&file->symbols, file->info.elf, address, start);

	return name == NULL && file->info.elf != NULL
		   ? tdt__plt_find(file->info.elf, address, start)
		   : name;
}

static struct named_address *look_up_key(const struct key *key, struct file *file,
					 struct named_address *older)
{
	uint64_t address = key->address - key->return_address;
	const struct tdt__scopes *scopes = &spare_scopes;
	struct named_address *entry;
	uint64_t start;

	if (!look_up_scopes(file, address, &spare_scopes))
		return NULL;
	entry = calloc(1, sizeof(*entry) + (scopes->n + 1) * sizeof(entry->symbol.place[0]));
	if (entry == NULL)
		return NULL;
	entry->key = *key;
	entry->opened = file->state != CLOSED;
	entry->unread = !entry->opened || scopes->unread;
	entry->older = older;
	if (may_read(file))
		entry->symbol.symbol = find_elf_symbol(file, address, &start);
	if (entry->symbol.symbol != NULL)
		entry->symbol.symbol_offset = key->address - start;
	entry->symbol.missing = scopes->missing;
	entry->symbol.n = scopes->n;
	fill_places(&entry->symbol, scopes);
	fill_from_symbol(&entry->symbol);
	if (!intern_strings(&entry->symbol)) {
		free(entry);
		return NULL;
	}
	if (entry->symbol.symbol != NULL && may_read(file))
		fill_also(&entry->symbol, file, start);
	return entry;
}

/* The place of the entry with this key; NULL: it was not looked up yet. */
static struct named_address **known_entry(const struct key *key)
{
	uint32_t hash = hash_key(key), i;

	TDT__INDEX_EACH (i, &entries.address_table.index, hash) {
		const struct key *known = &entries.address[i]->key;

		if (known->address == key->address && known->file == key->file &&
		    known->return_address == key->return_address)
			return &entries.address[i];
	}
	return NULL;
}

/* Enter `entry` in the table, where other threads find it.  False: no memory. */
static bool enter_address(struct named_address *entry)
{
	struct named_address **older;
	bool entered = true;

	lock();
	older = known_entry(&entry->key);
	if (older != NULL)
		*older = entry;
	else
		entered = tdt__table_add(&entries.address_table, hash_key(&entry->key), &entry,
					 sizeof(entry)) != TDT__INDEX_NONE;
	unlock();
	return entered;
}

static void free_entry(struct named_address *entry)
{
	free((void *)(uintptr_t)entry->symbol.also);
	free(entry);
}

static const struct tdt__symbol *find_symbol(struct file *file, uint64_t address,
					     bool return_address)
{
	struct key key = { .file = file, .address = address, .return_address = return_address };
	struct named_address **place, *known, *entry;

	lock();
	place = known_entry(&key);
	known = place != NULL ? *place : NULL;
	unlock();
	if (known != NULL && (!known->unread || file->state == CLOSED))
		return &known->symbol;
	entry = look_up_key(&key, file, known);
	if (entry == NULL)
		return NULL;
	if (known != NULL && entry->unread && entry->opened == known->opened) {
		free_entry(entry); /* nothing new was learned */
		return &known->symbol;
	}
	if (!enter_address(entry)) {
		free_entry(entry);
		return NULL;
	}
	return &entry->symbol;
}

const struct tdt__symbol *tdt__symbolize(const struct tdt__module *module, uintptr_t pc,
					 bool return_address)
{
	const struct tdt__symbol *symbol = NULL;
	int saved = errno;
	struct file *file = find_file(module);

	if (file != NULL)
		symbol = find_symbol(file, pc - module->bias, return_address);
	errno = symbol != NULL ? saved : ENOMEM;
	return symbol;
}

const struct tdt__symbol *tdt__symbol_known(const struct tdt__module *module, uintptr_t pc,
					    bool return_address)
{
	struct key key = { known_file(module), pc - module->bias, return_address };
	struct named_address **known = key.file != NULL ? known_entry(&key) : NULL;

	return known != NULL && !(*known)->unread ? &(*known)->symbol : NULL;
}

void tdt__symbols_abandon(void)
{
	for (size_t i = 0; i < files.n; i++) {
		struct file *file = files.file[i];

		file->info = (struct tdt__debuginfo){ 0 };
		file->symbols = (struct tdt__ranges){ 0 };
		file->inlines = (struct tdt__inlines){ 0 };
		file->state = CLOSED;
		file->serves_copies = false;
	}
	spare_scopes = (struct tdt__scopes){ 0 };
	tdt__diename_abandon();
	tdt__demangle_abandon();
	tdt__intern_abandon();
}
