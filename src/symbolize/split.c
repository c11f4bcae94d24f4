// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Finding .dwo files, and reading what they say of addresses: see split.h. */

#include "symbolize/split.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "base/text.h"
#include "symbolize/dwo.h"

bool tdt__split_is_skeleton(Dwarf_Die *unit)
{
	return dwarf_hasattr(unit, DW_AT_dwo_name) || dwarf_hasattr(unit, DW_AT_GNU_dwo_name);
}

/* An attribute of a skeleton, of whose names GNU's is that of DWARF 4. */
static Dwarf_Attribute *skeleton_attribute(Dwarf_Die *skeleton, unsigned name, unsigned gnu_name,
					   Dwarf_Attribute *attribute)
{
	Dwarf_Attribute *found = dwarf_attr(skeleton, name, attribute);

	return found != NULL ? found : dwarf_attr(skeleton, gnu_name, attribute);
}

/* The contents of a section, from the offset on that an attribute of the skeleton has. */
static struct tdt__split_bytes section_bytes(Elf *elf, const char *name, Dwarf_Attribute *from)
{
	GElf_Shdr header;
	Elf_Data *data = elf_getdata(tdt__dwo_section(elf, name, &header), NULL);
	const unsigned char *start = data != NULL ? data->d_buf : NULL;
	Dwarf_Word offset = 0;

	if (from != NULL && dwarf_formudata(from, &offset) != 0)
		offset = 0;
	if (start == NULL || offset > data->d_size)
		return (struct tdt__split_bytes){ NULL, NULL };
	return (struct tdt__split_bytes){ start + offset, start + data->d_size };
}

/*
 * Find the unit with that id in the Dwarf.  For a skeleton there libdw would itself open the file
 * that the skeleton names.
 */
static bool find_split_unit(struct tdt__split *split, uint64_t sought)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t address_size, type;
	uint64_t id;

	while (dwarf_get_units(split->dwarf, cu, &cu, &version, &type, &split->die, NULL) == 0) {
		if (type == DW_UT_split_compile && dwarf_tag(&split->die) == DW_TAG_compile_unit &&
		    dwarf_cu_info(cu, NULL, NULL, NULL, NULL, &id, &address_size, NULL) == 0 &&
		    id == sought && address_size == sizeof(uint64_t)) {
			split->version = version;
			return true;
		}
	}
	return false;
}

/* Take the unit from the file `path` if it is there.  Returns as tdt__split_open(). */
static int try_file(struct tdt__split *split, const char *path, uid_t owner, uint64_t id)
{
	int error = tdt__dwo_read(&split->dwarf, path, owner, id);

	if (error == 0 && split->dwarf != NULL && !find_split_unit(split, id)) {
		tdt__dwo_free(split->dwarf);
		split->dwarf = NULL;
	}
	return error;
}

/*
 * Set `place` to where the file `name` of a unit is that was compiled in `directory` (NULL: the
 * directory of the module's file `path`).  False: that can't be known.
 */
static bool file_place(char place[PATH_MAX], const char *path, const char *directory,
		       const char *name)
{
	const char *slash = path != NULL ? strrchr(path, '/') : NULL;
	int n;

	if (directory == NULL)
		directory = ".";
	if (name[0] == '/')
		n = snprintf(place, PATH_MAX, "%s", name);
	else if (directory[0] == '/')
		n = snprintf(place, PATH_MAX, "%s/%s", directory, name);
	else if (slash != NULL)
		n = snprintf(place, PATH_MAX, "%.*s/%s/%s", (int)(slash - path), path, directory,
			     name);
	else
		return false;
	return n < PATH_MAX;
}

/*
 * Look beside the module's file, where the unit was compiled, and in the package beside the
 * module's file, which has the name of that file and .dwp.
 */
static int search_split(struct tdt__split *split, const struct tdt__debuginfo *info,
			const char *directory, const char *name, uint64_t id)
{
	const char *const places[][2] = { { NULL, name },
					  { directory, name },
					  { NULL, tdt__file_name(name) } };
	char place[PATH_MAX];
	uid_t owner = info->file[0].owner;
	int error = 0;

	for (int i = 0; i < info->n_files && error == 0 && split->dwarf == NULL; i++) {
		const char *path = info->file[i].path;

		for (int j = 0; j < 3 && error == 0 && split->dwarf == NULL; j++)
			if (file_place(place, path, places[j][0], places[j][1]))
				error = try_file(split, place, owner, id);
		if (error == 0 && split->dwarf == NULL && path != NULL &&
		    snprintf(place, sizeof place, "%s.dwp", path) < PATH_MAX)
			error = try_file(split, place, owner, id);
	}
	return error;
}

