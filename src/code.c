// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Calls, and the beginnings of functions, as machine code has them.  What isn't understood gives no answer. */

#include <config.h>

#include "code.h"

#include <stdbool.h>
#include <string.h>

#include "peek.h"

/* Code that is loaded, or nothing. */
static bool is_code(const struct tdt__modules *modules, uintptr_t address)
{
	return tdt__modules_find(modules, address) != NULL;
}

#if defined(__x86_64__)

static int32_t offset_at(const unsigned char *code)
{
	int32_t offset;

	memcpy(&offset, code, sizeof offset);
	return offset;
}

/* The pointer at `address`; 0: there is none. */
static uintptr_t pointer_at(uintptr_t address)
{
	uintptr_t pointer;

	return tdt__peek(&pointer, address, sizeof pointer) == sizeof pointer ? pointer : 0;
}

/* Where a call of `target` ends up: in a procedure linkage table it is a jump by a pointer.  (endbr64; bnd jmp) */
static uintptr_t through_plt(uintptr_t target)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned char code[11];
	size_t at = 0;

	if (tdt__peek(code, target, sizeof code) != sizeof code)
		return target;
	if (memcmp(code, endbr64, sizeof endbr64) == 0)
		at = sizeof endbr64;
	at += code[at] == 0xf2;
	if (at + 6 > sizeof code || code[at] != 0xff || code[at + 1] != 0x25)
		return target;
	return pointer_at(target + at + 6 + (uintptr_t)(intptr_t)offset_at(code + at + 2));
}

/* Whether an instruction that ends at `end` is a call by a register, or by memory that a register points to. */
static bool calls_by_register(const unsigned char *end)
{
	if (end[-2] == 0xff && ((end[-1] & 0xf8) == 0xd0 || ((end[-1] & 0xf8) == 0x10 && (end[-1] & 6) != 4)))
		return true; /* call *%rax; call *(%rax) */
	if (end[-3] == 0xff && (((end[-2] & 0xf8) == 0x50 && end[-2] != 0x54) || end[-2] == 0x14))
		return true; /* call *8(%rax); call *(%rax,%rbx) */
	if (end[-4] == 0xff && end[-3] == 0x54)
		return true; /* call *8(%rsp) */
	if (end[-6] == 0xff && (end[-5] & 0xf8) == 0x90 && end[-5] != 0x94)
		return true;						/* call *1000(%rax) */
	return end[-7] == 0xff && (end[-6] == 0x94 || end[-6] == 0x14); /* call *1000(%rsp); call *table(,%rax,8) */
}

enum tdt__call tdt__code_call(const struct tdt__modules *modules, uintptr_t address, uintptr_t function)
{
	unsigned char code[7], *end = code + sizeof code;
	uintptr_t target;

	if (!is_code(modules, address - 1) || tdt__peek(code, address - sizeof code, sizeof code) != sizeof code)
		return TDT__CALL_NONE;
	if (end[-5] == 0xe8) {
		target = address + (uintptr_t)(intptr_t)offset_at(end - 4);
		if (target == function || (is_code(modules, target) && through_plt(target) == function))
			return TDT__CALL_DIRECT;
		if (is_code(modules, target))
			return TDT__CALL_ANOTHER;
	}
	if (end[-6] == 0xff && end[-5] == 0x15) { /* call *pointer(%rip), as of -fno-plt; or a variable */
		target = pointer_at(address + (uintptr_t)(intptr_t)offset_at(end - 4));
		return target == function ? TDT__CALL_DIRECT : TDT__CALL_INDIRECT;
	}
	return calls_by_register(end) ? TDT__CALL_INDIRECT : TDT__CALL_NONE;
}

/* How long the operand is that begins with the byte `modrm`, of code that has at least 2 bytes more. */
static size_t operand_length(const unsigned char *modrm)
{
	unsigned mode = modrm[0] >> 6, base = modrm[0] & 7;
	size_t length = 1;

	if (mode == 3)
		return length;
	if (base == 4) {
		base = modrm[1] & 7;
		length++;
	}
	if (mode == 1)
		return length + 1;
	return length + (mode == 2 || base == 5 ? 4 : 0);
}

/*
 * The length of an instruction that compilers put between those that make a frame, and that leaves rsp alone: moves,
 * lea, xor, test, cmp.  0: it is another.
 */
