// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Fibers that are suspended at different places.  The program prints the address of the record of
 * each, and waits until its standard input ends.
 */

#include <config.h>

#include <stdio.h>
#include <unistd.h>

#include "lib/fibered.h"
#include "lib/must.h"

#define NOINLINE __attribute__((noinline))
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

static NOINLINE void first(struct fibered *it)
{
	fibered_yield(it);
	USE(it);
}

static NOINLINE void second(struct fibered *it, int n)
{
	if (n > 0)
		second(it, n - 1);
	else
		first(it);
	USE(it);
}

static void shallow(struct fibered *it)
{
	first(it);
	USE(it);
}

static void deep(struct fibered *it)
{
	second(it, 2);
	USE(it);
}

int main(void)
{
	struct fibered its[2] = { { .run = shallow }, { .run = deep } };
	char byte;

	for (int i = 0; i < 2; i++) {
		fibered_init(&its[i], NULL);
		fibered_resume(&its[i]);
		printf("%p\n", (void *)tdt_fiber_handle(its[i].fiber)); /* which is the record */
	}
	fflush(stdout);
	MUST(read(STDIN_FILENO, &byte, 1) == 0);
	for (int i = 0; i < 2; i++)
		fibered_fini(&its[i]);
	return 0;
}
