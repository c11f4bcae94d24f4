/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The registers of an interrupted thread on x86-64: see unwind/interrupted.h. */

static inline struct tdt__registers tdt__interrupted(const ucontext_t *context)
{
	const greg_t *registers = context->uc_mcontext.gregs;

	return (struct tdt__registers){ (uintptr_t)registers[REG_RIP],
					(uintptr_t)registers[REG_RSP],
					(uintptr_t)registers[REG_RBP] };
}

static inline void tdt__interrupted_all(uintptr_t *registers, const ucontext_t *context)
{
	static const uint8_t numbers[TDT__GENERAL_REGISTERS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
		REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15
	};

	for (unsigned i = 0; i < TDT__GENERAL_REGISTERS; i++)
		registers[i] = (uintptr_t)context->uc_mcontext.gregs[numbers[i]];
}
