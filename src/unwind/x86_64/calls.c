// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The calls of x86-64: see unwind/code.h. */

#include <string.h>

#include "host/loaded.h"
#include "host/peek.h"
#include "unwind/code.h"

static int32_t offset_at(const unsigned char *code)
{
	int32_t offset;

	memcpy(&offset, code, sizeof offset);
	return offset;
}

/* The pointer at `address`; 0: it can't be read. */
static uintptr_t pointer_at(uintptr_t address)
{
	uintptr_t pointer;

	return tdt__peek(&pointer, address, sizeof pointer) == sizeof pointer ? pointer : 0;
}

/*
 * Whether an instruction that ends at `end` is a call by a register, or by memory that a register
 * points to.
 */
static bool calls_by_register(const unsigned char *end)
{
	if (end[-2] == 0xff &&
	    ((end[-1] & 0xf8) == 0xd0 || ((end[-1] & 0xf8) == 0x10 && (end[-1] & 6) != 4)))
		return true; /* call *%rax; call *(%rax) */
	if (end[-3] == 0xff && (((end[-2] & 0xf8) == 0x50 && end[-2] != 0x54) || end[-2] == 0x14))
		return true; /* call *8(%rax); call *(%rax,%rbx) */
	if (end[-4] == 0xff && end[-3] == 0x54)
		return true; /* call *8(%rsp) */
	if (end[-6] == 0xff && (end[-5] & 0xf8) == 0x90 && end[-5] != 0x94)
		return true; /* call *1000(%rax) */
	/* call *1000(%rsp); call *table(,%rax,8) */
	return end[-7] == 0xff && (end[-6] == 0x94 || end[-6] == 0x14);
}

enum tdt__call tdt__code_call(uintptr_t address, uintptr_t function, uintptr_t *called)
{
	unsigned char code[7], *end = code + sizeof code;
	uintptr_t target;

	*called = 0;
	if (!tdt__is_loaded(address - 1) ||
	    tdt__peek(code, address - sizeof code, sizeof code) != sizeof code)
		return TDT__CALL_NONE;
	if (end[-5] == 0xe8) {
		target = address + (uintptr_t)(intptr_t)offset_at(end - 4);
		*called = tdt__is_loaded(target) ? tdt__code_through_plt(target) : target;
		if (target == function || *called == function)
			return TDT__CALL_DIRECT;
		if (tdt__is_loaded(target))
			return TDT__CALL_ANOTHER;
	}
	/* call *pointer(%rip): code of -fno-plt, or a pointer in a variable */
	if (end[-6] == 0xff && end[-5] == 0x15) {
		target = pointer_at(address + (uintptr_t)(intptr_t)offset_at(end - 4));
		return target == function ? TDT__CALL_DIRECT : TDT__CALL_INDIRECT;
	}
	return calls_by_register(end) ? TDT__CALL_INDIRECT : TDT__CALL_NONE;
}
