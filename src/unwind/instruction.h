/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * One instruction: its length, and its effect on the stack pointer, the frame pointer and
 * the flow of control.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TDT__INSTRUCTION_MAX 15

enum tdt__effect {
	TDT__EFFECT_NONE,    /* no effect that matters here; the instruction may be a call */
	TDT__EFFECT_ADDS,    /* `value` is added to the stack pointer (push, pop, and sub, add, lea
				with a constant) */
	TDT__EFFECT_FROM_FP, /* the stack pointer becomes the frame pointer + `value` */
	TDT__EFFECT_TO_FP,   /* the frame pointer becomes the stack pointer + `value` */
	TDT__EFFECT_SETS,    /* the stack pointer becomes a value that was saved elsewhere */
	TDT__EFFECT_MOVES,   /* the stack pointer changes by an amount that is known only at run
				time (alloca(), alignment) */
	TDT__EFFECT_JUMPS,   /* a jump to the address `value` */
	TDT__EFFECT_MAY_JUMP,/* a conditional jump to the address `value` */
	TDT__EFFECT_LEAVES,  /* control does not go on from here: ret, ud2 */
	TDT__EFFECT_POINTER, /* a jump by a pointer, perhaps to another function */
	TDT__EFFECT_TABLE    /* a jump by a table, within the function */
};

struct tdt__instruction {
	size_t length;
	enum tdt__effect effect;
	intptr_t value;
	bool adds; /* an add to a register: if a jump by a pointer comes next, its target comes from
		      a table of differences */
};

/*
 * Read the instruction at `address`.  Its bytes are in `code`, which has TDT__INSTRUCTION_MAX bytes
 * at least.  False: the bytes are not an instruction that compilers make.
 */
bool tdt__instruction_read(const unsigned char *code, uintptr_t address,
			   struct tdt__instruction *instruction);
