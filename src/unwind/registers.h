/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_UNWIND_REGISTERS_H
#define TDT_SRC_UNWIND_REGISTERS_H

/*
 * Where a function of ours finds itself on the stack.  Both make the compiler keep a frame pointer in the function,
 * whose frame then has the shape of the ABI's example; such a function is never inlined, and has no over-aligned
 * locals.
 */

#include <stdbool.h>
#include <stdint.h>

/* The general registers, as many as DWARF numbers from 0 on: of them sp is one (x86-64). */
#define TDT__GENERAL_REGISTERS 16

/*
 * TDT__OWN_TOP() marks where a function's frame begins, for walks to end at: tdt__is_top() tells it from its callees',
 * whose CFAs are all below.  Elsewhere than on x86-64 the CFA can't be told from the frame pointer, but lies above it.
 */
#if defined(__x86_64__)
#define TDT__OWN_CFA() ((uintptr_t)__builtin_frame_address(0) + 16)
#define TDT__OWN_TOP() TDT__OWN_CFA()
#define TDT__TOP_RECORD 0
#else
#define TDT__OWN_CFA() ((uintptr_t)__builtin_dwarf_cfa())
#define TDT__OWN_TOP() ((uintptr_t)__builtin_frame_address(0))
#define TDT__TOP_RECORD 16 /* what has to be read there to see that the CFA is above: the frame record */
#endif

static inline bool tdt__is_top(uintptr_t cfa, uintptr_t top)
{
#if defined(__x86_64__)
	return cfa == top;
#else
	return cfa > top;
#endif
}

/* What a frame is known by: `pc` is a return address (the frame called something that hasn't returned). */
struct tdt__registers {
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
};

/* The caller's registers: the frame record at the frame pointer holds the caller's frame pointer. */
#define TDT__CALLER_REGISTERS()                                                                                        \
	((struct tdt__registers){ (uintptr_t)__builtin_return_address(0), TDT__OWN_CFA(),                              \
				  *(const uintptr_t *)__builtin_frame_address(0) })

#endif
