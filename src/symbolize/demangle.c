// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Demangling with libiberty, once per name: a function that is inlined everywhere is met at
 * thousands of PCs.
 */

#include "symbolize/demangle.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/array.h"

struct name {
	const char *mangled;
	char *demangled;
};

static struct {
	TDT__TABLE(struct name, name, n); /* never removed */
} names;

/* How many bytes the name of a leaf's poll has without its end; 0: it is none (leaf_poll.h). */
static size_t leaf_length(const char *name)
{
	size_t length = strlen(name);

	return strncmp(name, "tdt_", 4) == 0 && length > 5 &&
			       strcmp(name + length - 5, ".poll") == 0
		       ? length - 5
		       : 0;
}

/* Whether it is the second name of a function in trees (leaf_poll.h). */
static bool is_in_trees(const char *name)
{
	return strncmp(name, "tdt.", 4) == 0;
}

static char *name_in_source(const char *mangled)
{
	size_t leaf = leaf_length(mangled);
	char *name;

	if (leaf != 0)
		return strndup(mangled, leaf);
	if (is_in_trees(mangled))
		return asprintf(&name, "tdt__%s", mangled + 4) >= 0 ? name : NULL;
	/*
	 * Names of Rust's older scheme look like C++ names that end with a hash, so Rust's
	 * demangler is tried first.
	 */
	name = rust_demangle(mangled, DMGL_NO_OPTS);
	return name != NULL ? name : cplus_demangle_v3(mangled, DMGL_NO_OPTS);
}

const char *tdt__demangle(const char *name)
{
	struct name new = { .mangled = name };
	uint32_t hash, i;

	if ((name[0] != '_' || (name[1] != 'Z' && name[1] != 'R')) && leaf_length(name) == 0 &&
	    !is_in_trees(name))
		return NULL;
	hash = tdt__hash_text(name);
	TDT__INDEX_EACH (i, &names.name_table.index, hash)
		if (strcmp(names.name[i].mangled, name) == 0)
			return names.name[i].demangled;
	new.demangled = name_in_source(name);
	if (new.demangled != NULL &&
	    tdt__table_add(&names.name_table, hash, &new, sizeof(new)) != TDT__INDEX_NONE)
		return new.demangled;
	free(new.demangled);
	return NULL;
}

void tdt__demangle_abandon(void)
{
	names.name_table = (struct tdt__table){ 0 };
}
