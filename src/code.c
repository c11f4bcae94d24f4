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
 * lea, sums, tests.  0: it is another.
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
	case 0x01: /* add */
	case 0x03:
	case 0x09: /* or */
	case 0x0b:
	case 0x21: /* and */
	case 0x23:
	case 0x29: /* sub */
	case 0x2b:
	case 0x31: /* xor */
	case 0x33:
	case 0x38: /* cmpb */
	case 0x39: /* cmp */
	case 0x3a:
	case 0x3b:
	case 0x89: /* mov */
	case 0x8b:
	case 0x8d: /* lea */
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
	case 0x83: /* add, or, and, sub, xor, cmp, with a constant */
	case 0xc1: /* shl, shr, sar */
		if ((code[at + 1] & 0xc7) == 0xc4 && (rex & 9) == 8)
			return 0;
		return at + 1 + operand_length(code + at + 1) + 1;
	case 0x80: /* cmpb, and others of bytes */
		return at + 1 + operand_length(code + at + 1) + 1;
	case 0x81:
		if ((code[at + 1] & 0xc7) == 0xc4 && (rex & 9) == 8)
			return 0;
		return at + 1 + operand_length(code + at + 1) + (code[0] == 0x66 ? 2 : 4);
	case 0x90: /* nop */
		return at + 1;
	case 0xc7: /* mov, of a constant */
		return at + 1 + operand_length(code + at + 1) + (code[0] == 0x66 ? 2 : 4);
	case 0xc6: /* movb, of a constant */
		return at + 1 + operand_length(code + at + 1) + 1;
	case 0x0f:
		switch (code[at + 1]) {
		case 0x10: /* movups, movss */
		case 0x11:
		case 0x16: /* movhps */
		case 0x17:
		case 0x1f: /* nop */
		case 0x28: /* movaps */
		case 0x29:
		case 0x57: /* xorps */
		case 0x6c: /* punpcklqdq */
		case 0x6e: /* movd */
		case 0x6f: /* movdqa */
		case 0x7e:
		case 0x7f:
		case 0xb6: /* movzbl */
		case 0xb7:
		case 0xbe: /* movsbl */
		case 0xbf:
		case 0xd6: /* movq */
		case 0xef: /* pxor */
			return at + 2 + operand_length(code + at + 2);
		}
		return 0;
	default:
		return (code[at] & 0xf8) == 0xb8 ? at + 1 + ((rex & 8) != 0 ? 8 : 4) : 0; /* mov, of a constant */
	}
}

#define CHUNK ((uintptr_t)1024)

/* mov %rsp, %rbp: either of its encodings. */
uintptr_t tdt__code_framing(uintptr_t from, uintptr_t to)
{
	unsigned char code[CHUNK];
	size_t got;

	for (; from + TDT__FRAMING_LENGTH <= to; from += got - (TDT__FRAMING_LENGTH - 1)) {
		got = tdt__peek(code, from, to - from < CHUNK ? to - from : CHUNK);
		if (got < TDT__FRAMING_LENGTH)
			return 0;
		for (size_t at = 0; at + TDT__FRAMING_LENGTH <= got; at++)
			if (memcmp(code + at, "\x48\x89\xe5", 3) == 0 || memcmp(code + at, "\x48\x8b\xec", 3) == 0)
				return from + at + TDT__FRAMING_LENGTH;
	}
	return 0;
}

/* Whether it goes elsewhere: compilers make a frame without.  (call, jmp, jcc, ret, the former two by pointers, too) */
static bool goes_elsewhere(const unsigned char *code)
{
	if (code[0] == 0x41 && code[1] == 0xff)
		code++;
	if (code[0] == 0xff)
		return (code[1] & 0x38) == 0x10 || (code[1] & 0x38) == 0x20;
	if (code[0] == 0x0f)
		return (code[1] & 0xf0) == 0x80;
	return (code[0] & 0xf0) == 0x70 || code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb || code[0] == 0xc3;
}

/* The number of the register that is pushed there; -1: none is. */
static int pushes(const unsigned char *code, size_t *length)
{
	bool rex = code[0] == 0x41;

	*length = rex ? 2 : 1;
	return (code[rex] & 0xf8) == 0x50 ? (code[rex] & 7) + (rex ? 8 : 0) : -1;
}

/* How much room `sub` makes; 0: it is something else. */
static int32_t makes_room(const unsigned char *code, size_t *length)
{
	if (code[0] != 0x48 || (code[1] != 0x83 && code[1] != 0x81) || code[2] != 0xec)
		return 0;
	*length = code[1] == 0x83 ? 4 : 7;
	return code[1] == 0x83 ? (int8_t)code[3] : offset_at(code + 3);
}

/* Room is made a page at a time, each of which is touched: orq $0, (%rsp); movq $0, (%rsp).  The length; 0: not so. */
static size_t touches(const unsigned char *code)
{
	if (memcmp(code, "\x48\x83\x0c\x24\x00", 5) == 0)
		return 5;
	return memcmp(code, "\x48\xc7\x04\x24\x00\x00\x00\x00", 8) == 0 ? 8 : 0;
}

#define PROLOGUE 128
#define LONGEST 16
#define SAVED (1u << 3 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15) /* rbx, r12 to r15: callees save them */
#define RAX (1u << 0)						    /* pushed for room alone */

/* push what is to be saved; sub $room, %rsp, or no room. */
intptr_t tdt__code_frame_size(uintptr_t behind)
{
	unsigned char code[PROLOGUE + LONGEST] = { 0 };
	size_t got = tdt__peek(code, behind, PROLOGUE), at = 0, length, touched;
	unsigned may_push = SAVED | RAX;
	bool in_pages = false;
	intptr_t size = 0;

	for (; at < got; at += length) {
		int pushed = pushes(code + at, &length);
		int32_t room;

		if (pushed >= 0) { /* what is pushed twice is an argument, that is not there at each call */
			if ((may_push >> pushed & 1) == 0)
				return -1;
			may_push = pushed == 0 ? 0 : may_push & ~(1u << pushed);
			size += 8;
			continue;
		}
		room = makes_room(code + at, &length);
		if (room != 0) {
			size += room;
			touched = touches(code + at + length);
			if (touched == 0)
				return size;
			in_pages = true;
			length += touched;
			continue;
		}
		if (goes_elsewhere(code + at))
			return in_pages ? -1 : size; /* in a loop, for more pages; or this is all */
		length = harmless(code + at);
		if (length == 0)
			return -1;
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

uintptr_t tdt__code_framing(uintptr_t from, uintptr_t to)
{
	(void)from;
	(void)to;
	return 0;
}

intptr_t tdt__code_frame_size(uintptr_t behind)
{
	(void)behind;
	return -1;
}

#else
#error "tdt: this architecture's calls are not known; add them here"
#endif
