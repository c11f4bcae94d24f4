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

#elif defined(__aarch64__)

/* They have the same order and the same numbers everywhere. */
static const struct {
	size_t offset;
	unsigned char perf;
} places[TDT__DWARF_REGISTERS] = {
#define PLACE(n) { 8 * (n), n }
	PLACE(0),  PLACE(1),  PLACE(2),	 PLACE(3),  PLACE(4),  PLACE(5),  PLACE(6),
	PLACE(7),  PLACE(8),  PLACE(9),	 PLACE(10), PLACE(11), PLACE(12), PLACE(13),
	PLACE(14), PLACE(15), PLACE(16), PLACE(17), PLACE(18), PLACE(19), PLACE(20),
	PLACE(21), PLACE(22), PLACE(23), PLACE(24), PLACE(25), PLACE(26), PLACE(27),
	PLACE(28), PLACE(29), PLACE(30), PLACE(31), PLACE(32),
#undef PLACE
};

#endif

#if defined(__x86_64__) || defined(__aarch64__)

void tdt__cpu_of_core(struct tdt__cpu *cpu, const struct elf_prstatus *status)
{
	for (int i = 0; i < TDT__DWARF_REGISTERS; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&status->pr_reg + places[i].offset, sizeof value);
		tdt__cpu_set(cpu, i, value);
	}
}

uint64_t tdt__cpu_perf_mask(void)
{
	uint64_t mask = 0;

	for (int i = 0; i < TDT__DWARF_REGISTERS; i++)
		mask |= UINT64_C(1) << places[i].perf;
	return mask;
}

void tdt__cpu_of_sample(struct tdt__cpu *cpu, const uint64_t *value)
{
	uint64_t mask = tdt__cpu_perf_mask();

	for (int i = 0; i < TDT__DWARF_REGISTERS; i++) {
		uint64_t below = mask & ((UINT64_C(1) << places[i].perf) - 1);

		tdt__cpu_set(cpu, i, value[__builtin_popcountll(below)]);
	}
}

#else

void tdt__cpu_of_core(struct tdt__cpu *cpu, const struct elf_prstatus *status)
{
	(void)cpu;
	(void)status;
}

uint64_t tdt__cpu_perf_mask(void)
{
	return 0;
}

void tdt__cpu_of_sample(struct tdt__cpu *cpu, const uint64_t *value)
{
	(void)cpu;
	(void)value;
}

#endif
