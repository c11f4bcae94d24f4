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
#include <libiberty/hashtab.h>

struct name {
	const char *mangled;
	char *demangled;
};

static htab_t names; /* struct name *, by `mangled`; never removed */

static hashval_t hash_mangled(const void *name)
{
	return htab_hash_string(((const struct name *)name)->mangled);
}

static int same_mangled(const void *left, const void *right)
{
	return strcmp(((const struct name *)left)->mangled,
		      ((const struct name *)right)->mangled) == 0;
}

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

static struct name *demangle(const char *mangled)
{
	struct name *name = malloc(sizeof(*name));

	if (name == NULL)
		return NULL;
	name->mangled = mangled;
	name->demangled = name_in_source(mangled);
	if (name->demangled != NULL)
		return name;
	free(name);
	return NULL;
}

static const char *enter_name(struct name *name)
{
	void **slot = htab_find_slot(names, name, INSERT);

	if (slot == NULL) {
		free(name->demangled);
		free(name);
		return NULL;
	}
	*slot = name;
	return name->demangled;
}

const char *tdt__demangle(const char *name)
{
	struct name sought = { .mangled = name };
	struct name *known;

	if ((name[0] != '_' || (name[1] != 'Z' && name[1] != 'R')) && leaf_length(name) == 0 &&
	    !is_in_trees(name))
		return NULL;
	if (names == NULL)
		names = htab_create_alloc(64, hash_mangled, same_mangled, NULL, calloc, free);
	if (names == NULL)
		return NULL;
	known = htab_find(names, &sought);
	if (known != NULL)
		return known->demangled;
	known = demangle(name);
	return known != NULL ? enter_name(known) : NULL;
}

void tdt__demangle_abandon(void)
{
	names = NULL;
}
