/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The registers of x86-64: see unwind/registers.h. */

#include <elf.h>

#include "tree/stacks.h"

#define TDT__MACHINE EM_X86_64
#define TDT__GENERAL_REGISTERS 16
#define TDT__RED_ZONE ((uintptr_t)128)
#define TDT__FRAME_LEAST 8

/* By the numbers of DWARF; the last is the return address. */
enum { TDT__CFI_FP = 6, TDT__CFI_SP = 7, TDT__CFI_PC = 16, TDT__CFI_REGISTERS = 17 };

/* rbx, rbp, and r12 to r15: a function says where it saved them, or does not change them. */
#define TDT__CFI_CALLEE_SAVED (1u << 3 | 1u << TDT__CFI_FP | 0xfu << 12)

#define TDT__OWN_CFA() ((uintptr_t)__builtin_frame_address(0) + 16)
#define TDT__OWN_TOP() TDT__OWN_CFA()
#define TDT__TOP_RECORD 0

static inline bool tdt__is_top(uintptr_t cfa, uintptr_t top)
{
	return cfa == top;
}

struct tdt__registers {
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
};

/* No return address is signed. */
static inline uintptr_t tdt__unsigned_pc(uintptr_t pc)
{
	return pc;
}

/* The frame pointer points to the place of the caller's frame pointer. */
#define TDT__CALLER_REGISTERS()                                                                    \
	((struct tdt__registers){ (uintptr_t)__builtin_return_address(0), TDT__OWN_CFA(),          \
				  *(const uintptr_t *)__builtin_frame_address(0) })

/* Where the return address of the frame is. */
static inline uintptr_t tdt__return_slot(const struct tdt__frame *frame)
{
	return frame->cfa - 8;
}

/* What is there. */
static inline uintptr_t tdt__return_word(uintptr_t slot, const struct tdt__frame *caller)
{
	(void)slot;
	return caller->pc;
}

/* Where the frame's CFA is; 0: it is computed. */
static inline uintptr_t tdt__cfa_slot(const struct tdt__frame *frame)
{
	return frame->cfa_at != 0 ? frame->fp + (uintptr_t)(intptr_t)frame->cfa_at : 0;
}

/* As what TDT__OWN_TOP() marks the frame. */
static inline uintptr_t tdt__mark_of(const struct tdt__frame *frame)
{
	return frame->cfa;
}
