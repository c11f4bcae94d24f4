/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_UNWIND_CFI_H
#define TDT_SRC_UNWIND_CFI_H

/*
 * Call-frame information, read here: what the module says of the frame of code at one PC.  (Functions are found on all
 * architectures; the rest is for x86-64.)
 *
 * The rules come from libunwind (rules.c).  But libunwind refuses all information of a function that saves a vector
 * register (an ms_abi function saves xmm6 to xmm15), and its answer does not say by which register a frame goes.  What
 * is read here says both: the row of the table that the information describes (DWARF 5, 6.4).
 *
 * All of this is under tdt__unwind_lock, and reads the module by pages.h.
 */

#include <stdbool.h>
#include <stdint.h>

/* The general registers by their DWARF numbers; the return address is the last. */
#define TDT__CFI_FP 6
#define TDT__CFI_SP 7
#define TDT__CFI_PC 16
#define TDT__CFI_REGISTERS 17

/* Where the caller's value of a register is; or how the CFA is computed (TDT__CFI_PLUS or TDT__CFI_VALUE). */
enum tdt__cfi_kind {
	TDT__CFI_SAME,	    /* it is in the register still */
	TDT__CFI_LOST,	    /* it is nowhere */
	TDT__CFI_AT_CFA,    /* in memory, at CFA + n */
	TDT__CFI_AT,	    /* in memory, where the expression at address n says */
	TDT__CFI_CFA_PLUS,  /* it is CFA + n */
	TDT__CFI_PLUS,	    /* it is the register `number` + n */
	TDT__CFI_VALUE	    /* it is what the expression at address n says */
};

struct tdt__cfi_place {
	enum tdt__cfi_kind kind;
	uint32_t number;
	intptr_t n;
};

struct tdt__cfi_row {
	struct tdt__cfi_place cfa;
	struct tdt__cfi_place place[TDT__CFI_REGISTERS];
	bool interrupted; /* the caller was interrupted there by a signal: it called nothing */
};

/*
 * Where the function (or the part of one) begins that has the instruction at `pc`; `*end` is where it ends.  0: there is
 * no unwind information.
 */
uintptr_t tdt__cfi_function(uintptr_t pc, uintptr_t *end);

/* The row for code at `pc`.  Returns 0, -ENOENT (there is no information) or -ENOTSUP (it is of a kind unknown here). */
int tdt__cfi_find(uintptr_t pc, struct tdt__cfi_row *row);

/*
 * Whether the expression at `address` is the word at register `*number` plus `*at`, and `*plus`: what assembly says
 * that keeps its caller's sp on the stack.
 */
bool tdt__cfi_is_word(uintptr_t address, uint32_t *number, intptr_t *at, intptr_t *plus);

/* Whether the expression at `address` is register `*number` plus `*plus`. */
bool tdt__cfi_is_sum(uintptr_t address, uint32_t *number, intptr_t *plus);

/* The registers of a frame, as far as they are known: bit n of `known` is for number n. */
struct tdt__cfi_registers {
	uintptr_t value[TDT__CFI_REGISTERS];
	uint32_t known;
};

/* Read a word of the stack.  False: it lies elsewhere. */
typedef bool tdt__cfi_word_fn(const void *stack, uintptr_t address, uintptr_t *word);

/*
 * Have `registers` be those of the caller of the frame whose registers they are, and whose code is at `pc`.  The
 * caller's PC, sp and no others are known for sure.  Returns 0, the errors of tdt__cfi_find(), or -EFAULT: it takes a
 * register that is not known, or a word that can't be read.  `*interrupted`: as in the row.
 */
int tdt__cfi_step(struct tdt__cfi_registers *registers, uintptr_t pc, tdt__cfi_word_fn *word_at, const void *stack,
		  bool *interrupted);

#endif
