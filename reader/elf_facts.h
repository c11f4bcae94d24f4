/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What the headers of an ELF image say: of a module in memory, or of a file. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elf.h>

#include "symbolize/modules.h"

/* The machine and the byte order that the reader itself was built for. */
#if defined(__x86_64__)
#define TDT__OWN_MACHINE EM_X86_64
#else
#define TDT__OWN_MACHINE EM_AARCH64
#endif
#define TDT__OWN_DATA ELFDATA2LSB

/* Reads `size` bytes of the image at `offset` from where it begins.  False: they are not there. */
typedef bool tdt__image_read_fn(void *image, uint64_t offset, void *buffer, size_t size);

struct tdt__elf_facts {
	uint64_t start; /* the address of the first segment in the file's terms, a page's begin */
	uint64_t end;   /* behind the last segment */
	char build_id[2 * TDT__BUILD_ID_MAX + 1]; /* in hexadecimal; "": none */
};

/*
 * Read the headers.  In memory (`loaded`) the notes lie where the segments were loaded, in a file
 * at their offset.  False: it is no ELF image of our machine, or its headers are damaged.
 */
bool tdt__elf_facts(struct tdt__elf_facts *facts, tdt__image_read_fn *read, void *image,
		    bool loaded);
