/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What machine code itself says about its frames, for cases where unwind information is not enough.
 * The requester calls this.  The code is read through the kernel (peek.h), since it may be unloaded
 * meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

#define TDT__JUMPS_MAX 8

enum tdt__call {
	TDT__CALL_NONE,	    /* there is no call before the address */
	TDT__CALL_ANOTHER,  /* a call of another function: that jumped to the function (a tail
			       call), or the address is left over from an earlier call */
	TDT__CALL_INDIRECT, /* a call by a pointer, which may be that of any function */
	TDT__CALL_DIRECT    /* a call of the function itself */
};

/*
 * The kind of the call that ends at `address`, if the frame of the function at `function` (0:
 * unknown) has `address` for its return address.  `*called` is the function that the instruction
 * calls directly, or 0.  (calls.c of the architecture)
 */
enum tdt__call tdt__code_call(uintptr_t address, uintptr_t function, uintptr_t *called);

/*
 * The function that a call of `target` leads to: another one if `target` is a stub of a procedure
 * linkage table.
 */
uintptr_t tdt__code_through_plt(uintptr_t target);

/*
 * The addresses outside of a function that its code jumps to: tail calls, and other parts of the
 * same function.
 */
struct tdt__jumps {
	bool all; /* `to` has all of them: no jump is by a pointer, and there was enough room */

	unsigned n;
	uintptr_t to[TDT__JUMPS_MAX];
};

/* Find the jumps of the code [start, end). */
void tdt__code_jumps(uintptr_t start, uintptr_t end, struct tdt__jumps *jumps);

/*
 * How far the stack pointer is below the frame pointer when the function [start, end) is about to
 * execute the instruction at `pc`.  -1: this is not known, because the function allocates stack at
 * run time (alloca()), has no frame pointer there, or is not understood.
 */
intptr_t tdt__code_frame_size(uintptr_t start, uintptr_t end, uintptr_t pc);
