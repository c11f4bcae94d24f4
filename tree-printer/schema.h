/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The words on which the writers and the readers of JSON must agree.  tdt-trace(5) has the whole
 * schema.
 */

#include <tdt/dump.h>

#define SCHEMA 1

static const char *const known_words[] = { "all", "part", "unknown" };

static const char *const state_words[] = {
	[TDT_TASK_WAITING] = "waiting",
	[TDT_TASK_RUNNING] = "running",
	[TDT_TASK_READY] = "ready",
	[TDT_TASK_PANICKED] = "panicked",
	[TDT_TASK_RUNNABLE] = "runnable",
	[TDT_TASK_UNKNOWN] = "unknown",
};

static const char *const kind_words[] = {
	[TDT_NODE_TASK] = "task",
	[TDT_NODE_FRAME] = "frame",
	[TDT_NODE_CUT] = "cut",
};

/* TDT_CUT_NOT has no word: its element is NULL. */
static const char *const cut_words[] = {
	[TDT_CUT_LIMIT] = "limit",
	[TDT_CUT_NO_INFO] = "no-info",
	[TDT_CUT_CORRUPT] = "corrupt",
	[TDT_CUT_STACK] = "stack",
	[TDT_CUT_MEMORY] = "memory",
	[TDT_CUT_UNSUPPORTED] = "unsupported",
};

/* Not every file that includes this header uses the next three tables. */
static const char *const wait_words[] __attribute__((unused)) = {
	[TDT_WAIT_UNKNOWN] = "unknown",
	[TDT_WAIT_TASK] = "task",
	[TDT_WAIT_MUTEX] = "mutex",
	[TDT_WAIT_CHANNEL] = "channel",
	[TDT_WAIT_TIMER] = "timer",
	[TDT_WAIT_IO] = "io",
	[TDT_WAIT_OTHER] = "other",
	[TDT_WAIT_SEMAPHORE] = "semaphore",
	[TDT_WAIT_NOTIFICATION] = "notification",
};

static const char *const answer_words[] __attribute__((unused)) = {
	[TDT_ANSWER_FRESH] = "fresh",
	[TDT_ANSWER_RUNNING] = "running",
	[TDT_ANSWER_LAST] = "last",
	[TDT_ANSWER_NONE] = "none",
};

/* A misuse has a kind, so 0 has no word. */
static const char *const misuse_words[] __attribute__((unused)) = {
	[TDT_MISUSE_ORDER] = "order",
	[TDT_MISUSE_THREAD] = "thread",
	[TDT_MISUSE_NESTED] = "nested",
	[TDT_MISUSE_FIBER_RESUME] = "fiber-resume",
	[TDT_MISUSE_FIBER_SUSPEND] = "fiber-suspend",
	[TDT_MISUSE_FIBER_END] = "fiber-end",
	[TDT_MISUSE_TASK_ENTER] = "task-enter",
	[TDT_MISUSE_TASK_LEAVE] = "task-leave",
};
