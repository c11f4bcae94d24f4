/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_UNWIND_CODE_H
#define TDT_SRC_UNWIND_CODE_H

/*
 * What machine code itself says of the frames it makes, where unwind information alone doesn't do.  Asker's side; code
 * is read through the kernel (peek.h), since it may be unloaded meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

#define TDT__JUMPS_MAX 8

enum tdt__call {
	TDT__CALL_NONE,	    /* there is no call before that address */
	TDT__CALL_ANOTHER,  /* a call of another function: who is there now was jumped to from that (a tail call), or
			       the address is left from something else */
	TDT__CALL_INDIRECT, /* a call by a pointer, which could be to any */
	TDT__CALL_DIRECT    /* a call of just that function */
};

/*
 * What kind of call of the function at `function` (0: unknown) may have `address` for its return address.  `*called`:
 * the function that it calls directly, or 0.
 */
enum tdt__call tdt__code_call(uintptr_t address, uintptr_t function, uintptr_t *called);

/* Where code of a function jumps to, outside of it: tail calls, and other parts of the function. */
struct tdt__jumps {
	bool all; /* there are no others: no jump by a pointer, and no more than there is room for */
	unsigned n;
	uintptr_t to[TDT__JUMPS_MAX];
};

void tdt__code_jumps(uintptr_t start, uintptr_t end, struct tdt__jumps *jumps);

/*
 * How far the stack pointer is below the frame pointer where the function [start, end) is at `pc`: an instruction that
 * has not been executed.  -1: can't be told; it makes room at run time (alloca()), or it has no frame pointer there.
 */
intptr_t tdt__code_frame_size(uintptr_t start, uintptr_t end, uintptr_t pc);

#endif
