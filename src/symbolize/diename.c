// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Names of functions.  The demangled linkage name says most.  GCC writes no linkage name for C++
 * functions that no other file can name: static functions, functions in anonymous namespaces, many
 * lambdas.  The name of such a function is composed from the DIEs around its declaration.  A DIE
 * does not know its parent, so these DIEs are searched for from the unit down, once per function.
 */

#include "symbolize/diename.h"

#include <string.h>

#include <dwarf.h>

#include "base/array.h"
#include "symbolize/demangle.h"
#include "symbolize/intern.h"

#define REFERENCE_LIMIT 16 /* steps from a copy to its declaration; libdw's own limit */
#define QUALIFIED_MAX 1024 /* a longer name is left unqualified */
#define FUNCTIONS_NESTED 8 /* of functions in functions */
#define LEVEL_LIMIT 256    /* of DIEs in DIEs, for damaged files */

struct qualified {
	const void *declaration; /* where its DIE lies in the mapped file; NULL: of no use */
	const char *name;	 /* NULL: the name is being composed */
};

static struct {
	TDT__TABLE(struct qualified, name, n); /* never removed */
} qualified;

static const char *string_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

/*
 * Whether the unit says that its language is C++.  The units that dwz makes out of several units do
 * not say it, and the units of LTO have a language of their own.  (For a skeleton dwarf_srclang()
 * would open the file that it names.)
 */
static bool is_cplusplus(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Word language;
	Dwarf_Die unit;

	if (dwarf_diecu(die, &unit, NULL, NULL) == NULL ||
	    dwarf_formudata(dwarf_attr(&unit, DW_AT_language, &attribute), &language) != 0)
		return false;
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

static Dwarf_Die declaration_of(const Dwarf_Die *function)
{
	Dwarf_Die die = *function;
	Dwarf_Attribute attribute;

	for (int i = 0; i < REFERENCE_LIMIT; i++) {
		if (dwarf_attr(&die, DW_AT_abstract_origin, &attribute) == NULL &&
		    dwarf_attr(&die, DW_AT_specification, &attribute) == NULL)
			break;
		if (dwarf_formref_die(&attribute, &die) == NULL)
			break;
	}
	return die;
}

/*
 * Whether `function` belongs to a closure: its body, or what GCC and Clang make of the closure
 * where a plain function is needed.
 */
static bool is_of_closure(const char *function)
{
	return strncmp(function, "operator()", strlen("operator()")) == 0 ||
	       strncmp(function, "_FUN", 4) == 0 || strncmp(function, "__invoke", 8) == 0;
}

/* What a DIE adds to the name of a function in it, which is called `inner`; NULL: nothing. */
static const char *qualifier(Dwarf_Die *die, const char *inner)
{
	const char *name;

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		name = dwarf_diename(die);
		return name != NULL ? name : "(anonymous namespace)";
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		name = dwarf_diename(die);
		if (name == NULL)
			name = is_of_closure(inner) ? "{lambda}" : "(anonymous)";
		return name;
	default:
		return NULL;
	}
}

/* Replace `die` by its child that is, or contains, the DIE at `offset`. */
static bool enter_child_at(Dwarf_Die *die, Dwarf_Off offset)
{
	Dwarf_Die next;

	if (dwarf_child(die, &next) != 0)
		return false;
	do {
		*die = next;
		/* A damaged file may give as the sibling a DIE that does not lie behind `die`. */
	} while (dwarf_siblingof(die, &next) == 0 &&
		 dwarf_dieoffset(&next) > dwarf_dieoffset(die) && dwarf_dieoffset(&next) <= offset);
	return true;
}

/* False: the text would be too long. */
static bool append_part(char *text, size_t *length, const char *part)
{
	size_t n = strlen(part);

	if (*length + n >= QUALIFIED_MAX)
		return false;
	memcpy(text + *length, part, n + 1);
	*length += n;
	return true;
}

static const char *name_of(Dwarf_Die *function, int nesting);

