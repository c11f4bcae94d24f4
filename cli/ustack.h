/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_USTACK_H
#define TDT_CLI_USTACK_H

/* Read what a tracer printed: stacks with the ids of tasks. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum ustack_kind {
	USTACK_ON_CPU, /* a sample of a running thread */
	USTACK_WAITED, /* where a waker was cloned */
	USTACK_LATE,   /* where a poll was when it had lasted too long */
	USTACK_KINDS
};

/* Bounds, against input that is none. */
enum {
	USTACK_LINE_MAX = 64 << 10,
	USTACK_FRAMES_MAX = 1024,
	USTACK_THREADS_MAX = 4096, /* that perf tells of */
	USTACK_NESTED_MAX = 16	   /* polls inside polls */
};

struct ustack_frame {
	char *name;	  /* as the tracer has it; NULL: unknown */
	uint64_t offset;  /* in it */
	uint64_t address; /* of what has no name; 0: unknown */
};

struct ustack {
	uint64_t task;
	enum ustack_kind kind;
	uint64_t count;
	struct ustack_frame frame[USTACK_FRAMES_MAX]; /* innermost first; lent until the next one is read */
	size_t n;
};

/* What perf's events have told about a thread. */
struct ustack_thread {
	uint64_t tid;
	uint64_t task[USTACK_NESTED_MAX]; /* being polled, the innermost last */
	unsigned int depth;
};

struct ustack_reader {
	FILE *file;
	unsigned long line; /* of the last line read, from 1 */
	const char *message;
	char *text; /* that line; its room */
	size_t room;
	bool again; /* it is to be read once more */
	struct ustack_thread *thread;
	size_t threads;
};

/*
 * Read the next stack that belongs to a task.  A new reader has `file` and all else 0.  Returns 1; 0 at the end; or -1:
 * `message` says what is wrong, and `line` where.
 */
int ustack_next(struct ustack_reader *reader, struct ustack *stack);

/* Free what the reader holds, and the frames of the last stack. */
void ustack_end(struct ustack_reader *reader, struct ustack *stack);

#endif
