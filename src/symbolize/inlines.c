// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * From an address down to the innermost inlined function.
 *
 * libdw has dwarf_addrdie() and dwarf_getscopes() for this.  The first uses .debug_aranges, which
 * Clang does not write.  The second reads every DIE of the unit (2 to 85 ms per address in a large
 * unit), and finds no inlined function in units made by -flto.  So there are two kinds of table
 * here, and each table is read once.  One leads from addresses to units; it is read from the
 * attributes of the units alone.  The other leads from addresses to functions; it is read for a
 * unit when an address of that unit is looked up.  Below the DIE of a function, only DIEs that
 * contain the address are entered.
 *
 * With -gsplit-dwarf the file has units with lines but without functions (split.h).  If the file
 * with the functions is missing, nothing says whether a line belongs to the function or to a
 * function that was inlined there.  Only clang's -fsplit-dwarf-inlining leaves those functions in
 * the unit, too, into which others were inlined.
 */

#include "symbolize/inlines.h"

#include <stdlib.h>

#include <dwarf.h>

#include "base/array.h"
#include "symbolize/debuginfo.h"
#include "symbolize/diename.h"
#include "symbolize/split.h"

/*
 * Most functions are children of the unit or of a namespace.  Some compilers put the functions of
 * local classes, lambdas and nested functions where they are declared: inside types, functions and
 * blocks.  These are most of the unit, so they are read only when an address was not found without
 * them.
 */
enum depth { READ_NOTHING, READ_NAMESPACES, READ_EVERYTHING };

struct tdt__unit {
	Dwarf_Die die;
	struct tdt__split *split;     /* what is in a file of its own; NULL: nothing, or unknown */
	struct tdt__ranges functions; /* from addresses to offsets of DIEs */
	enum depth depth;
	Dwarf_Off last; /* while the functions are read: the offset of the DIE that was read last */
};

#define DIES_NESTED 256 /* of DIEs in DIEs, for damaged files */

/*
 * This is cheap, because it reads only the abbreviation of the DIE.  Most functions are
 * declarations, or are only inlined.
 */
static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/*
 * Whether `die` lies behind the DIE at `*last`; if so, `*last` becomes the offset of `die`.  In a
 * sound file every DIE lies behind those that were read before it.  A damaged file may lead back to
 * such DIEs, so that they would be read again without end.  The reader stops there, so its work is
 * bounded by the size of what it reads.
 */
static bool moves_on(Dwarf_Die *die, Dwarf_Off *last)
{
	Dwarf_Off offset = dwarf_dieoffset(die);

	if (offset <= *last)
		return false;
	*last = offset;
	return true;
}

/*
 * The most ranges of a table: in a damaged file each of thousands of functions may have the same
 * long list.
 */
#define RANGES_MAX ((size_t)1 << 22)

/* The file of the unit's own, if that was found. */
static struct tdt__split *split_of(const struct tdt__unit *unit)
{
	return unit->split != NULL && unit->split->dwarf != NULL ? unit->split : NULL;
}

/* As dwarf_ranges(). */
static ptrdiff_t next_range(const struct tdt__unit *unit, Dwarf_Die *die, ptrdiff_t at,
			    Dwarf_Addr *base, Dwarf_Addr *low, Dwarf_Addr *high)
{
	const struct tdt__split *split = split_of(unit);

	return split != NULL ? tdt__split_ranges(split, die, at, base, low, high)
			     : dwarf_ranges(die, at, base, low, high);
}

static bool add_ranges(struct tdt__ranges *ranges, const struct tdt__unit *unit, Dwarf_Die *die,
		       uint64_t value)
{
	Dwarf_Addr base;
	Dwarf_Addr low;
	Dwarf_Addr high;
	ptrdiff_t at = 0;

	while (ranges->n < RANGES_MAX &&
	       (at = next_range(unit, die, at, &base, &low, &high)) > 0) {
		/* Linkers leave functions that they dropped at address 0, or at 1 in such lists. */
		if (low < high && low > 1 && !tdt__ranges_add(ranges, low, high, value))
			return false;
	}
	return true;
}

/*
 * Add a unit, unless it has no code.  Units of types have none, nor have the units that LTO or dwz
 * shares.
 */
static bool add_unit(struct tdt__inlines *inlines, const Dwarf_Die *die)
{
	struct tdt__unit *unit;
	size_t n_ranges = inlines->ranges.n;

	if (!tdt__array_grow(&inlines->unit, inlines->n, &inlines->room, sizeof(*unit)))
		return false;
	unit = &inlines->unit[inlines->n];
	*unit = (struct tdt__unit){ .die = *die };
	if (!add_ranges(&inlines->ranges, unit, &unit->die, inlines->n))
		return false;
	if (inlines->ranges.n > n_ranges)
		inlines->n++;
	return true;
}

