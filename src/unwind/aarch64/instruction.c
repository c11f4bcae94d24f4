// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading an instruction of aarch64, of 4 bytes (Arm's manual, C4.1).  Register 31 is sp where an
 * instruction may change it.
 */

#include "unwind/instruction.h"

#include <string.h>

#define SP 31
#define FP 29

/* Bits `low` to `low + n - 1` of the instruction, as a signed number. */
static intptr_t field(uint32_t code, unsigned low, unsigned n)
{
	return (intptr_t)((uint64_t)code << (64 - low - n)) >> (64 - n);
}

/* add and sub with a constant */
static void add_constant(struct tdt__instruction *instruction, uint32_t code)
{
	unsigned to = code & 31, from = code >> 5 & 31;

	instruction->value = (intptr_t)(code >> 10 & 0xfff) << ((code >> 22 & 1) * 12);
	if ((code & 0x40000000) != 0)
		instruction->value = -instruction->value;
	if (to == SP && from == SP)
		instruction->effect = TDT__EFFECT_ADDS;
	else if (to == SP)
		instruction->effect = from == FP ? TDT__EFFECT_FROM_FP : TDT__EFFECT_SETS;
	else if (to == FP && from == SP)
		instruction->effect = TDT__EFFECT_TO_FP;
}

/* How far a load or store moves sp, which it addresses by.  0: it does not. */
static intptr_t moves_sp(uint32_t code)
{
	unsigned size = code >> 30;

	if ((code >> 5 & 31) != SP)
		return 0;
	if ((code & 0x3a800000) == 0x28800000) { /* of two registers: integers; vectors */
		size = (code & 0x04000000) == 0 ? (size == 2 ? 3 : 2) : size + 2;
		return field(code, 15, 7) * ((intptr_t)1 << size);
	}
	return (code & 0x3b200400) == 0x38000400 ? field(code, 12, 9) : 0;
}

static void set_jump(struct tdt__instruction *instruction, enum tdt__effect effect,
		     uintptr_t address, intptr_t words)
{
	instruction->effect = effect;
	instruction->value = (intptr_t)address + 4 * words;
}

/* b; b.cond; cbz and cbnz; tbz and tbnz; br and braa; ret and retaa; brk and udf */
static void branch(struct tdt__instruction *instruction, uint32_t code, uintptr_t address)
{
	if ((code & 0xfc000000) == 0x14000000)
		set_jump(instruction, TDT__EFFECT_JUMPS, address, field(code, 0, 26));
	else if ((code & 0xff000000) == 0x54000000 || (code & 0x7e000000) == 0x34000000)
		set_jump(instruction, TDT__EFFECT_MAY_JUMP, address, field(code, 5, 19));
	else if ((code & 0x7e000000) == 0x36000000)
		set_jump(instruction, TDT__EFFECT_MAY_JUMP, address, field(code, 5, 14));
	else if ((code & 0xfffffc1f) == 0xd61f0000 || (code & 0xfefff800) == 0xd61f0800)
		instruction->effect = TDT__EFFECT_POINTER;
	else if ((code & 0xfffff01f) == 0xd65f0000 || (code & 0xfffffbff) == 0xd65f0bff ||
		 (code & 0xffe0001f) == 0xd4200000 || code >> 16 == 0)
		instruction->effect = TDT__EFFECT_LEAVES;
}

bool tdt__instruction_read(const unsigned char *bytes, uintptr_t address,
			   struct tdt__instruction *instruction)
{
	uint32_t code;

	memcpy(&code, bytes, sizeof code);
	*instruction = (struct tdt__instruction){
		.length = sizeof code, .effect = TDT__EFFECT_NONE,
		.adds = (code & 0x7f000000) == 0x0b000000
	};
	if (address % sizeof code != 0 || ((code & 0x1e000000) == 0 && code >> 16 != 0))
		return false;
	instruction->value = moves_sp(code);
	if (instruction->value != 0)
		instruction->effect = TDT__EFFECT_ADDS;
	else if ((code & 0xbf800000) == 0x91000000)
		add_constant(instruction, code);
	else if ((code & 31) == SP &&
		 ((code & 0xbfe00000) == 0x8b200000 || (code & 0xff800000) == 0x92000000 ||
		  (code & 0xffa0f800) == 0x04205000))
		instruction->effect = TDT__EFFECT_MOVES; /* by a register; and; addvl */
	else
		branch(instruction, code, address);
	return true;
}
