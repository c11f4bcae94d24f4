/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The forms of a trace.  The text and folded forms are made in two steps: view.c finds which frames
 * are shown, then text.c or folded.c writes them.  json.c needs no view, since it writes all
 * frames.  Every form takes time linear in the number of nodes, and no function recurses over
 * depth.  dumps.h has the forms of a snapshot of many tasks, which are made of the same parts.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <tdt/dump.h>

#include "frames.h"
#include "json_writer.h"
#include "strings.h"

/*
 * Read the caller's options, and replace TDT_PRINT_AUTO by what is right for `out`.  Returns 0,
 * -EINVAL or -E2BIG.  May change errno.
 */
int tdt__print_options_read(struct tdt_print_options *options,
			    const struct tdt_print_options *theirs, FILE *out);

/*
 * Have `form(&way_out, arg)` print to `file` (NULL: to `options->write`), which is locked
 * meanwhile.  Returns what tdt__out_end() returns.
 */
int tdt__print_locked(FILE *file, const struct tdt_print_options *options,
		      void (*form)(struct tdt__out *out, const void *arg), const void *arg);

/*
 * The forms.  In `options`, `utf8` and `color` are YES or NO, never AUTO.  Errors are kept in
 * `out`.
 */
void tdt__print_text(struct tdt__out *out, const struct tdt_trace *trace,
		     const struct tdt_node *root, const struct tdt_print_options *options);
void tdt__print_json(struct tdt__out *out, const struct tdt_trace *trace,
		     const struct tdt_node *root);
void tdt__print_folded(struct tdt__out *out, const struct tdt_trace *trace,
		       const struct tdt_node *root, const struct tdt_print_options *options);

/* What a tree reads like. */
struct tdt__reading {
	uint64_t hash; /* of the text, for trees that are printed with the same `frames` */
	bool partial;  /* some calls are not shown */
};

/*
 * Print the tree as text, below the lines `head` (NULL: none).  `reading` is filled in unless it is
 * NULL.
 */
void tdt__print_tree(struct tdt__out *out, const struct tdt__string *head,
		     const struct tdt_node *root, struct tdt__frames *frames,
		     struct tdt__reading *reading);

/*
 * Write the lines that tdt__print_tree() draws as an array of rows, each of them an array: the
 * depth, from 1; the text; how many leaves wait there; and how many siblings the line stands for.
 * Lack of memory is kept in `out`.
 */
void tdt__json_tree(struct tdt__json *json, const char *key, const struct tdt_node *root,
		    struct tdt__frames *frames);

/* Begin a document with the schema's version; and end it. */
struct tdt__json tdt__json_document(struct tdt__out *out);
void tdt__json_finish(struct tdt__json *json);

/*
 * Write a member: the object of a task, of a misuse (NULL: none) or of a process, or the array of a
 * tree's nodes.  Lack of memory for the nodes is kept in `out`.
 */
void tdt__json_task(struct tdt__json *json, const char *key, const struct tdt_task_info *info);
void tdt__json_misuse(struct tdt__json *json, const struct tdt_misuse *misuse);
void tdt__json_process(struct tdt__json *json, const struct tdt_snapshot_process *process);
void tdt__json_nodes(struct tdt__json *json, const struct tdt_node *root);
/* The members of the objects of a task and of a node alone. */
void tdt__json_task_members(struct tdt__json *json, const struct tdt_task_info *info);
void tdt__json_node_members(struct tdt__json *json, const struct tdt_node *node);
/*
 * Write the rings: "deadlocks", those that are "unproven", and the other "rings", each an array of
 * arrays of tasks' ids.
 */
void tdt__json_rings(struct tdt__json *json, const struct tdt_snapshot_cycle *const *cycles,
		     size_t n);
/*
 * Write the futurelocks and the orphaned locks, which are also in the waits of the tasks; nothing
 * if there are none.  Lack of memory is kept in `out`.
 */
void tdt__json_stuck_locks(struct tdt__json *json, const struct tdt_snapshot *snapshot);
