/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The registers of aarch64: see unwind/registers.h. */

#include <elf.h>

#include "tree/stacks.h"

#define TDT__MACHINE EM_AARCH64
#define TDT__GENERAL_REGISTERS 32
#define TDT__RED_ZONE ((uintptr_t)0)
#define TDT__FRAME_LEAST 0

/*
 * By the numbers of DWARF: x0 to x30, and sp.  The return address is in x30 when a function begins;
 * behind a call that the function made, x30 has what that call left there.
 */
enum { TDT__CFI_FP = 29, TDT__CFI_PC = 30, TDT__CFI_SP = 31, TDT__CFI_REGISTERS = 32 };

/* x19 to x30: a function says where it saved them, or does not change them. */
#define TDT__CFI_CALLEE_SAVED (0xfffu << 19)

/*
 * The frame record, where x29 points to, lies anywhere in a frame.  So it is the mark, and the
 * frame's CFA is above it.
 */
#ifdef __clang__
#define TDT__OWN_CFA() ((uintptr_t)__builtin_sponentry())
#else
#define TDT__OWN_CFA() ((uintptr_t)__builtin_dwarf_cfa())
#endif
#define TDT__OWN_TOP() ((uintptr_t)__builtin_frame_address(0))
#define TDT__TOP_RECORD 16 /* the frame record at the mark */

static inline bool tdt__is_top(uintptr_t cfa, uintptr_t top)
{
	return cfa > top;
}

struct tdt__registers {
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
	uintptr_t lr; /* x30 of an innermost frame that has made no call; 0: unknown */
};

/*
 * A return address without its signature, if the function has signed it (PAuth).  The instruction
 * is xpaclri, which does nothing on a processor that signs nothing.
 */
static inline uintptr_t tdt__unsigned_pc(uintptr_t pc)
{
	register uintptr_t lr __asm__("x30") = pc;

	__asm__("hint #7" : "+r"(lr));
	return lr;
}

#define TDT__CALLER_REGISTERS()                                                                    \
	((struct tdt__registers){                                                                  \
	    .pc = tdt__unsigned_pc((uintptr_t)__builtin_return_address(0)),                        \
	    .sp = TDT__OWN_CFA(),                                                                  \
	    .fp = *(const uintptr_t *)__builtin_frame_address(0) })

/* Where the return address of the frame is. */
static inline uintptr_t tdt__return_slot(const struct tdt__frame *frame)
{
	return frame->cfa + (uintptr_t)(intptr_t)frame->pc_at;
}

/* What is there: the return address may be signed. */
static inline uintptr_t tdt__return_word(uintptr_t slot, const struct tdt__frame *caller)
{
	(void)caller;
	return *(const volatile uintptr_t *)slot;
}

/* Where the frame's CFA is; 0: it is computed. */
static inline uintptr_t tdt__cfa_slot(const struct tdt__frame *frame)
{
	(void)frame;
	return 0;
}

/* As what TDT__OWN_TOP() marks the frame.  0: it keeps no frame pointer. */
static inline uintptr_t tdt__mark_of(const struct tdt__frame *frame)
{
	return frame->fp_slot == frame->fp ? frame->fp : 0;
}
