// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A stub jumps to the address in a word of the GOT, and a relocation names the symbol whose address
 * the dynamic linker writes to that word.  So the stub is decoded, and then the relocations are
 * searched.  This is done once for each address that lies in a stub.  Few addresses do, so there is
 * no table.
 */

#include "symbolize/plt.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "symbolize/demangle.h"
#include "symbolize/intern.h"
#include "symbolize/stub.h"

#define NAME_LIMIT 1024
#define STUB_SIZE 16 /* if the linker doesn't say */

struct section {
	Elf_Scn *scn;
	GElf_Shdr header;
	const char *name;
};

/* The next section of `elf`.  False: there are no more. */
static bool next_section(Elf *elf, size_t names, struct section *section)
{
	section->scn = elf_nextscn(elf, section->scn);
	if (section->scn == NULL || gelf_getshdr(section->scn, &section->header) == NULL)
		return false;
	section->name = elf_strptr(elf, names, section->header.sh_name);
	return true;
}

/* The section of stubs that holds `address`. */
static bool find_stubs(Elf *elf, size_t names, uint64_t address, struct section *section)
{
	*section = (struct section){ .scn = NULL };
	while (next_section(elf, names, section)) {
		if (section->header.sh_type != SHT_PROGBITS || address < section->header.sh_addr ||
		    address - section->header.sh_addr >= section->header.sh_size ||
		    section->name == NULL)
			continue;
		return strcmp(section->name, ".plt") == 0 ||
		       strcmp(section->name, ".plt.sec") == 0 ||
		       strcmp(section->name, ".plt.got") == 0;
	}
	return false;
}

/* The symbol whose address the relocations in `section` write to `slot`; NULL: there is none. */
static const char *symbol_at(Elf *elf, const struct section *section, uint64_t slot)
{
	Elf_Data *data = elf_getdata(section->scn, NULL), *symbols;
	size_t n = section->header.sh_entsize != 0
		       ? section->header.sh_size / section->header.sh_entsize
		       : 0;
	Elf_Scn *table = elf_getscn(elf, section->header.sh_link);
	GElf_Shdr table_header;
	GElf_Sym symbol;
	GElf_Rela rela;

	for (size_t i = 0; data != NULL && i < n && gelf_getrela(data, (int)i, &rela) != NULL;
	     i++) {
		if (rela.r_offset != slot)
			continue;
		symbols = table != NULL ? elf_getdata(table, NULL) : NULL;
		if (symbols == NULL || gelf_getshdr(table, &table_header) == NULL ||
		    GELF_R_SYM(rela.r_info) == 0 ||
		    gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &symbol) == NULL)
			return NULL;
		return elf_strptr(elf, table_header.sh_link, symbol.st_name);
	}
	return NULL;
}

static const char *find_plt_symbol(Elf *elf, size_t names, uint64_t slot)
{
	struct section section = { .scn = NULL };
	const char *name = NULL;

	while (name == NULL && next_section(elf, names, &section))
		if (section.header.sh_type == SHT_RELA)
			name = symbol_at(elf, &section, slot);
	return name;
}

const char *tdt__plt_find(Dwfl_Module *elf, uint64_t address, uint64_t *start)
{
	char text[NAME_LIMIT];
	struct section stubs;
	const char *symbol, *demangled;
	GElf_Addr bias;
	Elf *file = dwfl_module_getelf(elf, &bias);
	size_t names, size, at;
	unsigned char code[TDT__STUB_CODE] = { 0 };
	GElf_Ehdr header;
	Elf_Data *data;
	uint64_t slot;

	if (file == NULL || gelf_getehdr(file, &header) == NULL ||
	    elf_getshdrstrndx(file, &names) != 0 ||
	    !find_stubs(file, names, address - bias, &stubs))
		return NULL;
	data = elf_getdata(stubs.scn, NULL);
	at = address - bias - stubs.header.sh_addr;
	if (data == NULL || data->d_buf == NULL || at >= data->d_size / 4 * 4)
		return NULL;
	size = stubs.header.sh_entsize != 0 ? stubs.header.sh_entsize : STUB_SIZE;
	at = tdt__stub_start(header.e_machine, data->d_buf, at, size);
	*start = stubs.header.sh_addr + at + bias;
	size = data->d_size - at;
	memcpy(code, (const char *)data->d_buf + at, size < sizeof code ? size : sizeof code);
	if (!tdt__stub_slot(header.e_machine, code, *start - bias, &slot))
		return NULL;
	symbol = find_plt_symbol(file, names, slot);
	symbol = symbol != NULL && symbol[0] != '\0' ? tdt__intern(symbol) : NULL;
	if (symbol == NULL)
		return NULL;
	demangled = tdt__demangle(symbol);
	if (demangled != NULL)
		symbol = demangled;
	if (snprintf(text, sizeof(text), "%s@plt", symbol) >= (int)sizeof(text))
		return NULL;
	return tdt__intern(text);
}
