/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Reads the output of tracers: stacks with the ids of tasks. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum ustack_kind {
	USTACK_ON_CPU, /* a sample of a running thread */
	USTACK_WAITED, /* where a waker was cloned */
	USTACK_LATE,   /* where a poll was after it had lasted too long */
	USTACK_KINDS
};

/* Limits, which protect against files that are not the output of a tracer. */
enum {
	USTACK_LINE_MAX = 64 << 10,
	USTACK_FRAMES_MAX = 1024,
	USTACK_THREADS_MAX = 4096, /* in the output of perf */
	USTACK_NESTED_MAX = 16     /* polls inside polls */
};

struct ustack_frame {
	char *name;       /* as the tracer printed it; NULL: unknown */
	uint64_t offset;  /* in the function of that name */
	uint64_t address; /* of a frame without a name; 0: unknown */
};

struct ustack {
	uint64_t task;
	enum ustack_kind kind;
	uint64_t count;
	/* Innermost first.  The names are borrowed until the next stack is read. */
	struct ustack_frame frame[USTACK_FRAMES_MAX];
	size_t n;
};

/* The facts about a thread that the events of perf give. */
struct ustack_thread {
	uint64_t tid;
	uint64_t task[USTACK_NESTED_MAX]; /* the tasks that it polls, the innermost last */
	unsigned int depth;
};

struct ustack_reader {
	FILE *file;
	unsigned long line;  /* the number of the last line that was read, from 1 */
	const char *message; /* what is wrong */
	char text[USTACK_LINE_MAX + 1]; /* the last line */
	bool again;          /* the last line will be read once more */
	struct ustack_thread *thread;
	size_t threads;
};

/*
 * Read the next stack that belongs to a task.  A new reader has `file`, and zeros in all other
 * fields.  Returns 1; 0 at the end; or -1: `message` says what is wrong, and `line` where.
 */
int ustack_next(struct ustack_reader *reader, struct ustack *stack);

/* Free the memory of the reader, and the frames of the last stack.  The file stays open. */
void ustack_end(struct ustack_reader *reader, struct ustack *stack);