static size_t harmless(const unsigned char *code)
{
	size_t at = 0;
	unsigned rex = 0;

	if (code[at] == 0x66 || code[at] == 0xf3 || code[at] == 0xf2)
		at++;
	else if (code[at] == 0x64)
		at++;
	if ((code[at] & 0xf0) == 0x40)
		rex = code[at++];
	switch (code[at]) {
	case 0x89: /* mov */
	case 0x8b:
	case 0x8d: /* lea */
	case 0x31: /* xor */
	case 0x33:
	case 0x39: /* cmp */
	case 0x3b:
	case 0x63: /* movslq */
	case 0x84: /* test */
	case 0x85:
	case 0x88: /* movb */
	case 0x8a:
		/* What is put into rsp (as to align it) makes another frame. */
		if ((code[at] & 2) != 0 || code[at] == 0x8d ? (code[at + 1] & 0x38) == 0x20 && (rex & 0xc) == 8
							    : (code[at + 1] & 0xc7) == 0xc4 && (rex & 9) == 8)
			return 0;
		return at + 1 + operand_length(code + at + 1);
	case 0xc7: /* mov, of a constant */
		return at + 1 + operand_length(code + at + 1) + 4;
	case 0xc6: /* movb, of a constant */
		return at + 1 + operand_length(code + at + 1) + 1;
	case 0x0f:
		switch (code[at + 1]) {
		case 0x10: /* movups, movss */
		case 0x11:
		case 0x28: /* movaps */
		case 0x29:
		case 0x57: /* xorps */
		case 0x6e: /* movd */
		case 0x6f: /* movdqa */
		case 0x7f:
		case 0xb6: /* movzbl */
		case 0xb7:
		case 0xef: /* pxor */
			return at + 2 + operand_length(code + at + 2);
		}
		return 0;
	default:
		return (code[at] & 0xf8) == 0xb8 ? at + 1 + ((rex & 8) != 0 ? 8 : 4) : 0; /* mov, of a constant */
	}
}

#define PROLOGUE 128
#define LONGEST 16

/* push %rbp; mov %rsp, %rbp; push what is to be saved; sub $room, %rsp, or no room. */
intptr_t tdt__code_frame_size(uintptr_t function)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned char code[PROLOGUE + LONGEST] = { 0 };
	size_t got = tdt__peek(code, function, PROLOGUE), at = 0, length;
	bool pushed = false, framed = false;
	intptr_t size = 0;

	if (got >= sizeof endbr64 && memcmp(code, endbr64, sizeof endbr64) == 0)
		at = sizeof endbr64;
	for (; at < got; at += length) {
		const unsigned char *next = code + at;

		length = 0;
		if (!pushed && next[0] == 0x55) {
			pushed = true;
			length = 1;
		} else if (pushed && !framed && next[0] == 0x48 &&
			   ((next[1] == 0x89 && next[2] == 0xe5) || (next[1] == 0x8b && next[2] == 0xec))) {
			framed = true;
			length = 3;
		} else if (framed && (next[0] & 0xf8) == 0x50) {
			size += 8;
			length = 1;
		} else if (framed && next[0] == 0x41 && (next[1] & 0xf8) == 0x50) {
			size += 8;
			length = 2;
		} else if (framed && next[0] == 0x48 && next[1] == 0x83 && next[2] == 0xec) {
			return size + (int8_t)next[3];
		} else if (framed && next[0] == 0x48 && next[1] == 0x81 && next[2] == 0xec) {
			return size + offset_at(next + 3);
		} else {
			length = harmless(next);
		}
		if (length == 0)
			return framed && next[0] == 0xe8 ? size : -1; /* a call: here it is as large as that */
	}
	return -1;
}

#elif defined(__aarch64__)

enum tdt__call tdt__code_call(const struct tdt__modules *modules, uintptr_t address, uintptr_t function)
{
	uint32_t code;

	if (!is_code(modules, address - 1) || address % 4 != 0 ||
	    tdt__peek(&code, address - 4, sizeof code) != sizeof code)
		return TDT__CALL_NONE;
	if ((code & 0xfffffc1f) == 0xd63f0000) /* blr */
		return TDT__CALL_INDIRECT;
	if ((code & 0xfc000000) != 0x94000000) /* bl */
		return TDT__CALL_NONE;
	/* 26 bits, signed, of words. */
	address += (uintptr_t)((intptr_t)((uintptr_t)code << 38) >> 36) - 4;
	return address == function ? TDT__CALL_DIRECT : TDT__CALL_ANOTHER;
}

intptr_t tdt__code_frame_size(uintptr_t function)
{
	(void)function;
	return -1;
}

#else
#error "tdt: this architecture's calls are not known; add them here"
#endif
