/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Where the frame of a function of ours lies on the stack.  TDT__OWN_CFA() and TDT__OWN_TOP() make
 * the compiler keep a frame pointer in the function that uses them.  Its frame then has the layout
 * of the example in the ABI.  Such a function must not be inlined, and must not have over-aligned
 * local variables.
 */

#include <stdbool.h>
#include <stdint.h>

/* How many general registers DWARF numbers from 0 on; sp is one of them (x86-64). */
#define TDT__GENERAL_REGISTERS 16

/*
 * TDT__OWN_TOP() marks where a function's frame begins: a walk ends there.  tdt__is_top() tells
 * whether a CFA is that of the marked function; the CFAs of its callees are all below.  On
 * architectures other than x86-64 the CFA cannot be computed from the frame pointer, but lies above
 * it.
 */
#if defined(__x86_64__)
#define TDT__OWN_CFA() ((uintptr_t)__builtin_frame_address(0) + 16)
#define TDT__OWN_TOP() TDT__OWN_CFA()
#define TDT__TOP_RECORD 0
#else
#define TDT__OWN_CFA() ((uintptr_t)__builtin_dwarf_cfa())
#define TDT__OWN_TOP() ((uintptr_t)__builtin_frame_address(0))
#define TDT__TOP_RECORD 16 /* the size of the frame record at the top, which a walk must read too */
#endif

static inline bool tdt__is_top(uintptr_t cfa, uintptr_t top)
{
#if defined(__x86_64__)
	return cfa == top;
#else
	return cfa > top;
#endif
}

/*
 * The registers that identify a frame.  `pc` is a return address: the frame made a call that has
 * not returned.
 */
struct tdt__registers {
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
};

/* The caller's registers.  The frame pointer points to the place of the caller's frame pointer. */
#define TDT__CALLER_REGISTERS()                                                                    \
	((struct tdt__registers){ (uintptr_t)__builtin_return_address(0), TDT__OWN_CFA(),          \
				  *(const uintptr_t *)__builtin_frame_address(0) })