/* Find what the .dwo file refers to. */
static void join_skeleton(struct tdt__split *split, Dwarf_Die *skeleton)
{
	Elf *own = dwarf_getelf(split->dwarf), *elf = dwarf_getelf(dwarf_cu_getdwarf(skeleton->cu));
	Dwarf_Attribute attribute;

	split->info = section_bytes(own, ".debug_info.dwo", NULL);
	split->addresses = section_bytes(
	    elf, ".debug_addr",
	    skeleton_attribute(skeleton, DW_AT_addr_base, DW_AT_GNU_addr_base, &attribute));
	split->ranges =
	    split->version >= 5
		? section_bytes(own, ".debug_rnglists.dwo", NULL)
		: section_bytes(elf, ".debug_ranges",
				dwarf_attr(skeleton, DW_AT_GNU_ranges_base, &attribute));
	if (dwarf_lowpc(skeleton, &split->base) != 0)
		split->base = 0;
}

int tdt__split_open(struct tdt__split **opened, const struct tdt__debuginfo *info,
		    Dwarf_Die *skeleton)
{
	Dwarf_Attribute attribute;
	const char *directory = dwarf_formstring(dwarf_attr(skeleton, DW_AT_comp_dir, &attribute));
	const char *name = dwarf_formstring(
	    skeleton_attribute(skeleton, DW_AT_dwo_name, DW_AT_GNU_dwo_name, &attribute));
	char place[PATH_MAX] = "";
	struct tdt__split *split;
	uint64_t id;
	int error = 0;

	if (name != NULL)
		file_place(place, info->file[0].path, directory, name);
	split = calloc(1, sizeof *split + strlen(place) + 1);
	if (split == NULL)
		return -ENOMEM;
	strcpy(split->missing, place);
	if (name != NULL &&
	    dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, NULL, &id, NULL, NULL) == 0)
		error = search_split(split, info, directory, name, id);
	if (error != 0) {
		free(split);
		return error;
	}
	if (split->dwarf != NULL)
		join_skeleton(split, skeleton);
	*opened = split;
	return 0;
}

static uint64_t take_fixed(struct tdt__split_bytes *bytes, size_t n)
{
	uint64_t value = 0;

	if ((size_t)(bytes->end - bytes->at) < n) {
		bytes->at = bytes->end;
		return 0;
	}
	memcpy(&value, bytes->at, n);
	bytes->at += n;
	return value;
}

/* A number of LEB128. */
static uint64_t take_leb(struct tdt__split_bytes *bytes)
{
	uint64_t value = 0;
	unsigned char part = 0x80;

	for (unsigned shift = 0; (part & 0x80) != 0 && bytes->at < bytes->end; shift += 7) {
		part = *bytes->at++;
		if (shift < 64)
			value |= (uint64_t)(part & 0x7f) << shift;
	}
	return value;
}

/* What is `offset` bytes behind the beginning of `all`. */
static struct tdt__split_bytes bytes_from(const struct tdt__split_bytes *all, uint64_t offset)
{
	bool inside = offset < (size_t)(all->end - all->at);

	return (struct tdt__split_bytes){ inside ? all->at + offset : all->end, all->end };
}

/* Where the value of an attribute of the unit is. */
static struct tdt__split_bytes value_bytes(const struct tdt__split *split,
					   const Dwarf_Attribute *attribute)
{
	uint64_t offset = (uintptr_t)attribute->valp - (uintptr_t)split->info.at;

	return bytes_from(&split->info, offset);
}

/* The address with that number; 0: there is none. */
static Dwarf_Addr numbered_address(const struct tdt__split *split, uint64_t number)
{
	struct tdt__split_bytes bytes =
	    bytes_from(&split->addresses, number < UINT32_MAX ? number * 8 : UINT64_MAX);

	return take_fixed(&bytes, sizeof(Dwarf_Addr));
}

static Dwarf_Addr address_of_form(const struct tdt__split *split, Dwarf_Attribute *attribute)
{
	struct tdt__split_bytes value = value_bytes(split, attribute);
	unsigned form = dwarf_whatform(attribute);
	Dwarf_Addr address;

	switch (form) {
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		return numbered_address(split, take_leb(&value));
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		return numbered_address(split, take_fixed(&value, form - DW_FORM_addrx1 + 1));
	default:
		return dwarf_formaddr(attribute, &address) == 0 ? address : 0;
	}
}

