/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The forms in which tdt ps prints tasks. */

#include "cli/last.h"
#include "tree-printer/json_writer.h"

/* A registry's tasks, as they are printed. */
struct listing {
	const struct last *last; /* the recording; NULL: a process or a core file */
	bool several; /* the process has several copies of the library */
	const struct tdt__tasks *tasks;
	/* The tasks that the filter lets through, in their order. */
	const struct tdt__seen_task **shown;
	size_t n;
	struct tdt_snapshot found; /* the live tasks, as one group, and their rings */
	const struct tdt_print_options *print; /* without TDT_PRINT_AUTO */
	bool threads; /* JSON has the threads, too */
	unsigned width; /* of the terminal; 0: there is none */
};

/* The forms.  Errors are kept in `out`. */
void ps_table(struct tdt__out *out, const struct listing *listing);
void ps_tree(struct tdt__out *out, const struct listing *listing);
void ps_dot(struct tdt__out *out, const struct listing *listing);
void ps_json(struct tdt__out *out, const struct listing *listing);
void ps_threads(struct tdt__out *out, const struct listing *listing);

/* A line about the process, for a list of processes: its cells, between tabs, or a JSON object. */
void ps_process(struct tdt__out *out, const struct listing *listing);

/* List the tasks of one copy of the library.  Returns an exit status. */
int ps_registry(void *options, struct outside *outside, size_t registry);

/* "waiting", "polling", "ended (ready)": the word for the task's state. */
void ps_state(struct tdt__string *string, const struct tdt__seen_task *task);

/*
 * Write the summary: which process, how many tasks in which state; what happened since the start;
 * and below it, a line for each ring of tasks that wait for each other.
 */
void ps_summary(struct tdt__out *out, const struct listing *listing);

/*
 * The number of the process.  It may have another one in its own PID namespace, which is what a
 * core file knows.
 */
uint32_t ps_pid(const struct listing *listing);
