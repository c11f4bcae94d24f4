/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The registers that identify a frame, and where the frame of a function of ours lies on the stack.
 * The header of the architecture has
 *
 *	TDT__MACHINE            as in an ELF header
 *	TDT__GENERAL_REGISTERS  how many general registers DWARF numbers from 0 on; sp is one of them
 *	TDT__RED_ZONE           a function that makes no call may store data in so many bytes below sp
 *	TDT__FRAME_LEAST        the size of the smallest frame
 *	TDT__OWN_CFA()          the CFA of the function that has this macro
 *	TDT__OWN_TOP()          marks where that function's frame begins: a walk ends there
 *	TDT__TOP_RECORD         so many bytes from a mark on are read, too
 *	tdt__is_top()           whether a CFA is that of the marked function; the CFAs of its callees
 *	                        are all below
 *	struct tdt__registers   `pc` is a return address: the frame made a call that has not returned
 *	tdt__unsigned_pc()      a return address as it was before the function signed it
 *	TDT__CALLER_REGISTERS() those of the caller
 *
 * TDT__OWN_CFA() and TDT__OWN_TOP() make the compiler keep a frame pointer in the function that
 * uses them.  Its frame then has the layout of the example in the ABI.  Such a function must not be
 * inlined, and must not have over-aligned local variables.
 */

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "unwind/x86_64/registers.h"
#elif defined(__aarch64__)
#include "unwind/aarch64/registers.h"
#else
#error "tdt: this architecture is not known; a folder beside src/unwind/x86_64 makes it known"
#endif
