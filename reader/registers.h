/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The registers of a thread of the target, by the numbers that DWARF gives them; and where a core
 * file and perf_event_open(2) have each of them.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/procfs.h>
#include <sys/user.h>

#if defined(__x86_64__)
enum { TDT__DWARF_FP = 6, TDT__DWARF_SP = 7, TDT__DWARF_PC = 16, TDT__DWARF_REGISTERS = 17 };
/*
 * `stack_top` of a record is the CFA of the function that polls the task's future.  The return
 * address of that function lies below it, and is the one word that a walk that ends there wants and
 * does not get.
 */
#define TDT__TOP_BELOW 8
#define TDT__TOP_ROOM 8
/* The frame pointer of that function, which has one. */
#define TDT__TOP_FP_BELOW 16
#else
enum { TDT__DWARF_FP = 29, TDT__DWARF_SP = 31, TDT__DWARF_PC = 32, TDT__DWARF_REGISTERS = 33 };
/* `stack_top` is the frame record of that function; what else it saves lies directly above. */
#define TDT__TOP_BELOW 0
#define TDT__TOP_ROOM 256
#define TDT__TOP_FP_BELOW 0
#endif

struct tdt__cpu {
	uint64_t value[TDT__DWARF_REGISTERS];
	uint64_t known; /* a bit for each register */
};

static inline void tdt__cpu_set(struct tdt__cpu *cpu, int number, uint64_t value)
{
	cpu->value[number] = value;
	cpu->known |= UINT64_C(1) << number;
}

static inline bool tdt__cpu_has(const struct tdt__cpu *cpu, int number)
{
	return (cpu->known >> number & 1) != 0;
}

/* The registers of a thread in a core file. */
void tdt__cpu_of_core(struct tdt__cpu *cpu, const struct elf_prstatus *status);

/* The registers to be sampled, as perf numbers them. */
uint64_t tdt__cpu_perf_mask(void);

/* The registers of a sample, which come in the order of perf's numbers. */
void tdt__cpu_of_sample(struct tdt__cpu *cpu, const uint64_t *value);