static bool qualify(char *text, Dwarf_Die *unit, Dwarf_Off declaration, const char *name,
		    int nesting)
{
	Dwarf_Die die = *unit;
	size_t length = 0;
	const char *part;
	int level = 0;

	while (enter_child_at(&die, declaration) && dwarf_dieoffset(&die) < declaration) {
		if (++level > LEVEL_LIMIT)
			return false;
		if (dwarf_tag(&die) == DW_TAG_subprogram) {
			/*
			 * The name of this function includes what is around its declaration, which
			 * may be elsewhere.
			 */
			length = 0;
			part = name_of(&die, nesting + 1);
		} else {
			part = qualifier(&die, name);
		}
		if (part != NULL &&
		    !(append_part(text, &length, part) && append_part(text, &length, "::")))
			return false;
	}
	return append_part(text, &length, name);
}

/*
 * Write the name of a function with this declaration, which is called `name`, to a text of
 * QUALIFIED_MAX bytes.  False: it is too long, or the file is damaged.
 */
typedef bool compose_fn(char *text, Dwarf_Die *declaration, const char *name, int nesting);

/* A compose_fn. */
static bool compose_qualified(char *text, Dwarf_Die *declaration, const char *name, int nesting)
{
	Dwarf_Die unit;

	return dwarf_diecu(declaration, &unit, NULL, NULL) != NULL &&
	       qualify(text, &unit, dwarf_dieoffset(declaration), name, nesting);
}

/*
 * Each name is composed once.  In a damaged file a name may be part of itself.  Such a name, and
 * one that cannot be composed, stays as it is.
 */
static const char *composed_name(const Dwarf_Die *function, const char *name, int nesting,
				 compose_fn *compose)
{
	Dwarf_Die declaration = declaration_of(function);
	const struct qualified new = { .declaration = declaration.addr };
	uint32_t hash = tdt__hash_id((uintptr_t)declaration.addr), i;
	char text[QUALIFIED_MAX];
	const char *kept;

	TDT__INDEX_EACH (i, &qualified.name_table.index, hash)
		if (qualified.name[i].declaration == declaration.addr)
			return qualified.name[i].name != NULL ? qualified.name[i].name : name;
	i = nesting < FUNCTIONS_NESTED
		    ? tdt__table_add(&qualified.name_table, hash, &new, sizeof(new))
		    : TDT__INDEX_NONE;
	if (i == TDT__INDEX_NONE)
		return name;
	kept = tdt__intern(compose(text, &declaration, name, nesting) ? text : name);
	qualified.name[i].name = kept;
	if (kept == NULL) /* try again when there is memory */
		qualified.name[i].declaration = NULL;
	return kept != NULL ? kept : name;
}

static const char *qualified_name(const Dwarf_Die *function, const char *name, int nesting)
{
	Dwarf_Die own = *function, declaration = declaration_of(function);

	return is_cplusplus(&own) || is_cplusplus(&declaration)
		   ? composed_name(function, name, nesting, compose_qualified)
		   : name;
}

/*
 * Whether a part of a path is an async body or its type, in the debug information of any version of
 * rustc: {async_fn#0}, {async_block_env#1}.
 */
