/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What lies on a stack that was left, from its stack pointer upwards, on aarch64. */

#include "unwind/registers.h"

struct tdt__left {
	uintptr_t x29, x30; /* of a function that has not begun: none */
	uintptr_t x19_to_x28[10];
	uint64_t d8_to_d15[8];
	uint64_t fpcr; /* the modes of the FPU */
	void (*pc)(void);
};
_Static_assert(sizeof(struct tdt__left) == 176, "as switch.S has it");

static inline void tdt__left_make(struct tdt__left *left, void (*entry)(void))
{
	*left = (struct tdt__left){ .pc = entry };
	__asm__("mrs %0, fpcr" : "=r"(left->fpcr));
}

static inline struct tdt__registers tdt__left_registers(const struct tdt__left *left)
{
	return (struct tdt__registers){ .pc = tdt__unsigned_pc((uintptr_t)left->pc),
					.sp = (uintptr_t)(left + 1),
					.fp = left->x29 };
}
