/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_UNWIND_INSTRUCTION_H
#define TDT_SRC_UNWIND_INSTRUCTION_H

/* One instruction of x86-64: how long it is, and what it does to the stack pointer and to the flow of control. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TDT__INSTRUCTION_MAX 15

enum tdt__effect {
	TDT__EFFECT_NONE,    /* of no account here; it may be a call */
	TDT__EFFECT_ADDS,    /* the stack pointer becomes greater by `value` (push, pop, sub, add, lea with a constant) */
	TDT__EFFECT_FROM_FP, /* the stack pointer becomes the frame pointer + `value` */
	TDT__EFFECT_TO_FP,   /* the frame pointer becomes the stack pointer + `value` */
	TDT__EFFECT_SETS,    /* the stack pointer becomes something else: what was kept elsewhere */
	TDT__EFFECT_MOVES,   /* the stack pointer is moved by what is only known when it runs (alloca(), alignment) */
	TDT__EFFECT_JUMPS,   /* to the address `value`, always */
	TDT__EFFECT_MAY_JUMP,/* to the address `value` */
	TDT__EFFECT_LEAVES,  /* control ends here: ret, ud2 */
	TDT__EFFECT_POINTER, /* a jump by a pointer, to another function perhaps */
	TDT__EFFECT_TABLE    /* a jump by a table, within the function */
};

struct tdt__instruction {
	size_t length;
	enum tdt__effect effect;
	intptr_t value;
	bool adds;       /* it adds to a register: what is jumped to by that next is from a table of differences */
};

/*
 * Read the instruction at `address` from `code`, which has at least TDT__INSTRUCTION_MAX bytes.  False: it is none that
 * compilers make.
 */
bool tdt__instruction_read(const unsigned char *code, uintptr_t address, struct tdt__instruction *instruction);

#endif
