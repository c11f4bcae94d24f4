// SPDX-License-Identifier: Apache-2.0 OR MIT
/* ELF symbols, sorted by address. */

#include "symbolize/elfsym.h"

#include <ctype.h>
#include <string.h>

/*
 * The value of a range is the rank and the index of its symbol.  Of several symbols at one address,
 * the best one has the greatest value.
 */
#define RANK_SHIFT 32
#define RANK_SIZED 4

/* As in libdwfl: symbols with a size rank highest, then symbols that other files can name. */
static uint64_t rank(const GElf_Sym *symbol)
{
	uint64_t sized = symbol->st_size != 0 ? RANK_SIZED : 0;

	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return sized + 2;
	case STB_WEAK:
		return sized + 1;
	default:
		return sized;
	}
}

static bool is_sized(const struct tdt__range *range)
{
	return range->value >> RANK_SHIFT >= RANK_SIZED;
}

static bool is_code(const GElf_Sym *symbol, GElf_Word section, const char *name)
{
	if (name == NULL || name[0] == '\0' || section == SHN_UNDEF || section == SHN_ABS)
		return false;
	switch (GELF_ST_TYPE(symbol->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE: /* assembly; on aarch64 also $x and $d, where code and data begin */
		return name[0] != '$';
	default:
		return false;
	}
}

/* The end of the section that contains a symbol without a size.  0: the section has no code. */
static uint64_t end_of_section(Elf *elf, GElf_Word section, Dwarf_Addr bias)
{
	GElf_Shdr header;

	if (gelf_getshdr(elf_getscn(elf, section), &header) == NULL ||
	    (header.sh_flags & SHF_EXECINSTR) == 0)
		return 0;
	return header.sh_addr + header.sh_size + bias;
}

/*
 * A symbol without a size ends where the next symbol begins.  Inside a symbol that has a size it is
 * only a label.
 */
static void cut_sizeless(struct tdt__ranges *symbols)
{
	uint64_t sized_until = 0;
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < symbols->n; i++) {
		struct tdt__range *range = &symbols->range[i];

		if (is_sized(range) && range->high > sized_until)
			sized_until = range->high;
		else if (!is_sized(range) && range->low < sized_until)
			range->high = range->low;
	}
	for (size_t i = symbols->n; i-- > 0;) {
		struct tdt__range *range = &symbols->range[i];

		if (i + 1 < symbols->n && symbols->range[i + 1].low != range->low)
			next = symbols->range[i + 1].low;
		if (!is_sized(range) && range->high > next)
			range->high = next;
	}
}

bool tdt__elfsym_read(struct tdt__ranges *symbols, Dwfl_Module *elf)
{
	int n = dwfl_module_getsymtab(elf);

	tdt__ranges_clear(symbols);
	for (int i = 0; i < n; i++) {
		GElf_Sym symbol;
		GElf_Addr start;
		GElf_Word section;
		Elf *file;
		Dwarf_Addr bias;
		const char *name =
		    dwfl_module_getsym_info(elf, i, &symbol, &start, &section, &file, &bias);
		uint64_t end;

		if (!is_code(&symbol, section, name))
			continue;
		end = symbol.st_size != 0 ? start + symbol.st_size
					  : end_of_section(file, section, bias);
		if (end > start && !tdt__ranges_add(symbols, start, end,
						    rank(&symbol) << RANK_SHIFT | (unsigned)i))
			return false;
	}
	tdt__ranges_sort(symbols);
	cut_sizeless(symbols);
	tdt__ranges_sort(symbols); /* some ranges are shorter now */
	return true;
}

const char *tdt__elfsym_find(const struct tdt__ranges *symbols, Dwfl_Module *elf, uint64_t address,
			     uint64_t *start)
{
	const struct tdt__range *range = tdt__ranges_find(symbols, address);
	GElf_Sym symbol;

	if (range == NULL)
		return NULL;
	*start = range->low;
	return dwfl_module_getsym(elf, (int)(uint32_t)range->value, &symbol, NULL);
}

static bool is_name_of_its_own(const GElf_Sym *symbol, const char *name)
{
	if (name == NULL || GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size == 0)
		return false;
	/* A mangled name is one. */
	return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0 ||
	       (GELF_ST_BIND(symbol->st_info) != STB_WEAK &&
		!(name[0] == '_' && (name[1] == '_' || isupper((unsigned char)name[1]))));
}

const char *tdt__elfsym_next(const struct tdt__ranges *symbols, Dwfl_Module *elf, uint64_t start,
			     size_t *at)
{
	if (*at == 0)
		*at = tdt__ranges_from(symbols, start);
	while (*at < symbols->n && symbols->range[*at].low == start) {
		GElf_Sym symbol;
		const char *name = dwfl_module_getsym(
		    elf, (int)(uint32_t)symbols->range[(*at)++].value, &symbol, NULL);

		if (is_name_of_its_own(&symbol, name))
			return name;
	}
	return NULL;
}
