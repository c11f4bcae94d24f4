// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Stepping by the full unwind information: see follow.h. */

#include "capture/follow.h"

#include "capture/stack_copy.h"
#include "unwind/cfi.h"
#include "unwind/unwinder.h"

#define STEPS_AGAIN 1000 /* the most frames that are stepped through again to reach one frame */

static bool word_at(const void *stack, uintptr_t address, uintptr_t *word)
{
	const struct tdt__stack_copy *copy = stack;

	if (address < copy->low || address % sizeof *word != 0 || copy->size < sizeof *word ||
	    address - copy->low > copy->size - sizeof *word)
		return false;
	*word = *(const uintptr_t *)(const void *)(copy->bytes + (address - copy->low));
	return true;
}

static void set_register(struct tdt__cfi_registers *registers, uint32_t number, uintptr_t value)
{
	registers->value[number] = value;
	registers->known |= TDT__CFI_BIT(number);
}

/*
 * Step one frame further out.  `*code` is an address in the code of the frame.  That is the PC of
 * an interrupted frame, and one less than the return address of any other.
 */
static bool follow_step(const struct tdt__stack_copy *copy, struct tdt__cfi_registers *registers,
			uintptr_t *code)
{
	uintptr_t sp = registers->value[TDT__CFI_SP];
	bool interrupted;
	int error;

	/* x86-64 has a register for it; elsewhere it is the register with the return address. */
	if (TDT__CFI_PC == TDT__GENERAL_REGISTERS)
		set_register(registers, TDT__CFI_PC, *code);
	/* The lock is given up after each step: a stack may be deep, and fork() waits for it. */
	pthread_mutex_lock(&tdt__unwind_lock);
	error = tdt__cfi_step(registers, *code, word_at, copy, &interrupted);
	pthread_mutex_unlock(&tdt__unwind_lock);
	if (error != 0 || registers->value[TDT__CFI_SP] < sp + TDT__FRAME_LEAST ||
	    registers->value[TDT__CFI_SP] % sizeof sp != 0)
		return false;
	*code = tdt__unsigned_pc(registers->value[TDT__CFI_PC]) - (interrupted ? 0 : 1);
	registers->known &= ~TDT__CFI_BIT(TDT__CFI_PC);
	return true;
}

/* Step from the innermost frame of the copy to frame `at`.  False: the steps do not lead there. */
static bool go_to(const struct tdt__stack_copy *copy, const uintptr_t *innermost,
		  struct tdt__registers at, struct tdt__cfi_registers *registers)
{
	uintptr_t code = copy->at.pc;

	registers->known = 0;
	for (uint32_t number = 0; innermost != NULL && number < TDT__GENERAL_REGISTERS; number++)
		set_register(registers, number, innermost[number]);
	set_register(registers, TDT__CFI_SP, copy->at.sp);
	if (copy->at.fp != TDT__NO_FP)
		set_register(registers, TDT__CFI_FP, copy->at.fp);
	for (unsigned i = 0; i < STEPS_AGAIN && registers->value[TDT__CFI_SP] <= at.sp; i++) {
		if (registers->value[TDT__CFI_SP] == at.sp && code == at.pc - 1)
			return true;
		if (!follow_step(copy, registers, &code))
			return false;
	}
	return false;
}

static bool follow(const struct tdt__stack_copy *copy, const uintptr_t *innermost,
		   struct tdt__registers at, struct tdt__cfi_registers *registers, uintptr_t *code)
{
	if (!go_to(copy, innermost, at, registers)) {
		registers->known = 0;
		set_register(registers, TDT__CFI_SP, at.sp);
	}
	if (at.fp != TDT__NO_FP)
		set_register(registers, TDT__CFI_FP, at.fp);
	*code = at.pc - 1;
	return follow_step(copy, registers, code);
}

bool tdt__follow(const struct tdt__stack_copy *copy, const uintptr_t *innermost,
		 struct tdt__walk *walk, struct tdt__registers at, struct tdt__frame *frame,
		 enum tdt__walked *walked)
{
	struct tdt__cfi_registers registers;
	uintptr_t code, fp = TDT__NO_FP;

	if (!follow(copy, innermost, at, &registers, &code))
		return false;
	if (tdt__is_top(registers.value[TDT__CFI_SP], walk->top)) {
		*walked = TDT__WALK_TOP;
	} else if (registers.value[TDT__CFI_SP] > walk->top) {
		return false;
	} else {
		*walked = TDT__WALK_FRAME;
	}
	if ((registers.known & TDT__CFI_BIT(TDT__CFI_FP)) != 0)
		fp = registers.value[TDT__CFI_FP];
	*frame = (struct tdt__frame){
		.pc = at.pc, .cfa = registers.value[TDT__CFI_SP], .fp = at.fp
	};
	walk->at = (struct tdt__registers){ .pc = code + 1, .sp = frame->cfa, .fp = fp };
	return true;
}
