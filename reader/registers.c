// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From the registers of core files and of perf's samples to those of DWARF. */

#include "reader/registers.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)

#include <asm/perf_regs.h>

/* By DWARF's number: where the register is in struct user_regs_struct, and its number for perf. */
static const struct {
	size_t offset;
	unsigned char perf;
} places[TDT__DWARF_REGISTERS] = {
#define PLACE(user, number) { offsetof(struct user_regs_struct, user), PERF_REG_X86_##number }
	PLACE(rax, AX), PLACE(rdx, DX), PLACE(rcx, CX), PLACE(rbx, BX), PLACE(rsi, SI),
	PLACE(rdi, DI), PLACE(rbp, BP), PLACE(rsp, SP), PLACE(r8, R8),	PLACE(r9, R9),
	PLACE(r10, R10), PLACE(r11, R11), PLACE(r12, R12), PLACE(r13, R13), PLACE(r14, R14),
	PLACE(r15, R15), PLACE(rip, IP),
#undef PLACE
};

#define CORE_OFFSET(i) places[i].offset
#define PERF_NUMBER(i) places[i].perf

#else

/* They have the same order and the same numbers everywhere. */
#define CORE_OFFSET(i) (8 * (size_t)(i))
#define PERF_NUMBER(i) (i)

#endif

void tdt__cpu_of_core(struct tdt__cpu *cpu, const struct elf_prstatus *status)
{
	for (int i = 0; i < TDT__DWARF_REGISTERS; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&status->pr_reg + CORE_OFFSET(i), sizeof value);
		tdt__cpu_set(cpu, i, value);
	}
}

uint64_t tdt__cpu_perf_mask(void)
{
	uint64_t mask = 0;

	for (int i = 0; i < TDT__DWARF_REGISTERS; i++)
		mask |= UINT64_C(1) << PERF_NUMBER(i);
	return mask;
}

void tdt__cpu_of_sample(struct tdt__cpu *cpu, const uint64_t *value)
{
	uint64_t mask = tdt__cpu_perf_mask();

	for (int i = 0; i < TDT__DWARF_REGISTERS; i++) {
		uint64_t below = mask & ((UINT64_C(1) << PERF_NUMBER(i)) - 1);

		tdt__cpu_set(cpu, i, value[__builtin_popcountll(below)]);
	}
}
