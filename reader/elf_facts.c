// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading the headers and the build-id of an ELF image that cannot be trusted. */

#include "reader/elf_facts.h"

#include <string.h>

#define MOST_HEADERS 128
#define MOST_NOTES 65536 /* bytes of one segment */
#define HEADERS_PAGE UINT64_C(4096)

static void read_note_segment(struct tdt__elf_facts *facts, const Elf64_Phdr *header,
			      tdt__image_read_fn *read, void *image, bool loaded)
{
	unsigned char notes[4096];
	size_t size = header->p_filesz < sizeof notes ? header->p_filesz : sizeof notes;
	uint64_t at = loaded ? header->p_vaddr - facts->start : header->p_offset;

	if (facts->build_id[0] == '\0' && header->p_filesz <= MOST_NOTES &&
	    read(image, at, notes, size))
		tdt__build_id_find(facts->build_id, notes, size, header->p_align);
}

/* False: the segments do not lie one behind the other, as they must. */
static bool read_extent(struct tdt__elf_facts *facts, const Elf64_Phdr *header, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		uint64_t end = header[i].p_vaddr + header[i].p_memsz;

		if (header[i].p_type != PT_LOAD)
			continue;
		if (end < header[i].p_vaddr || (any && header[i].p_vaddr < facts->start))
			return false;
		if (!any)
			facts->start = header[i].p_vaddr & -HEADERS_PAGE;
		any = true;
		if (end > facts->end)
			facts->end = end;
	}
	return facts->end > facts->start;
}

bool tdt__elf_facts(struct tdt__elf_facts *facts, tdt__image_read_fn *read, void *image,
		    bool loaded)
{
	Elf64_Phdr header[MOST_HEADERS];
	Elf64_Ehdr elf;

	*facts = (struct tdt__elf_facts){ 0 };
	if (!read(image, 0, &elf, sizeof elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
	    elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_ident[EI_DATA] != TDT__OWN_DATA ||
	    elf.e_machine != TDT__OWN_MACHINE || elf.e_phentsize != sizeof header[0] ||
	    elf.e_phnum == 0 || elf.e_phnum > MOST_HEADERS ||
	    !read(image, elf.e_phoff, header, elf.e_phnum * sizeof header[0]) ||
	    !read_extent(facts, header, elf.e_phnum))
		return false;
	for (size_t i = 0; i < elf.e_phnum; i++)
		if (header[i].p_type == PT_NOTE)
			read_note_segment(facts, &header[i], read, image, loaded);
	return true;
}
