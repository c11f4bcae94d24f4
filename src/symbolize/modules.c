// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Tables of modules. */

#include "symbolize/modules.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/refs.h"
#include "base/text.h"

const char *tdt__module_path(const struct tdt__module *module)
{
	char *_Atomic *whole = (char *_Atomic *)(uintptr_t)&module->whole;
	char *found, *others = NULL;

	if (module->path[0] == '/' || module->path[0] == '[')
		return module->path;
	/* Acquire the string.  Pairs with the exchange below. */
	found = atomic_load_explicit(whole, memory_order_acquire);
	if (found != NULL)
		return found;
	found = module->find_path != NULL ? module->find_path(module) : NULL;
	if (found == NULL)
		return module->path;
	/* Release the string to other threads, or acquire the string that another thread stored. */
	if (atomic_compare_exchange_strong_explicit(whole, &others, found, memory_order_acq_rel,
						    memory_order_acquire))
		return found;
	free(found);
	return others;
}

void tdt__build_id_find(char *build_id, const unsigned char *notes, size_t size, uint64_t align)
{
	size_t unit = align == 8 ? 8 : 4, at = 0;
	Elf64_Nhdr note;

	while (size - at >= sizeof note) {
		size_t name, content;

		memcpy(&note, notes + at, sizeof note);
		name = at + sizeof note;
		if (note.n_namesz > size - name)
			return;
		content = (name + note.n_namesz + unit - 1) & -unit;
		if (content > size || note.n_descsz > size - content)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0) {
			tdt__put_hex(build_id, notes + content,
				     note.n_descsz < TDT__BUILD_ID_MAX ? note.n_descsz
								       : TDT__BUILD_ID_MAX);
			return;
		}
		at = (content + note.n_descsz + unit - 1) & -unit;
		if (at > size)
			return;
	}
}

static struct tdt__modules *table_new(uint64_t unloads, size_t room)
{
	struct tdt__modules *table = calloc(1, sizeof *table + room * sizeof table->module[0]);

	if (table == NULL)
		return NULL;
	atomic_init(&table->refs, 1);
	table->unloads = unloads;
	table->lasting = true;
	return table;
}

struct tdt__modules *tdt__modules_new(uint64_t unloads)
{
	return table_new(unloads, 0);
}

static void table_free(struct tdt__modules *table)
{
	for (size_t i = 0; i < table->n; i++) {
		free(table->module[i].path);
		free(table->module[i].whole);
	}
	free(table);
}

/* Insert the module at its place.  The table has room for it, and takes over its path. */
static void put_module(struct tdt__modules *table, const struct tdt__module *module)
{
	size_t at = table->n++;

	for (; at > 0 && table->module[at - 1].start > module->start; at--)
		table->module[at] = table->module[at - 1];
	table->module[at] = *module;
	table->lasting = table->lasting && module->lasting;
}

/* Put copies of the modules into a new table.  NULL: there was no table, or there is no memory. */
static struct tdt__modules *put_copies(struct tdt__modules *table,
				       const struct tdt__module *from, size_t n,
				       bool lasting_only)
{
	for (size_t i = 0; table != NULL && i < n; i++) {
		struct tdt__module module = from[i];

		if (lasting_only && !module.lasting)
			continue;
		module.whole = NULL;
		module.path = strdup(module.path);
		if (module.path == NULL) {
			table_free(table);
			return NULL;
		}
		put_module(table, &module);
	}
	return table;
}

struct tdt__modules *tdt__modules_of(const struct tdt__module *module, size_t n)
{
	return put_copies(table_new(0, n), module, n, false);
}

/* Returns a copy with room for one more module.  NULL: no memory. */
static struct tdt__modules *copy_table(const struct tdt__modules *from, uint64_t unloads,
				       bool lasting_only)
{
	return put_copies(table_new(unloads, from->n + 1), from->module, from->n, lasting_only);
}

static void replace_table(struct tdt__modules **table, struct tdt__modules *by)
{
	tdt__modules_unref(*table);
	*table = by;
}

bool tdt__modules_add(struct tdt__modules **table, const struct tdt__module *module,
		      bool lasting_only)
{
	struct tdt__modules *more = copy_table(*table, (*table)->unloads, lasting_only);

	if (more == NULL)
		return false;
	put_module(more, module);
	replace_table(table, more);
	return true;
}

bool tdt__modules_renew(struct tdt__modules **table, uint64_t unloads)
{
	struct tdt__modules *lasting = copy_table(*table, unloads, true);

	if (lasting != NULL)
		replace_table(table, lasting);
	return lasting != NULL;
}

void tdt__modules_withhold(struct tdt__modules *modules)
{
	for (size_t i = 0; i < modules->n; i++) {
		modules->module[i].mapped = NULL;
		modules->module[i].foreign = true;
	}
}

struct tdt__modules *tdt__modules_ref(struct tdt__modules *modules)
{
	atomic_fetch_add_explicit(&modules->refs, 1, memory_order_relaxed);
	return modules;
}

void tdt__modules_unref(struct tdt__modules *modules)
{
	if (modules != NULL && tdt__refs_drop(&modules->refs))
		table_free(modules);
}

const struct tdt__module *tdt__modules_find(const struct tdt__modules *modules, uintptr_t address)
{
	size_t n = tdt__array_up_to(modules->module, modules->n, sizeof modules->module[0],
				    address);

	return n > 0 && address < modules->module[n - 1].end ? &modules->module[n - 1] : NULL;
}
