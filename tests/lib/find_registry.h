/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_LIB_FIND_REGISTRY_H
#define TDT_TESTS_LIB_FIND_REGISTRY_H

/*
 * The registry of this process, found as <tdt/layout/registry.h> says; for programs linked with
 * libtdt.
 */

#include <link.h>
#include <stdint.h>
#include <string.h>

#include <tdt/layout/registry.h>

/*
 * It reads all that a module has, also what lies between variables, where a sanitizer allows no
 * read.  So the magic is compared as a number: sanitizers look at memcmp(), too.
 */
static __attribute__((no_sanitize("address", "thread"))) int find_in_module(
    struct dl_phdr_info *module, size_t size, void *arg)
{
	const struct tdt_registry **found = arg;
	uint64_t magic;

	(void)size;
	memcpy(&magic, TDT_REGISTRY_MAGIC, sizeof magic);
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
		uintptr_t at = (module->dlpi_addr + segment->p_vaddr + 63) & ~(uintptr_t)63;
		uintptr_t end = module->dlpi_addr + segment->p_vaddr + segment->p_memsz;

		if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) == 0)
			continue;
		for (; at + sizeof **found <= end && *found == NULL; at += 64) {
			const struct tdt_registry *registry = (const void *)at;

			if (*(const uint64_t *)at == magic && registry->self == at)
				*found = registry;
		}
	}
	return *found != NULL;
}

/* NULL: there is none. */
static inline const struct tdt_registry *find_registry(void)
{
	const struct tdt_registry *found = NULL;

	dl_iterate_phdr(find_in_module, &found);
	return found;
}

#endif
