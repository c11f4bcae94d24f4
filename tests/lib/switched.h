/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_SWITCHED_H
#define TESTS_SWITCHED_H

/*
 * Coroutines of a library that the library under test knows nothing of (ucontext), which poll
 * traced futures on their own stacks, and switch away in the middle of those polls.
 */

#include <config.h>

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include <tdt/tdt.h>

#include "future/sanitizers.h"

/* ThreadSanitizer takes more than 1 MiB of a thread's stack for itself. */
#define SWITCHED_STACK ((size_t)(TDT__TSAN ? 4096 : 128) << 10)

struct switched {
	/* What the test sets beforehand. */
	void (*act)(struct switched *co, struct tdt_context *cx); /* the poll: may switch away */
	tdt_poll_t result;                                        /* of the poll */

	struct tdt_traced traced;
	bool ended;
	char *stack;
	ucontext_t context, resumer;
	struct tdt__san san, resumer_san;
};

/* Trace a future that is `co->act`, and make a coroutine on `stack`, of SWITCHED_STACK bytes. */
void switched_init(struct switched *co, char *stack);

/* Drop the future and the handle. */
void switched_fini(struct switched *co);

/* Run the coroutine until it switches away, or its poll has ended. */
void switched_resume(struct switched *co);

/* In the coroutine: go back to whoever has resumed it. */
void switched_away(struct switched *co);

/* Memory for `n` stacks, one next to the other. */
char *switched_stacks(unsigned n);

#endif
