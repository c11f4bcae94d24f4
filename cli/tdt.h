/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_TDT_H
#define TDT_CLI_TDT_H

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

#include <tdt/dump.h>

#include "cli/apart.h"
#include "cli/bound.h"
#include "cli/program.h"
#include "reader/find.h"
#include "reader/images.h"
#include "reader/target.h"
#include "reader/tasks.h"

enum { TDT_CHECK_FOUND = 1, TDT_TROUBLE = 2, TDT_CHECK_UNPROVEN = 3 };

extern const struct program outside_program;

int command_bt(int argc, char **argv);
int command_metrics(int argc, char **argv);
int command_profile(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_record(int argc, char **argv);
int command_set(int argc, char **argv);
int command_top(int argc, char **argv);

/* --- Options of the target ------------------------------------------------------------- */

struct outside_options {
	const struct program *program;
	const char *target; /* the number or the name of a process; NULL: not given */
	const char *core;   /* a core file; NULL: not given */
	const char *dir;    /* recordings: a directory or a file; NULL: not given */
	struct tdt__places places;
	struct tdt_print_options print;
	unsigned timeout; /* seconds */
	bool verbose;
};

enum {
	OPTION_CORE = 256,
	OPTION_DIR,
	OPTION_EXE,
	OPTION_SYSROOT,
	OPTION_DEBUG_DIR,
	OPTION_TIMEOUT,
	OPTION_VERBOSE,
	OPTION_JSON,
	OPTION_CHECK,
	OPTION_POLLING_LONGER,
	OPTION_WAITING_LONGER,
	OPTIONS_OWN /* a command numbers its own options from here on */
};

/* The last options of each command's table. */
#define OPTIONS_OF_TARGET							\
	{ "pid", required_argument, NULL, 'p' },				\
	{ "core", required_argument, NULL, OPTION_CORE },			\
	{ "dir", required_argument, NULL, OPTION_DIR },				\
	{ "exe", required_argument, NULL, OPTION_EXE },				\
	{ "sysroot", required_argument, NULL, OPTION_SYSROOT },			\
	{ "debug-dir", required_argument, NULL, OPTION_DEBUG_DIR },		\
	{ "verbose", no_argument, NULL, OPTION_VERBOSE },			\
	{ "json", no_argument, NULL, OPTION_JSON },				\
	OPTIONS_OF_ALL

#define OPTION_OF_TIMEOUT { "timeout", required_argument, NULL, OPTION_TIMEOUT }

/* Handle an option that is not the command's own.  Returns PROGRAM_GOES_ON or an exit status. */
int outside_option(struct outside_options *options, int option, const char *value);

/*
 * Take the target from the arguments behind the options, unless an option gave it.  `*argc` and
 * `*argv` become what is left.  Returns PROGRAM_GOES_ON or an exit status.
 */
int outside_arguments(struct outside_options *options, int *argc, char ***argv);

/* The command line of a command: options, and a target. */
struct command_line {
	const struct program *program;
	const char *letters; /* these and `options`: as for getopt_long() */
	const struct option *options;
	/* Handle an option; one that is not the command's own goes to outside_option(). */
	int (*option)(void *command, int option, const char *value);
	bool more; /* arguments may follow the target: they are left in `*argc` and `*argv` */
};

/* Read the command line.  Returns PROGRAM_GOES_ON or an exit status. */
int read_command_line(const struct command_line *line, void *command,
		      struct outside_options *options, int *argc, char ***argv);

/* --- Checks ---------------------------------------------------------------------------- */

/* What makes a command end with TDT_CHECK_FOUND. */
struct check {
	bool on;                                 /* a deadlock does */
	uint64_t polling_longer, waiting_longer; /* nanoseconds; 0: not asked for */
	/* What is neither found nor excluded, by the calls below: */
	bool unproven; /* a ring of waits */
	bool at_least; /* a time of a core file, which may be longer */
};

/* Options of commands that check. */
#define OPTIONS_OF_CHECK						\
	{ "check", no_argument, NULL, OPTION_CHECK },			\
	{ "polling-longer", required_argument, NULL, OPTION_POLLING_LONGER }, \
	{ "waiting-longer", required_argument, NULL, OPTION_WAITING_LONGER }

/* Handle one of these options.  Returns PROGRAM_GOES_ON or an exit status. */
int check_option(struct check *check, int option, const char *value);

/* A recording cannot be checked.  Returns PROGRAM_GOES_ON or an exit status. */
int check_of_recording(const struct outside_options *options, const struct check *check);

/*
 * Whether the task has been in its state for too long, or waits for a lock in a futurelock.
 * `at_least`: the time may be longer.
 */
bool check_is_bad(struct check *check, const struct tdt_trace_info *info, bool at_least);

/* Whether one of the rings is a deadlock. */
bool check_has_deadlock(struct check *check, const struct tdt_snapshot_cycle *const *cycles,
			size_t n);

/* The exit status of a check that has found nothing: report what it could not exclude. */
int check_report(const struct check *check);

/* The more serious one of two exit statuses. */
int worse_status(int a, int b);

/* --- The target ------------------------------------------------------------------------ */

/*
 * Bound the time of the command (bound.h): by --timeout, and what the user wants it to wait.  All
 * but the first call do nothing.
 */
void outside_bound(const struct outside_options *options, uint64_t wait_ns);

/*
 * Have `work(stdout, arg)` read the target in a child process, with limits (apart.h).  Returns what
 * it returns, an exit status; or -ECANCELED after reporting that the child has crashed, or has
 * reached a limit.
 */
int outside_apart(apart_fn *work, void *arg, const struct outside_options *options);

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
int outside_open(struct outside *outside, const struct outside_options *options);
void outside_close(struct outside *outside);

/* Look at the tasks of one registry.  Returns PROGRAM_GOES_ON or TDT_TROUBLE. */
int outside_tasks(struct outside *outside, struct tdt__tasks *tasks, size_t registry,
		  const struct outside_options *options);

/* Report a trouble, whose text may hold anything.  Returns TDT_TROUBLE. */
int report_trouble(const char *text);
int report_no_memory(void);
int report_reading(const char *why); /* what has ended it: see apart.h */
int report_ended(void); /* the process has, while it was read */

/* Report how long something took since `start` (tdt__clock()), if `options` ask for it. */
void report_time(const struct outside_options *options, const char *what, uint64_t start);

/*
 * Set `*ns` to a duration such as "10ms", "1.5s", "2m" or "1h".  Returns PROGRAM_GOES_ON or an exit
 * status.
 */
int set_duration(uint64_t *ns, const char *text);

#endif
