// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading an instruction of x86-64.  It consists of prefixes; an opcode in one of several maps;
 * sometimes a byte for operands (ModRM), which may be followed by a SIB byte and a displacement;
 * and sometimes a constant (Intel's manual, volume 2, chapter 2 and appendix A).
 */

#include "unwind/instruction.h"

#include <string.h>

#define RSP 4
#define RBP 5

struct parts {
	bool wide;	 /* REX.W: operands of 64 bits */
	bool narrow;	 /* operands of 16 bits */
	bool small;	 /* addresses of 32 bits */
	bool extended_r; /* REX.R: `reg` is one of r8 to r15 */
	bool extended_b; /* REX.B: `rm`, or `base`, is one of r8 to r15 */
	bool untracked; /* the prefix notrack: a jump by a table in the function */
	unsigned map; /* 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a; 4 and more: other maps of EVEX */
	bool vector;  /* VEX or EVEX */
	unsigned char opcode;
	unsigned mode, reg, rm; /* of ModRM */
	bool has_base;		/* the operand is in memory, at register `base` + `displacement`,
				   without an index */
	unsigned base;
	int32_t displacement;
	int64_t constant;
};

static int64_t constant_at(const unsigned char *code, size_t size)
{
	int64_t value = 0;
	unsigned unused = 64 - 8 * (unsigned)size;

	if (size == 0)
		return 0;
	memcpy(&value, code, size);
	return (int64_t)((uint64_t)value << unused) >> unused;
}

/* Read the prefixes, up to the opcode.  Returns how many bytes they take. */
static size_t prefixes(const unsigned char *code, struct parts *parts)
{
	size_t at = 0;

	for (; at < 8; at++) {
		if (code[at] == 0x66)
			parts->narrow = true;
		else if (code[at] == 0x67)
			parts->small = true;
		else if (code[at] == 0x3e)
			parts->untracked = true;
		else if (code[at] != 0xf0 && code[at] != 0xf2 && code[at] != 0xf3 &&
			 code[at] != 0x2e && code[at] != 0x36 && code[at] != 0x26 &&
			 code[at] != 0x64 && code[at] != 0x65)
			break;
	}
	if ((code[at] & 0xf0) == 0x40) {
		parts->wide = (code[at] & 8) != 0;
		parts->extended_r = (code[at] & 4) != 0;
		parts->extended_b = (code[at] & 1) != 0;
		at++;
	}
	return at;
}

/* Read the opcode, with the bytes that choose its map.  Returns how many bytes they take. */
static size_t opcode(const unsigned char *code, struct parts *parts)
{
	size_t at = 0;

	parts->vector = code[0] == 0xc4 || code[0] == 0xc5 || code[0] == 0x62;
	if (code[0] == 0xc5) {
		parts->map = 1;
		at = 2;
	} else if (code[0] == 0xc4) {
		parts->map = code[1] & 0x1f;
		at = 3;
	} else if (code[0] == 0x62) {
		parts->map = code[1] & 7;
		at = 4;
	} else if (code[0] == 0x0f) {
		parts->map = code[1] == 0x38 ? 2 : code[1] == 0x3a ? 3 : 1;
		at = parts->map == 1 ? 1 : 2;
	}
	parts->opcode = code[at];
	return at + 1;
}

/*
 * What follows each opcode, in rows of 16.  x: 64-bit mode has no such opcode.
 *
 *	m        operands: ModRM, and what follows that
 *	1 to 4   a constant of so many bytes
 *	z        a constant that is as wide as the operands, but has 4 bytes at most
 *	v        a constant that is as wide as the operands
 *	a        an address
 *	M, Z     operands, and a constant: 1, or z
 *	t, T     operands, and for `test` (the first two values of `reg`) a constant: 1, or z
 */
static const char one_byte[] = "mmmm1zxxmmmm1zx."
			       "mmmm1z..mmmm1z.."
			       "mmmm1z.xmmmm1z.x"
			       "mmmm1z.xmmmm1z.x"
			       "................"
			       "................"
			       "xx.m....zZ1M...."
			       "1111111111111111"
			       "MZxMmmmmmmmmmmmm"
			       "..........x....."
			       "aaaa....1z......"
			       "11111111vvvvvvvv"
			       "MM2...MZ3.2..1.."
			       "mmmm....mmmmmmmm"
			       "1111111144x1...."
			       "......tT......mm";
static const char two_bytes[] = "mmmmm.....m.mmmm"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"........mmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"MMMMmmm.mmmmmmmm"
				"4444444444444444"
				"mmmmmmmmmmmmmmmm"
				"...mMmmm..mmMmmm"
				"mmmmmmmmmmMmmmmm"
				"mmMmMMMm........"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm";

static char what_follows(const struct parts *parts)
{
	switch (parts->map) {
	case 0:
		return parts->vector ? 'x' : one_byte[parts->opcode];
	case 1:
		return two_bytes[parts->opcode];
	case 3:
		return 'M';
	default:
		return 'm';
	}
}

static size_t constant_size(const struct parts *parts, char follows)
{
	size_t z = parts->narrow && !parts->wide ? 2 : 4;

	switch (follows) {
	case '1':
	case 'M':
		return 1;
	case '2':
		return 2;
	case '3':
		return 3;
	case '4':
		return parts->vector ? 0 : 4;
	case 'z':
	case 'Z':
		return z;
	case 'v':
		return parts->wide ? 8 : z;
	case 'a':
		return parts->small ? 4 : 8;
	case 't':
		return parts->reg < 2 ? 1 : 0;
	case 'T':
		return parts->reg < 2 ? z : 0;
	default:
		return 0;
	}
}

/* Read ModRM, SIB and displacement.  Returns how many bytes they take. */
static size_t operands(const unsigned char *code, struct parts *parts)
{
	size_t at = 1, size = 0;

	parts->mode = code[0] >> 6;
	parts->reg = code[0] >> 3 & 7;
	parts->rm = code[0] & 7;
	if (parts->mode == 3)
		return at;
	parts->base = parts->rm;
	parts->has_base = true;
	if (parts->rm == 4) {
		parts->base = code[1] & 7;
		parts->has_base = (code[1] >> 3 & 7) == 4; /* no index */
		at++;
	}
	if (parts->mode == 1) {
		size = 1;
	} else if (parts->mode == 2) {
		size = 4;
	} else if (parts->base == 5) { /* no base: relative to 0, or to the next instruction */
		size = 4;
		parts->has_base = false;
	}
	parts->displacement = (int32_t)constant_at(code + at, size);
	return at + size;
}

static bool read_parts(const unsigned char *code, struct parts *parts, size_t *length)
{
	size_t at = prefixes(code, parts), size;
	char follows;

	at += opcode(code + at, parts);
	follows = what_follows(parts);
	if (follows == 'x')
		return false;
	if (strchr("mMZtT", follows) != NULL)
		at += operands(code + at, parts);
	size = constant_size(parts, follows);
	if (at + size > TDT__INSTRUCTION_MAX)
		return false;
	parts->constant = constant_at(code + at, size);
	*length = at + size;
	return true;
}

static void set_effect(struct tdt__instruction *instruction, enum tdt__effect effect,
		       intptr_t value)
{
	instruction->effect = effect;
	instruction->value = value;
}

/* Whether the operand `reg` is register `number`, one of the first eight. */
static bool reg_is(const struct parts *parts, unsigned number)
{
	return parts->reg == number && !parts->extended_r;
}

/* Whether the operand `rm` is register `number`, one of the first eight, and not in memory. */
static bool rm_is(const struct parts *parts, unsigned number)
{
	return parts->mode == 3 && parts->rm == number && !parts->extended_b;
}

/* Arithmetic with a constant: add, or, adc, sbb, and, sub, xor, cmp. */
static void sum(struct tdt__instruction *instruction, const struct parts *parts)
{
	if (!rm_is(parts, RSP) || parts->reg == 7)
		return;
	if (parts->wide && parts->reg == 0)
		set_effect(instruction, TDT__EFFECT_ADDS, parts->constant);
	else if (parts->wide && parts->reg == 5)
		set_effect(instruction, TDT__EFFECT_ADDS, -parts->constant);
	else
		set_effect(instruction, TDT__EFFECT_MOVES, 0);
}

/* mov: the flags say whether its target and its source are rsp or rbp. */
static void move(struct tdt__instruction *instruction, bool to_rsp, bool to_rbp, bool from_rsp,
		 bool from_rbp)
{
	if (to_rsp && from_rbp)
		set_effect(instruction, TDT__EFFECT_FROM_FP, 0);
	else if (to_rbp && from_rsp)
		set_effect(instruction, TDT__EFFECT_TO_FP, 0);
	else if (to_rsp && !from_rsp)
		set_effect(instruction, TDT__EFFECT_SETS, 0);
}

static void lea(struct tdt__instruction *instruction, const struct parts *parts)
{
	bool by_rsp = parts->has_base && parts->base == RSP && !parts->extended_b;
	bool by_rbp = parts->has_base && parts->base == RBP && !parts->extended_b;

	if (reg_is(parts, RSP))
		set_effect(instruction,
			   by_rsp   ? TDT__EFFECT_ADDS
			   : by_rbp ? TDT__EFFECT_FROM_FP
				    : TDT__EFFECT_SETS,
			   parts->displacement);
	else if (reg_is(parts, RBP) && by_rsp)
		set_effect(instruction, TDT__EFFECT_TO_FP, parts->displacement);
}

/* Opcode ff: inc, dec, call, far call, jmp, far jmp, push. */
static void group_5(struct tdt__instruction *instruction, const struct parts *parts)
{
	bool by_index = parts->mode != 3 && parts->rm == 4 && !parts->has_base;

	if (parts->reg == 4 || parts->reg == 5)
		set_effect(instruction,
			   parts->untracked || by_index ? TDT__EFFECT_TABLE : TDT__EFFECT_POINTER,
			   0);
	else if (parts->reg == 6)
		set_effect(instruction, TDT__EFFECT_ADDS, -8);
	else if (parts->reg < 2 && rm_is(parts, RSP))
		set_effect(instruction, TDT__EFFECT_MOVES, 0);
}

static void one_byte_effect(struct tdt__instruction *instruction, const struct parts *parts,
			    uintptr_t next)
{
	unsigned char opcode = parts->opcode;

	if (opcode >= 0x50 && opcode <= 0x57) {
		set_effect(instruction, TDT__EFFECT_ADDS, -8);
	} else if (opcode >= 0x58 && opcode <= 0x5f) {
		set_effect(
		    instruction,
		    opcode == 0x5c && !parts->extended_b ? TDT__EFFECT_SETS : TDT__EFFECT_ADDS, 8);
	} else if ((opcode >= 0x70 && opcode <= 0x7f) || (opcode >= 0xe0 && opcode <= 0xe3)) {
		set_effect(instruction, TDT__EFFECT_MAY_JUMP, (intptr_t)next + parts->constant);
	} else if (opcode < 0x38 && (opcode & 7) < 4) {
		/* Arithmetic: bit 1 says that the result goes to `reg`, or else to `rm`. */
		if ((opcode & 2) != 0 ? reg_is(parts, RSP) : rm_is(parts, RSP))
			set_effect(instruction, TDT__EFFECT_MOVES, 0);
	} else {
		switch (opcode) {
		case 0x68:
		case 0x6a:
		case 0x9c: /* pushf */
			set_effect(instruction, TDT__EFFECT_ADDS, -8);
			break;
		case 0x8f:
		case 0x9d:
			set_effect(instruction, TDT__EFFECT_ADDS, 8);
			break;
		case 0x81:
		case 0x83:
			sum(instruction, parts);
			break;
		case 0x89:
			move(instruction, rm_is(parts, RSP), rm_is(parts, RBP), reg_is(parts, RSP),
			     reg_is(parts, RBP));
			break;
		case 0x8b:
			move(instruction, reg_is(parts, RSP), reg_is(parts, RBP), rm_is(parts, RSP),
			     rm_is(parts, RBP));
			break;
		case 0x8d:
			lea(instruction, parts);
			break;
		case 0xc1:
		case 0xd1:
		case 0xd3:
		case 0x87: /* shifts, xchg */
			if (rm_is(parts, RSP))
				set_effect(instruction, TDT__EFFECT_MOVES, 0);
			break;
		case 0xc2:
		case 0xc3:
		case 0xcb:
		case 0xcc: /* int3: padding */
		case 0xf4:
			set_effect(instruction, TDT__EFFECT_LEAVES, 0);
			break;
		case 0xc8: /* enter */
			set_effect(instruction, TDT__EFFECT_MOVES, 0);
			break;
		case 0xc9: /* leave */
			set_effect(instruction, TDT__EFFECT_FROM_FP, 8);
			break;
		case 0xe9:
		case 0xeb:
			set_effect(instruction, TDT__EFFECT_JUMPS,
				   (intptr_t)next + parts->constant);
			break;
		case 0xff:
			group_5(instruction, parts);
			break;
		}
	}
}

bool tdt__instruction_read(const unsigned char *code, uintptr_t address,
			   struct tdt__instruction *instruction)
{
	struct parts parts = { 0 };
	uintptr_t next;

	*instruction = (struct tdt__instruction){ .effect = TDT__EFFECT_NONE };
	if (!read_parts(code, &parts, &instruction->length))
		return false;
	next = address + instruction->length;
	instruction->adds = parts.map == 0 && (parts.opcode == 0x01 || parts.opcode == 0x03);
	if (parts.map == 0)
		one_byte_effect(instruction, &parts, next);
	else if (parts.map == 1 && !parts.vector && parts.opcode >= 0x80 && parts.opcode <= 0x8f)
		set_effect(instruction, TDT__EFFECT_MAY_JUMP, (intptr_t)next + parts.constant);
	else if (parts.map == 1 && !parts.vector && parts.opcode == 0x0b)
		set_effect(instruction, TDT__EFFECT_LEAVES, 0);
	return true;
}
