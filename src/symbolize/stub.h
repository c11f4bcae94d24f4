/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The stubs of a procedure linkage table: what a linker writes on each machine. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <elf.h>

#define TDT__STUB_CODE 12 /* so many bytes of a stub are looked at */

/* jmp *slot(%rip); endbr64 or bnd may come first. */
static inline bool tdt__stub_of_x86_64(const unsigned char *code, uint64_t address, uint64_t *slot)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	int32_t offset;
	size_t at = memcmp(code, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;

	at += code[at] == 0xf2;
	if (at + 6 > TDT__STUB_CODE || code[at] != 0xff || code[at + 1] != 0x25)
		return false;
	memcpy(&offset, code + at + 2, sizeof offset);
	*slot = address + at + 6 + (uint64_t)(int64_t)offset;
	return true;
}

#define TDT__BTI_C 0xd503245f

/* adrp x16, slot; ldr x17, [x16, slot]; bti may come first. */
static inline bool tdt__stub_of_aarch64(const unsigned char *code, uint64_t address, uint64_t *slot)
{
	uint32_t word[3];
	unsigned i;
	int64_t pages;

	memcpy(word, code, sizeof word);
	i = word[0] == TDT__BTI_C;
	if ((word[i] & 0x9f00001f) != 0x90000010 || (word[i + 1] & 0xffc003ff) != 0xf9400211)
		return false;
	pages = (int64_t)((uint64_t)(word[i] >> 5 & 0x7ffff) << 45) >> 43 | (word[i] >> 29 & 3);
	*slot = ((address + 4 * i) & ~UINT64_C(4095)) + (uint64_t)(pages * 4096) +
		(word[i + 1] >> 10 & 0xfff) * 8;
	return true;
}

/* The beginning of the stub of aarch64 that has the byte at `offset` of `code`. */
static inline size_t tdt__stub_start_of_aarch64(const unsigned char *code, size_t offset)
{
	size_t at = offset / 4 * 4, least = at > 20 ? at - 20 : 0;
	uint32_t word, before = 0;

	for (;; at -= 4) {
		memcpy(&word, code + at, sizeof word);
		if (at >= 4)
			memcpy(&before, code + at - 4, sizeof before);
		if ((word & 0x9f00001f) == 0x90000010)
			return before == TDT__BTI_C ? at - 4 : at;
		if (word == TDT__BTI_C || at == least)
			return at;
	}
}

/*
 * Where the stub begins that has the byte at `offset` of `code`, a section of stubs.  `size` is
 * that of a stub, as the section says it.  Those of aarch64 have 16 or 24 bytes, behind a head
 * of 32.
 */
static inline size_t tdt__stub_start(unsigned machine, const unsigned char *code, size_t offset,
				     size_t size)
{
	return machine == EM_AARCH64 ? tdt__stub_start_of_aarch64(code, offset)
				     : offset / size * size;
}

/*
 * Set `*slot` to the address of the word through which the stub at `address` jumps; `code` has
 * TDT__STUB_CODE bytes.  `machine` is as in an ELF header.  False: it is no stub.
 */
static inline bool tdt__stub_slot(unsigned machine, const unsigned char *code, uint64_t address,
				  uint64_t *slot)
{
	return machine == EM_X86_64    ? tdt__stub_of_x86_64(code, address, slot)
	       : machine == EM_AARCH64 ? tdt__stub_of_aarch64(code, address, slot)
				       : false;
}
