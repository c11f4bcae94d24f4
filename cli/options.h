/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The options of all commands, in one table (option_table.c).  The help, the reading of a command
 * line, the completions of the shells and the manual page are made from the table, so that a new
 * option is one row there, and one field of struct options.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

#include "cli/program.h"

enum command_number {
	COMMAND_PS,
	COMMAND_TOP,
	COMMAND_BT,
	COMMAND_PROFILE,
	COMMAND_METRICS,
	COMMAND_DIFF,
	COMMAND_RECORD,
	COMMAND_REPORT,
	COMMAND_PRINT,
	COMMAND_SET,
	COMMANDS_OF_TDT, /* the numbers before are commands of tdt, in the order of its help */
	COMMAND_TREE = COMMANDS_OF_TDT,
	COMMAND_JOIN,
	COMMAND_TDT, /* tdt itself */
	COMMANDS
};

struct command {
	const char *name;  /* "ps" */
	const char *brief; /* for the help of tdt: what the command does, also to the process */
	const char *word;  /* the same in a few words, for completions */
	const char *usage; /* lines, each of them "tdt ps [OPTION]... TARGET" */
	const char *about; /* paragraphs, with an empty line between two */
	const char *status; /* of the exit */
};

extern const struct command commands[COMMANDS];

/* Reasons for a command to end with TDT_CHECK_FOUND, and the finds of a check (tdt.h). */
struct check {
	bool on;                                 /* a deadlock does */
	uint64_t polling_longer, waiting_longer; /* nanoseconds; 0: not asked for */
	/* What is neither found nor excluded: */
	bool unproven; /* a ring of waits */
	bool at_least; /* a time of a core file, which may be longer */
};

enum task_key { BY_ID, BY_NAME, BY_STATE, BY_FOR, BY_AGE, BY_POLLS };

/* OpenMetrics is version 1.0.0; Prometheus's older text format is 0.0.4. */
enum metrics_form { METRICS_OPENMETRICS, METRICS_PROMETHEUS, METRICS_JSON };

/* Behind those of enum tdt_print_format. */
#define PROFILE_PPROF ((enum tdt_print_format)(TDT_PRINT_FOLDED + 1))
#define FORM_BY_NAME ((enum tdt_print_format)(TDT_PRINT_FOLDED + 2)) /* of the output file */

#define TARGETS_MAX 64

/*
 * The values of the command line.  A command sets its defaults before; the strings are those of the
 * command line.  Times are in nanoseconds, and 0 if they were not given.
 */
struct options {
	const char *target; /* the number or the name of a process; NULL: not given */
	const char *targets[TARGETS_MAX]; /* of several, the last one is `target` */
	unsigned n_targets;
	const char *core;   /* a core file */
	const char *dir;    /* recordings: a directory or a file */
	const char *exe, *sysroot, *debug_dir;
	bool debuginfod; /* ask its servers, too */
	bool no_files;  /* of modules are opened: not an option of the user's */
	bool each_process; /* a line for each process is printed.  The same. */
	unsigned width; /* of the terminal, in columns; 0: there is none.  The same. */
	struct tdt_print_options print;
	enum metrics_form page;
	uint64_t timeout;
	bool verbose;
	struct check check;

	bool no_request, ptrace, no_symbols; /* how trees are made */
	bool request;      /* also of tasks whose last tree shows where they wait */
	bool keeps_watch;  /* of tdt top */
	uint64_t max_requests;               /* 0 with no_request */

	const char *name;    /* which tasks: a pattern */
	unsigned states;     /* bits by index of `task_states`; 0: all */
	uint64_t longer, task;
	const char *trace; /* the id of a trace in hexadecimal */
	enum task_key key;   /* the order */
	bool reverse;
	bool tree, dot, threads; /* the forms of tdt ps */

	unsigned view, sort; /* of tdt top: enum top_view, enum top_sort (top_round.h) */
	uint64_t interval, rounds;

	uint64_t after, duration, last; /* times */
	uint64_t frequency, rows, depth, since;
	const char *output, *listen, *perfetto, *otlp;
	bool all_processes, groups;
	bool passive; /* a profile makes no request, and no watch: not an option of the user's */
	bool summary;
	bool redact;
	/* Not options of the user's: a recording is printed for tdt report, and says so if the
	 * process has ended meanwhile. */
	bool for_page, has_ended;
};

/* "waiting", "runnable", "polling", "ended", "unknown", NULL. */
extern const char *const task_states[];

#define TASK_NOT_GIVEN UINT64_MAX /* no task has this number: `task` was not given */

/*
 * Read the options of a command.  `*argc` and `*argv` become the arguments that are left.  If usage
 * is wrong, or help was asked for, the program ends.
 */
void options_read(enum command_number command, struct options *options, int *argc, char ***argv);

void options_add_target(struct options *options, const char *target);

/*
 * Print what can be completed, for the scripts of the shells: a line for each option of a command
 * of that name, or for each command (NULL), of the word, a tab, a description, a tab, and the words
 * that may follow "=", or the kind of the argument.  Returns an exit status.
 */
int options_complete(const char *name);

/* Set `*ns` to a duration such as "10ms", "1.5s", "2m" or "1h".  If it is none, the program ends.
 */
void set_duration(uint64_t *ns, const char *text);

/* The rows of the table, private to options.c. */
enum option_kind {
	KIND_FLAG,    /* a bool or a uint8_t becomes 1 */
	KIND_VALUE,   /* an enum becomes `least` */
	KIND_TEXT,    /* a const char * */
	KIND_TARGET,  /* one of the targets */
	KIND_TIME,    /* a uint64_t, from `least` to `most` */
	KIND_SECONDS, /* the same; a number without a unit is one of seconds */
	KIND_NUMBER,  /* a uint64_t, from `least` to `most` */
	KIND_WORD,    /* an enum: the index of the word */
	KIND_WORDS,   /* an unsigned: bits by indexes */
	KIND_TRACE,   /* a const char *: up to 32 hexadecimal digits */
	KIND_HELP,
	KIND_VERSION
};

struct option_row {
	unsigned commands; /* bits by enum command_number */
	enum option_kind kind;
	char letter; /* 0: none */
	const char *name;
	const char *argument; /* "TIME"; NULL: none */
	size_t at;	      /* the field of struct options */
	uint64_t least, most;
	const char *const *words;
	const char *help;
};

extern const struct option_row option_rows[];
extern const size_t n_option_rows;
