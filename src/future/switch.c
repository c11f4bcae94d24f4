// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Switching from one stack to another: see switch.h. */

#include "future/switch.h"

#include <stdint.h>

#if defined(__x86_64__)
#include "unwind/x86_64/left.h"
#elif defined(__aarch64__)
#include "unwind/aarch64/left.h"
#endif

void tdt__switch_stacks(void **from, void *to); /* switch.S of the architecture */

/* A function begins with its stack aligned to 16 bytes. */
void tdt__context_make(struct tdt__context *context, void *low, size_t size, void (*entry)(void))
{
	struct tdt__left *left =
	    (struct tdt__left *)((((uintptr_t)low + size) & ~(uintptr_t)15) - sizeof *left);

	tdt__left_make(left, entry);
	context->sp = left;
}

__attribute__((noinline)) void tdt__context_switch(struct tdt__context *from,
						   struct tdt__context *to)
{
	tdt__switch_stacks(&from->sp, to->sp);
}

struct tdt__registers tdt__context_registers(const struct tdt__context *context)
{
	return tdt__left_registers(context->sp);
}
