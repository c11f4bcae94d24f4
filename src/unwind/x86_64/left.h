/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What lies on a stack that was left, from its stack pointer upwards, on x86-64. */

#include "unwind/registers.h"

struct tdt__left {
	uint32_t mxcsr; /* the modes of SSE */
	uint16_t x87;	/* the modes of the x87 */
	uint16_t unused;
	uintptr_t r15, r14, r13, r12, rbx, rbp;
	void (*pc)(void);
	uintptr_t caller; /* of a function that has not begun: none */
};
_Static_assert(sizeof(struct tdt__left) == 72, "as switch.S has it");

static inline void tdt__left_make(struct tdt__left *left, void (*entry)(void))
{
	*left = (struct tdt__left){ .pc = entry };
	__asm__("stmxcsr %0" : "=m"(left->mxcsr));
	__asm__("fnstcw %0" : "=m"(left->x87));
}

static inline struct tdt__registers tdt__left_registers(const struct tdt__left *left)
{
	return (struct tdt__registers){ (uintptr_t)left->pc, (uintptr_t)&left->caller, left->rbp };
}