static bool is_async_part(const char *part)
{
	static const char *const starts[] = { "{async_fn", "{async_block", "{async_closure" };

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(part, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

size_t tdt__last_of_path(const char *path, size_t n)
{
	int depth = 0;

	for (; n > 0; n--) {
		char c = path[n - 1];

		if (c == '>' && !(n > 1 && path[n - 2] == '-')) /* not the end of an arrow */
			depth++;
		else if (c == '<')
			depth--;
		else if (c == ':' && depth == 0 && n > 1 && path[n - 2] == ':' && path[n] != '<')
			break;
	}
	return n;
}

static bool is_closure_part(const char *part)
{
	return strncmp(part, "{{closure}}", 11) == 0 || strncmp(part, "{closure#", 9) == 0;
}

/* Replace the part at `part`, which has `n` bytes, in a text of QUALIFIED_MAX bytes. */
static void replace_part(char *text, size_t part, size_t n, const char *with)
{
	memmove(text + part + strlen(with), text + part + n, strlen(text + part + n) + 1);
	memcpy(text + part, with, strlen(with));
}

/*
 * Write {async} in `text`, a demangled name, for each closure at its end that the debug information
 * calls an async body: `path` has the same parts at its end.
 */
static void name_async_parts(char *text, const char *path)
{
	size_t end = strlen(text), path_end = strlen(path);

	for (;;) {
		size_t part = tdt__last_of_path(text, end);
		size_t path_part = tdt__last_of_path(path, path_end);

		if (!is_closure_part(text + part))
			return;
		if (is_async_part(path + path_part))
			replace_part(text, part, end - part, "{async}");
		if (part < 2 || path_part < 2)
			return;
		end = part - 2;
		path_end = path_part - 2;
	}
}

/* Write {async} for all async bodies and types in `text`: poll<serve::{async_fn_env#0}>. */
static void name_async_types(char *text)
{
	for (char *at = text; (at = strchr(at, '{')) != NULL; at++)
		if (is_async_part(at) && strchr(at, '}') != NULL)
			replace_part(at, 0, (size_t)(strchr(at, '}') + 1 - at), "{async}");
}

/* Whether the last two parts of the name are closures. */
static bool is_closure_in_closure(const char *name)
{
	size_t part = tdt__last_of_path(name, strlen(name));

	return part >= 2 && is_closure_part(name + part) &&
	       is_closure_part(name + tdt__last_of_path(name, part - 2));
}

/*
 * Write the end of the path to `function` in the debug information.  False: the path is too long,
 * or the file is damaged.
 */
static bool path_of_closure(char *path, Dwarf_Die *function, const char *name, int nesting)
{
	const char *last = string_of(function, DW_AT_name);
	size_t length = 0;
	Dwarf_Die unit;

	if (last == NULL || dwarf_diecu(function, &unit, NULL, NULL) == NULL)
		return false;
	/* To find what is around the function takes longer. */
	if (!is_closure_in_closure(name))
		return append_part(path, &length, last);
	return qualify(path, &unit, dwarf_dieoffset(function), last, nesting);
}

/* A compose_fn: `name`, with {async} for each async body in it. */
static bool compose_async(char *text, Dwarf_Die *declaration, const char *name, int nesting)
{
	char path[QUALIFIED_MAX];
	size_t length = 0;

	if (!append_part(text, &length, name))
		return false;
	if (path_of_closure(path, declaration, name, nesting))
		name_async_parts(text, path);
	name_async_types(text);
	return true;
}

/* Whether an async body may be in the name of a Rust function. */
static bool may_be_async(const char *name)
{
	return strstr(name, "{{closure}}") != NULL || strstr(name, "{closure#") != NULL ||
	       strstr(name, "{async_") != NULL;
}

static const char *name_of(Dwarf_Die *function, int nesting)
{
	const char *linkage = string_of(function, DW_AT_linkage_name);
	const char *name;

	if (linkage == NULL)
		linkage = string_of(function, DW_AT_MIPS_linkage_name);
	name = linkage != NULL ? tdt__demangle(linkage) : NULL;
	if (name != NULL)
		return may_be_async(name) ? composed_name(function, name, nesting, compose_async)
					  : name;
	name = string_of(function, DW_AT_name);
	if (name == NULL)
		return linkage;
	if (may_be_async(name))
		return composed_name(function, name, nesting, compose_async);
	return linkage == NULL ? qualified_name(function, name, nesting) : name;
}

const char *tdt__diename(Dwarf_Die *function)
{
	return name_of(function, 0);
}

bool tdt__diename_is_async(Dwarf_Die *function)
{
	const char *name = string_of(function, DW_AT_name);

	return name != NULL && is_async_part(name);
}

void tdt__diename_abandon(void)
{
	qualified.name_table = (struct tdt__table){ 0 };
}
