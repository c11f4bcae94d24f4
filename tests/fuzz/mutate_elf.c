// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * How libFuzzer changes an ELF file for fuzz_symbolize.c: mostly inside one section that is not
 * loaded, since debug information is there.  The changes that libFuzzer makes by itself, anywhere
 * in the file, mostly make a file that is refused.
 */

#include <config.h>

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

/* Header `i` of the file's sections; false: it is not in the file. */
static bool read_section(const uint8_t *data, size_t size, const Elf64_Ehdr *header, unsigned int i,
			 Elf64_Shdr *section)
{
	if (header->e_shoff > size || (i + 1) * sizeof(*section) > size - header->e_shoff)
		return false;
	memcpy(section, data + header->e_shoff + i * sizeof(*section), sizeof(*section));
	return true;
}

static bool is_wanted(const Elf64_Shdr *section, size_t size)
{
	return (section->sh_flags & SHF_ALLOC) == 0 && section->sh_type != SHT_NOBITS &&
	       section->sh_size > 0 && section->sh_offset <= size &&
	       section->sh_size <= size - section->sh_offset;
}

/* One of the sections, by chance. */
static bool choose_section(const uint8_t *data, size_t size, unsigned int chance,
			   Elf64_Shdr *section)
{
	Elf64_Ehdr header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, data, sizeof(header));
	for (unsigned int i = 0; i < header.e_shnum; i++)
		if (read_section(data, size, &header, (chance + i) % header.e_shnum, section) &&
		    is_wanted(section, size))
			return true;
	return false;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	Elf64_Shdr section;

	if (seed % 8 == 0 || !choose_section(data, size, seed / 8, &section))
		return LLVMFuzzerMutate(data, size, max);
	LLVMFuzzerMutate(data + section.sh_offset, section.sh_size, section.sh_size);
	return size;
}
