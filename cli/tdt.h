/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The program tdt: its commands, and what they share.  Each command reads its own command line,
 * which begins with the name of the command.
 *
 * Exit statuses: 0; TDT_CHECK_FOUND if --check found something, TDT_CHECK_UNPROVEN if it may have;
 * TDT_TROUBLE for everything else that went wrong.  The last two have been reported.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/apart.h"
#include "cli/bound.h"
#include "cli/options.h"
#include "reader/find.h"
#include "reader/images.h"
#include "reader/target.h"
#include "reader/tasks.h"

enum { TDT_CHECK_FOUND = 1, TDT_TROUBLE = 2, TDT_CHECK_UNPROVEN = 3 };

int command_bt(int argc, char **argv);
int command_metrics(int argc, char **argv);
int command_print(int argc, char **argv);
int command_profile(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_record(int argc, char **argv);
int command_report(int argc, char **argv);
int command_set(int argc, char **argv);
int command_top(int argc, char **argv);

/* tdt print as the program tdt-tree, which ends with EXIT_BAD_INPUT if what it reads is damaged. */
int print_as_tdt_tree(int argc, char **argv);

/* --- Options ---------------------------------------------------------------------------- */

/* The arguments that may stand behind the options. */
enum targets {
	TARGET_ONE,
	TARGET_AND_MORE,  /* the target, and arguments, which are left in `*argc` and `*argv` */
	TARGETS_AND_MORE, /* the same; several targets may be given by options */
	TARGETS_ANY,	  /* any number of targets */
	TARGET_OR_NONE
};

/*
 * Read the command line of a command that has a target: options_read(), and the target from the
 * arguments behind the options, unless an option gave it.
 */
void read_command_line(enum command_number command, struct options *options, int *argc,
		       char ***argv, enum targets targets);

/* The part of read_command_line() behind options_read(). */
void take_target(struct options *options, int *argc, char ***argv, enum targets targets);

/* --- Checks ---------------------------------------------------------------------------- */

/*
 * Check the tasks of a snapshot, and report what could not be excluded.  Returns the exit status.
 */
int check_snapshot(struct check check, const struct tdt_snapshot *snapshot);

/* The more serious one of two exit statuses. */
int worse_status(int a, int b);

/* --- Tasks ----------------------------------------------------------------------------- */

/*
 * The order of two tasks, for qsort(): the larger time or number comes first, names are in their
 * order, and of equals the smaller id comes first.
 */
int compare_tasks(enum task_key key, const struct tdt_task_info *a,
		  const struct tdt_task_info *b);

/* --- The target ------------------------------------------------------------------------ */

/* The time of --timeout, or the usual one. */
unsigned timeout_seconds(const struct options *options, unsigned usual);

/*
 * Bound the time of the command (bound.h): by --timeout, and what the user wants it to wait.  All
 * but the first call do nothing.
 */
void outside_bound(const struct options *options, uint64_t wait_ns);

/*
 * Until when a child looks names up, as tdt__clock() tells: then it prints those that it has.  The
 * servers of debuginfod get all the time there is.
 */
uint64_t naming_until(void);

/*
 * Have `work(stdout, arg)` read the target in a child process, with limits (apart.h).  `again`: if
 * files of the target make the child crash, the work is done once more, and no file is opened.
 * Returns what the work returns, an exit status; or TDT_TROUBLE.
 */
int outside_apart(apart_fn *work, void *arg, struct options *options, bool again);

/*
 * Set `*pid` to the process that the user means by a number or a name.  Returns PROGRAM_GOES_ON or
 * TDT_TROUBLE.
 */
int choose_process(const char *name, pid_t *pid);

struct outside {
	struct tdt__target target;
	struct tdt__images images;
	struct tdt__found found[TDT__REGISTRIES_MAX];
	size_t n_found; /* with a known layout, at least one */
};

/* Open the target, and find its registries.  Returns PROGRAM_GOES_ON or TDT_TROUBLE. */
int outside_open(struct outside *outside, const struct options *options);
void outside_close(struct outside *outside);

/*
 * The first registry whose library has recorded, else the first one.  `*n` (NULL: not wanted)
 * becomes the number of those that have.
 */
const struct tdt__found *outside_recorder(const struct outside *outside, size_t *n);

/* Look at the tasks of one registry.  Returns PROGRAM_GOES_ON or TDT_TROUBLE. */
int outside_tasks(struct outside *outside, struct tdt__tasks *tasks, size_t registry,
		  const struct options *options);

/* Report a trouble, whose text may hold anything.  Returns TDT_TROUBLE. */
int report_trouble(const char *format, ...) __attribute__((format(printf, 1, 2)));
int report_no_memory(void);
int report_reading(const char *why); /* what has ended it: see apart.h */
int report_ended(void); /* the process has, while it was read */

/* Report how long something took since `start` (tdt__clock()), if `options` ask for it. */
void report_time(const struct options *options, const char *what, uint64_t start);

/* --- Output ---------------------------------------------------------------------------- */

struct tdt__modules;

/*
 * Print what has names in it, which a child process looks up: the target named their files.  Have
 * `print(file, arg)` print to the file at `path`, which is replaced as a whole (NULL: to
 * standard output), in a child process; and if the child fails, or with --no-symbols, here and
 * without names, so that nothing can go wrong.  Nobody else has `modules`.  Returns an exit status
 * after the report of what failed.
 */
int print_named(apart_fn *print, void *arg, struct tdt__modules *modules,
		const struct options *options, const char *path);

/*
 * Report the failure to write to `path` (NULL: standard output), a negative errno.  0: there was
 * none.  Returns an exit status.
 */
int report_output(const char *path, int error);
