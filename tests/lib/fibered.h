/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_FIBERED_H
#define TESTS_FIBERED_H

/*
 * Coroutines of a library that knows nothing of futures and reports its coroutines as fibers
 * (tdt/integrate/fiber.h).  They switch in the library's own way (future/switch.h).
 */

#include <config.h>

#include <stdbool.h>
#include <stddef.h>

#include <tdt/integrate/fiber.h>

#include "future/sanitizers.h"
#include "future/switch.h"
#include "lib/scoped.h"

/* ThreadSanitizer takes more than 1 MiB of a thread's stack for itself. */
#define FIBERED_STACK ((size_t)(TDT__TSAN ? 4096 : 1024) << 10)

struct fibered {
	/* What the test sets beforehand.  `run` is called on the coroutine's stack. */
	void (*run)(struct fibered *it);
	void *arg;
	bool mute_base; /* the base is not reported */
	bool mute_end;  /* the end is not reported */

	struct tdt_fiber *fiber; /* NULL: it has ended */
	bool ended;              /* `run` has returned */
	char *stack;
	struct tdt__context inside, resumer;
	struct tdt__san san, resumer_san;
};

/* Make a fiber with a stack of its own.  Its attributes may be NULL. */
void fibered_init(struct fibered *it, const struct tdt_task_attr *attr);

/* The same as the stack of a traced future: see tdt_fiber_of(). */
void fibered_init_of(struct fibered *it, struct tdt_handle *task);

/* End the fiber, unless it has ended, and unmap the stack. */
void fibered_fini(struct fibered *it);

/* Declare a fiber that is made here, for which the rest is set beforehand; it ends with the block.
 */
#define FIBER(name, attr, ...)                                                                     \
	SCOPED(fibered_fini) struct fibered name = { __VA_ARGS__ };                                \
	const bool name##_made __attribute__((unused)) = (fibered_init(&name, attr), true)

/* Run it until it yields or has ended. */
void fibered_resume(struct fibered *it);

/* On its stack: suspend it, and go back to whoever has resumed it. */
void fibered_yield(struct fibered *it);

/* The same without a report. */
void fibered_switch_away(struct fibered *it);

#endif
