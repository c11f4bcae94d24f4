/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_MISUSE_H
#define TDT_MISUSE_H /* stable from 1.0: docs/compatibility.md */

/*
 * Whether the program, or its runtime, has broken a rule of the library in a way that the library
 * noticed.  Such a program goes on as well as it can, but what is reported of its tasks may be
 * wrong.  The first misuse of the process is kept, and dumps show it (tdt/dump.h).
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/decls.h>

TDT_DECLS_BEGIN

/* Later versions may add kinds. */
enum tdt_misuse_kind {
	/*
	 * The polls of a thread ended in another order than the reverse of their beginnings.  A
	 * coroutine was switched away from in the middle of a poll of a traced future
	 * (tdt_stack_enter() in tdt/integrate/stack.h has the rule).  `task` is the task of the
	 * poll that had not ended.
	 */
	TDT_MISUSE_ORDER = 1,
	/*
	 * A poll ended on another thread than it began on: a coroutine was switched away from in
	 * the middle of a poll, and was continued by another thread.
	 */
	TDT_MISUSE_THREAD = 2,
	/*
	 * A traced future was polled while a poll of it had not ended: two threads polled it, or it
	 * polled itself, or a poll was left by longjmp().
	 */
	TDT_MISUSE_NESTED = 3,
	/* A fiber was resumed that had not been suspended. */
	TDT_MISUSE_FIBER_RESUME = 4,
	/* A fiber was suspended that did not run on the calling thread. */
	TDT_MISUSE_FIBER_SUSPEND = 5,
	/* A fiber, or a task of tdt_task_new(), was ended by another thread while it ran. */
	TDT_MISUSE_FIBER_END = 6,
	/* A task was entered that had not been left (tdt_task_enter() in tdt/integrate/leaf.h). */
	TDT_MISUSE_TASK_ENTER = 7,
	/*
	 * A task was left that the thread had not entered, or before the tasks that it had entered
	 * later.
	 */
	TDT_MISUSE_TASK_LEAVE = 8
};

#define TDT_MISUSE_NAME_MAX 63

/*
 * Later versions may add fields at the end.  A number after `@` is the offset of the field, for
 * readers outside the process (tdt/layout/registry.h).
 */
struct tdt_misuse {
	size_t size;         /* @0  sizeof(struct tdt_misuse) of the library */
	enum tdt_misuse_kind kind; /* @8 */
	uint32_t reserved;   /* @12 */
	uint64_t task;       /* @16 the id of the task that it was noticed at; 0: unknown */
	char name[TDT_MISUSE_NAME_MAX + 1]; /* @24 the name of that task; empty: none */
	const void *poll;    /* @88 the poll function of the future that was traced as that task;
				NULL: it has none */
	const char *reason;  /* @96 what happened, in English; one line without a full stop */
};

/*
 * Return the first misuse that the library noticed in this process, or in a process that it was
 * forked from.  Returns NULL if there was none.  The result stays as it is, and is never freed.  A
 * test of a runtime ends with:
 *
 *	if (tdt_misused() != NULL)
 *		fprintf(stderr, "%s\n", tdt_misused()->reason);
 *
 * Noticing costs nothing in a program that follows the rules, so a misuse that shows only in places
 * where the library does not look is not noticed.  Any thread; async-signal-safe.
 */
const struct tdt_misuse *tdt_misused(void);

TDT_DECLS_END

#endif