#define UNITS_A_RESERVE 16 /* libdw takes some 10 KiB per unit */

static bool read_units(struct tdt__inlines *inlines)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Off last = 0;
	Dwarf_Die die;
	unsigned int n = 0;

	inlines->n = 0;
	tdt__ranges_clear(&inlines->ranges);
	tdt__debuginfo_read_sparsely(inlines->dwarf);
	/*
	 * The last argument, for a split unit, is NULL, so that libdw does not open the file of
	 * that unit.
	 */
	while (dwarf_get_units(inlines->dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		/*
		 * The units of .debug_types come last, and their offsets begin at 0 again.  They
		 * have no code.
		 */
		if (!moves_on(&die, &last))
			break;
		if (!add_unit(inlines, &die) ||
		    (++n % UNITS_A_RESERVE == 0 && !tdt__debuginfo_reserve()))
			return false;
	}
	tdt__ranges_sort(&inlines->ranges);
	tdt__debuginfo_forget_pages(inlines->dwarf);
	inlines->read = true;
	return true;
}

static bool may_hold_functions(int tag, enum depth depth)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true;
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type: /* enums of Rust may have methods */
	case DW_TAG_variant_part:
	case DW_TAG_variant:
		return depth == READ_EVERYTHING;
	default:
		return false;
	}
}

static bool read_functions(struct tdt__unit *unit, Dwarf_Die *parent, enum depth depth, int nesting)
{
	Dwarf_Die die;

	if (nesting == DIES_NESTED || dwarf_child(parent, &die) != 0)
		return true;
	do {
		int tag = dwarf_tag(&die);

		if (!moves_on(&die, &unit->last))
			return true;
		if (tag == DW_TAG_subprogram && has_code(&die) &&
		    !add_ranges(&unit->functions, unit, &die, dwarf_dieoffset(&die)))
			return false;
		if (may_hold_functions(tag, depth) &&
		    !read_functions(unit, &die, depth, nesting + 1))
			return false;
	} while (dwarf_siblingof(&die, &die) == 0);
	return true;
}

static bool read_unit(struct tdt__unit *unit, enum depth depth)
{
	struct tdt__split *split = split_of(unit);
	Dwarf_Die *top = split != NULL ? &split->die : &unit->die;

	unit->depth = READ_NOTHING;
	unit->last = dwarf_dieoffset(top);
	tdt__ranges_clear(&unit->functions);
	if (!read_functions(unit, top, depth, 0))
		return false;
	tdt__ranges_sort(&unit->functions);
	unit->depth = depth;
	return true;
}

/*
 * Find the function that contains `address`.  `*range` is NULL if there is none.  False: no memory.
 */
static bool find_function(struct tdt__unit *unit, Dwarf_Addr address,
			  const struct tdt__range **range)
{
	do {
		if (unit->depth == READ_NOTHING && !read_unit(unit, READ_NAMESPACES))
			return false;
		*range = tdt__ranges_find(&unit->functions, address);
		if (*range != NULL || unit->depth == READ_EVERYTHING)
			return true;
	} while (read_unit(unit, READ_EVERYTHING));
	return false;
}

static int number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr_integrate(die, name, &attribute), &value) != 0 ||
	    value > INT32_MAX)
		return 0;
	return (int)value;
}

/* Append a function of `unit`; `function` is NULL if nothing is known of it. */
static struct tdt__scope *push_scope(struct tdt__scopes *scopes, struct tdt__unit *unit,
				     Dwarf_Die *function)
{
	struct tdt__scope *scope;

	if (!tdt__array_grow(&scopes->scope, scopes->n, &scopes->room, sizeof(*scope)))
		return NULL;
	scope = &scopes->scope[scopes->n++];
	*scope = (struct tdt__scope){ 0 };
	if (function != NULL) {
		scope->name = tdt__diename(function);
		scope->die = dwarf_dieoffset(function);
		if (split_of(unit) != NULL) /* the offset is that in a file with few units */
			scope->die += dwarf_dieoffset(&unit->die) << 32;
		scope->body = tdt__diename_is_async(function);
	}
	return scope;
}

/* Set the place where `caller` called `inlined`.  `unit` is the unit of the DIE `inlined`. */
static void set_call(struct tdt__scope *caller, Dwarf_Die *unit, Dwarf_Die *inlined)
{
	Dwarf_Files *files;
	size_t n;
	int file = number_of(inlined, DW_AT_call_file);

	if (dwarf_getsrcfiles(unit, &files, &n) == 0)
		caller->file = dwarf_filesrc(files, (size_t)file, NULL, NULL);
	caller->line = number_of(inlined, DW_AT_call_line);
	caller->column = number_of(inlined, DW_AT_call_column);
}

