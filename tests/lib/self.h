/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_SELF_H
#define TDT_TESTS_SELF_H

/*
 * The struct tdt__module of something loaded in the test itself, made without the library's own
 * snapshot.
 */

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/modules.h"

struct self_search {
	uintptr_t address;
	struct tdt__module module;
};

static inline void self_read_note(struct tdt__module *module, const char *note, size_t size)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *header = (const void *)note;
		size_t name = (header->n_namesz + 3U) & ~3U;
		const unsigned char *bits = (const unsigned char *)(header + 1) + name;
		size_t whole = sizeof(*header) + name + ((header->n_descsz + 3U) & ~3U);

		if (header->n_type == NT_GNU_BUILD_ID && memcmp(header + 1, "GNU", 4) == 0) {
			for (unsigned i = 0; i < header->n_descsz && i < TDT__BUILD_ID_MAX; i++)
				snprintf(module->build_id + 2 * i, 3, "%02x", bits[i]);
		}
		if (whole > size)
			break;
		note += whole;
		size -= whole;
	}
}

static inline int self_visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct self_search *search = data;
	char path[4096] = "";
	bool found = false;

	(void)size;
	search->module = (struct tdt__module){ .start = UINTPTR_MAX, .bias = info->dlpi_addr };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;
		uintptr_t end = start + segment->p_memsz;

		if (segment->p_type == PT_NOTE)
			self_read_note(&search->module, (const char *)start, segment->p_memsz);
		if (segment->p_type != PT_LOAD)
			continue;
		found |= search->address >= start && search->address < end;
		search->module.start = start < search->module.start ? start : search->module.start;
		search->module.end = end > search->module.end ? end : search->module.end;
	}
	if (!found)
		return 0;
	if (info->dlpi_name[0] == '\0' && readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return 0;
	search->module.path = strdup(path[0] != '\0' ? path : info->dlpi_name);
	return 1;
}

/* Of the module that `address` lies in.  The caller frees its path. */
static inline struct tdt__module self_module(uintptr_t address)
{
	struct self_search search = { .address = address };

	if (dl_iterate_phdr(self_visit, &search) != 1 || search.module.path == NULL)
		abort();
	return search.module;
}

#endif
