/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The registers of an interrupted thread on aarch64: see unwind/interrupted.h. */

static inline struct tdt__registers tdt__interrupted(const ucontext_t *context)
{
	const mcontext_t *at = &context->uc_mcontext;

	return (struct tdt__registers){ at->pc, at->sp, at->regs[29],
					tdt__unsigned_pc(at->regs[30]) };
}

static inline void tdt__interrupted_all(uintptr_t *registers, const ucontext_t *context)
{
	for (unsigned i = 0; i <= TDT__CFI_PC; i++)
		registers[i] = context->uc_mcontext.regs[i];
	registers[TDT__CFI_SP] = context->uc_mcontext.sp;
}
