/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Call-frame information: what a module says about the frame of the function at one PC.
 *
 * A row is one of the table that the information describes (DWARF 5, 6.4).
 *
 * The caller of each function holds tdt__unwind_lock.  The module is read by pages.h.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/registers.h"

/*
 * Where the caller's value of a register is; or how the CFA is computed (TDT__CFI_PLUS or
 * TDT__CFI_VALUE).
 */
enum tdt__cfi_kind {
	TDT__CFI_SAME,	    /* the value is still in the register */
	TDT__CFI_LOST,	    /* the value is nowhere */
	TDT__CFI_AT_CFA,    /* the value is in memory, at CFA + n */
	TDT__CFI_AT,	    /* the value is in memory; the expression at address n says where */
	TDT__CFI_CFA_PLUS,  /* the value is CFA + n */
	TDT__CFI_PLUS,	    /* the value is the register `number` + n */
	TDT__CFI_VALUE	    /* the value is the result of the expression at address n */
};

struct tdt__cfi_place {
	enum tdt__cfi_kind kind;
	uint32_t number;
	intptr_t n;
};

struct tdt__cfi_row {
	struct tdt__cfi_place cfa;
	struct tdt__cfi_place place[TDT__CFI_REGISTERS];
	bool interrupted; /* the caller was interrupted by a signal, and did not make a call */
};

#define TDT__CFI_HEAD 12 /* bytes of .eh_frame_hdr before its table */

/*
 * Find the module that has `pc`, and how many entries its .eh_frame_hdr has.  False: there is no
 * such table, or it is of a kind that is not understood.
 */
bool tdt__cfi_table(uintptr_t pc, struct dl_find_object *module, uint32_t *entries);

/*
 * Return where the function (or part of a function) that contains the instruction at `pc` begins;
 * `*end` is where it ends.  0: there is no unwind information.
 */
uintptr_t tdt__cfi_function(uintptr_t pc, uintptr_t *end);

/*
 * Find the row for code at `pc`.  Returns 0, -ENOENT (there is no information) or -ENOTSUP (the
 * information is of a kind that is not understood here).
 */
int tdt__cfi_find(uintptr_t pc, struct tdt__cfi_row *row);

/*
 * Whether the value of the expression at `address` is the word at register `*number` plus `*at`,
 * plus `*plus`.  Assembly that saves its caller's sp on the stack has such an expression.
 */
bool tdt__cfi_is_word(uintptr_t address, uint32_t *number, intptr_t *at, intptr_t *plus);

/* Whether the value of the expression at `address` is register `*number` plus `*plus`. */
bool tdt__cfi_is_sum(uintptr_t address, uint32_t *number, intptr_t *plus);

#define TDT__CFI_BIT(number) (1u << (number))

/* The registers of a frame, as far as they are known: bit n of `known` is for register n. */
struct tdt__cfi_registers {
	uintptr_t value[TDT__CFI_REGISTERS];
	uint32_t known;
};

/* Read a word of the stack.  False: `address` is not on the stack. */
typedef bool tdt__cfi_word_fn(const void *stack, uintptr_t address, uintptr_t *word);

/*
 * Step from a frame to its caller.  `registers` are those of the frame, whose code is at `pc`; on
 * success they become those of the caller.  The caller's PC and sp are known then; its other
 * registers may be unknown.  `*interrupted` is as in the row.  Returns 0, an error of
 * tdt__cfi_find(), or -EFAULT: the step needs a register that is not known, or a word that can't be
 * read.
 */
int tdt__cfi_step(struct tdt__cfi_registers *registers, uintptr_t pc, tdt__cfi_word_fn *word_at,
		  const void *stack, bool *interrupted);