static void set_line(struct tdt__scope *scope, Dwarf_Die *unit, Dwarf_Addr address)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);

	if (line == NULL)
		return;
	scope->file = dwarf_linesrc(line, NULL, NULL);
	dwarf_lineno(line, &scope->line);
	dwarf_linecol(line, &scope->column);
}

static bool has_pc(const struct tdt__unit *unit, Dwarf_Die *die, Dwarf_Addr address)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = next_range(unit, die, at, &base, &low, &high)) > 0)
		if (low <= address && address < high)
			return true;
	return false;
}

/* Replace `die` by its child that contains `address`. */
static bool enter_child_with(const struct tdt__unit *unit, Dwarf_Die *die, Dwarf_Addr address)
{
	Dwarf_Off last = dwarf_dieoffset(die);
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return false;
	do {
		int tag = dwarf_tag(&child);

		if (!moves_on(&child, &last))
			return false;
		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
		    has_pc(unit, &child, address)) {
			*die = child;
			return true;
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

#define ORIGIN_LIMIT 16 /* steps from a copy to its original */

static Dwarf_Die origin_of(const Dwarf_Die *function)
{
	Dwarf_Die die = *function;
	Dwarf_Attribute attribute;

	for (int i = 0; i < ORIGIN_LIMIT; i++)
		if (dwarf_attr(&die, DW_AT_abstract_origin, &attribute) == NULL ||
		    dwarf_formref_die(&attribute, &die) == NULL)
			break;
	return die;
}

/*
 * Whether `inlined` is not a call, but the rest of `function`.  GCC splits a function that often
 * returns early, to inline its beginning alone.  GCC may then put the rest back, as if it were
 * inlined into the function itself at the place of the function's declaration.  A recursive call
 * has a place of its own.
 */
static bool is_rest_of_split(Dwarf_Die *inlined, Dwarf_Die *function)
{
	int line = number_of(inlined, DW_AT_call_line),
	    column = number_of(inlined, DW_AT_call_column);

	return line != 0 && column != 0 && origin_of(inlined).addr == origin_of(function).addr &&
	       line == number_of(function, DW_AT_decl_line) &&
	       column == number_of(function, DW_AT_decl_column);
}

/* Push the functions from `die` inwards. */
static bool descend(struct tdt__scopes *scopes, struct tdt__unit *unit, Dwarf_Die *die,
		    Dwarf_Addr address)
{
	struct tdt__scope *scope = push_scope(scopes, unit, die);
	Dwarf_Die function = *die;

	while (scope != NULL && enter_child_with(unit, die, address)) {
		if (dwarf_tag(die) != DW_TAG_inlined_subroutine || is_rest_of_split(die, &function))
			continue;
		set_call(scope, &unit->die, die);
		scope = push_scope(scopes, unit, die);
		function = *die;
	}
	if (scope != NULL)
		set_line(scope, &unit->die, address);
	return scope != NULL;
}

/* Find the file of a unit that has one of its own. */
static void find_split(struct tdt__inlines *inlines, struct tdt__unit *unit,
		       struct tdt__scopes *scopes)
{
	if (unit->split != NULL || !tdt__split_is_skeleton(&unit->die))
		return;
	scopes->unread = tdt__split_open(&unit->split, inlines->info, &unit->die) != 0;
	if (split_of(unit) != NULL)
		unit->depth = READ_NOTHING; /* the skeleton's functions may have been read */
}

bool tdt__inlines_find(struct tdt__inlines *inlines, uint64_t address, struct tdt__scopes *scopes)
{
	const struct tdt__range *range;
	struct tdt__unit *unit;
	struct tdt__scope *scope;
	Dwarf_Attribute attribute;
	Dwarf_Die die;

	if (!inlines->read && !read_units(inlines))
		return false;
	range = tdt__ranges_find(&inlines->ranges, address);
	if (range == NULL)
		return true;
	unit = &inlines->unit[range->value];
	scopes->directory = dwarf_formstring(dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute));
	find_split(inlines, unit, scopes);
	if (!find_function(unit, address, &range))
		return false;
	if (range != NULL &&
	    dwarf_offdie(split_of(unit) != NULL ? unit->split->dwarf : inlines->dwarf, range->value,
			 &die) != NULL)
		return descend(scopes, unit, &die, address);
	if (unit->split != NULL && unit->split->dwarf == NULL)
		scopes->missing = unit->split->missing;
	if (scopes->missing != NULL || scopes->unread)
		return true;
	scope = push_scope(scopes, unit, NULL);
	if (scope != NULL)
		set_line(scope, &unit->die, address);
	return scope != NULL;
}
