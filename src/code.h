/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CODE_H
#define TDT_SRC_CODE_H

/*
 * What machine code itself says of the frames it makes, where unwind information alone doesn't do.  Asker's side; code
 * is read through the kernel (peek.h), since it may be unloaded meanwhile.
 */

#include <stdint.h>

#include "modules.h"

enum tdt__call {
	TDT__CALL_NONE,	    /* there is no call before that address */
	TDT__CALL_ANOTHER,  /* a call of another function: who is there now was jumped to from that (a tail call), or
			       the address is left from something else */
	TDT__CALL_INDIRECT, /* a call by a pointer, which could be to any */
	TDT__CALL_DIRECT    /* a call of just that function */
};

/* What kind of call of the function at `function` (0: unknown) may have `address` for its return address. */
enum tdt__call tdt__code_call(const struct tdt__modules *modules, uintptr_t address, uintptr_t function);

/*
 * Where code goes on behind what may be the instruction that makes the stack pointer the frame pointer: the first such
 * place in [from, to).  0: there is none.  Instructions begin wherever they please: so it has to be asked of others,
 * too, whether it is one.
 */
uintptr_t tdt__code_framing(uintptr_t from, uintptr_t to);

#if defined(__x86_64__)
#define TDT__FRAMING_LENGTH 3 /* of that instruction */
#else
#define TDT__FRAMING_LENGTH 4
#endif

/*
 * How far below its frame pointer a function keeps its stack pointer, unless it makes room at run time (alloca(),
 * arguments on the stack) for more.  `behind` is where its code goes on when it has its frame pointer.  -1: can't be
 * told.
 */
intptr_t tdt__code_frame_size(uintptr_t behind);

#endif
