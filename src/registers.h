/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_REGISTERS_H
#define TDT_SRC_REGISTERS_H

/*
 * Where a function of ours finds itself on the stack.  Both make the compiler keep a frame pointer in the function, whose
 * frame then has the shape of the ABI's example; such a function is never inlined, and has no over-aligned locals.
 */

#include <stdint.h>

#if defined(__x86_64__)
#define TDT__OWN_CFA() ((uintptr_t)__builtin_frame_address(0) + 16)
#else
#define TDT__OWN_CFA() ((uintptr_t)__builtin_dwarf_cfa())
#endif

/* The caller's registers: the frame record at the frame pointer holds the caller's frame pointer. */
#define TDT__CALLER_REGISTERS()                                                                                        \
	((struct tdt__registers){ (uintptr_t)__builtin_return_address(0), TDT__OWN_CFA(),                              \
				  *(const uintptr_t *)__builtin_frame_address(0) })

#endif