/* The range of a DIE that has only one. */
static bool only_range(const struct tdt__split *split, Dwarf_Die *die, Dwarf_Addr *low,
		       Dwarf_Addr *high)
{
	Dwarf_Attribute attribute;
	Dwarf_Word length;

	if (dwarf_attr(die, DW_AT_low_pc, &attribute) == NULL)
		return false;
	*low = address_of_form(split, &attribute);
	if (dwarf_attr(die, DW_AT_high_pc, &attribute) == NULL)
		return false;
	*high = dwarf_formudata(&attribute, &length) == 0 ? *low + length
							  : address_of_form(split, &attribute);
	return true;
}

/* The next range of a list of DWARF 4, of pairs.  False: there are no more. */
static bool next_pair(struct tdt__split_bytes *list, Dwarf_Addr *base, Dwarf_Addr *low,
		      Dwarf_Addr *high)
{
	for (;;) {
		*low = take_fixed(list, sizeof *low);
		*high = take_fixed(list, sizeof *high);
		if (*low == 0 && *high == 0)
			return false;
		if (*low != UINT64_MAX)
			break;
		*base = *high;
	}
	*low += *base;
	*high += *base;
	return true;
}

/* The next range of a list of DWARF 5.  False: there are no more. */
static bool next_entry(const struct tdt__split *split, struct tdt__split_bytes *list,
		       Dwarf_Addr *base, Dwarf_Addr *low, Dwarf_Addr *high)
{
	for (;;) {
		switch (take_fixed(list, 1)) {
		case DW_RLE_base_addressx:
			*base = numbered_address(split, take_leb(list));
			continue;
		case DW_RLE_base_address:
			*base = take_fixed(list, sizeof *base);
			continue;
		case DW_RLE_startx_endx:
			*low = numbered_address(split, take_leb(list));
			*high = numbered_address(split, take_leb(list));
			return true;
		case DW_RLE_startx_length:
			*low = numbered_address(split, take_leb(list));
			*high = *low + take_leb(list);
			return true;
		case DW_RLE_offset_pair:
			*low = *base + take_leb(list);
			*high = *base + take_leb(list);
			return true;
		case DW_RLE_start_end:
			*low = take_fixed(list, sizeof *low);
			*high = take_fixed(list, sizeof *high);
			return true;
		case DW_RLE_start_length:
			*low = take_fixed(list, sizeof *low);
			*high = *low + take_leb(list);
			return true;
		default: /* DW_RLE_end_of_list */
			return false;
		}
	}
}

#define RNGLISTS_HEADER 12 /* behind it there are the offsets of lists, from here on */

/* The list of ranges of a DIE; an empty one if it has none. */
static struct tdt__split_bytes list_of(const struct tdt__split *split, Dwarf_Die *die)
{
	struct tdt__split_bytes value, offsets;
	Dwarf_Attribute attribute;

	if (dwarf_attr(die, DW_AT_ranges, &attribute) == NULL)
		return bytes_from(&split->ranges, UINT64_MAX);
	value = value_bytes(split, &attribute);
	if (dwarf_whatform(&attribute) != DW_FORM_rnglistx)
		return bytes_from(&split->ranges, take_fixed(&value, 4));
	offsets = bytes_from(&split->ranges, RNGLISTS_HEADER + 4 * take_leb(&value));
	return bytes_from(&split->ranges, RNGLISTS_HEADER + take_fixed(&offsets, 4));
}

#define NO_LIST 1 /* no list goes on there */

ptrdiff_t tdt__split_ranges(const struct tdt__split *split, Dwarf_Die *die, ptrdiff_t at,
			    Dwarf_Addr *base, Dwarf_Addr *low, Dwarf_Addr *high)
{
	struct tdt__split_bytes list;

	if (at == NO_LIST)
		return 0;
	if (at == 0) {
		if (only_range(split, die, low, high))
			return NO_LIST;
		*base = split->base;
		list = list_of(split, die);
	} else {
		list = bytes_from(&split->ranges, (uint64_t)at);
	}
	return (split->version >= 5 ? next_entry(split, &list, base, low, high)
				    : next_pair(&list, base, low, high))
		   ? list.at - split->ranges.at
		   : 0;
}
