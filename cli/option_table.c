// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The table of options and commands: see options.h.
 *
 * The comment above a row is the text of the manual page (man/options.awk); without one, the page
 * has the text of the help.  Names in backquotes become bold there.  A heading of this file is a
 * heading of the page.
 */

#include "cli/options.h"
#include "tree-printer/summaries.h"

/* --- Words ---------------------------------------------------------------------------------- */

const char *const task_states[] = { "waiting", "runnable", "polling", "ended", "unknown", NULL };
/* In the order of enum tdt__profile_state. */
static const char *const polled_states[] = { "waiting", "runnable", "polling", NULL };
static const char *const forms[] = { "text", "json", "folded", NULL };
static const char *const join_forms[] = { "text", "json", NULL };
static const char *const profile_forms[] = { "text", "json", "folded", "pprof", NULL };
static const char *const page_forms[] = { "openmetrics", "prometheus", "json", NULL };
static const char *const color_words[] = { "auto", "never", "always", NULL };
static const char *const ps_keys[] = { "id", "name", "state", "for", "age", "polls", NULL };
static const char *const views[] = { "tasks", "places", "threads", "times", NULL };
static const char *const top_keys[] = { "suspicion", "for", "age", "polls", "name", "id", NULL };

/* --- Rows ----------------------------------------------------------------------------------- */

/* The commands that have the option. */
#define PS (1u << COMMAND_PS)
#define TOP (1u << COMMAND_TOP)
#define BT (1u << COMMAND_BT)
#define PROFILE (1u << COMMAND_PROFILE)
#define METRICS (1u << COMMAND_METRICS)
#define DIFF (1u << COMMAND_DIFF)
#define RECORD (1u << COMMAND_RECORD)
#define REPORT (1u << COMMAND_REPORT)
#define PRINT (1u << COMMAND_PRINT | 1u << COMMAND_TREE)
#define SET (1u << COMMAND_SET)
#define JOIN (1u << COMMAND_JOIN)
#define TDT (1u << COMMAND_TDT)
#define SAVED (PS | BT | RECORD | REPORT)
#define ALIVE (TOP | PROFILE | METRICS | DIFF | SET)

#define ROW(of, short, long, word, what, field, low, high, list, text)              \
	{ .commands = (of), .letter = (short), .name = (long), .argument = (word),  \
	  .kind = (what), .at = offsetof(struct options, field), .least = (low),    \
	  .most = (high), .words = (list), .help = (text) }

#define FLAG(of, name, field, help) ROW(of, 0, name, NULL, KIND_FLAG, field, 0, 0, NULL, help)
#define VALUE(of, name, field, value, help) \
	ROW(of, 0, name, NULL, KIND_VALUE, field, value, 0, NULL, help)
#define TEXT(of, letter, name, argument, field, help) \
	ROW(of, letter, name, argument, KIND_TEXT, field, 0, 0, NULL, help)
#define TIME(of, letter, name, argument, field, least, most, help) \
	ROW(of, letter, name, argument, KIND_TIME, field, least, most, NULL, help)
#define NUMBER(of, letter, name, argument, field, least, most, help) \
	ROW(of, letter, name, argument, KIND_NUMBER, field, least, most, NULL, help)
#define WORD(of, name, argument, field, words, help) \
	ROW(of, 0, name, argument, KIND_WORD, field, 0, 0, words, help)
#define WORD_LIST(of, name, argument, field, words, help) \
	ROW(of, 0, name, argument, KIND_WORDS, field, 0, 0, words, help)
#define ACTION(of, name, kind, help) ROW(of, 0, name, NULL, kind, verbose, 0, 0, NULL, help)

#define ANY UINT64_MAX
#define SECOND UINT64_C(1000000000)

const struct option_row option_rows[] = {
	/* --- The target --- */

	/* The number or the name of a process.  `tdt ps` and `tdt bt` take several, each by a `-p`
	 * of its own, and print one after the other. */
	ROW(SAVED | ALIVE, 'p', "pid", "TARGET", KIND_TARGET, target, 0, 0, NULL,
	    "the number or the name of a process"),
	/* Of every process of this machine that uses the library and may be read, found again for
	 * each page: each sample has the labels `program` and `pid`.  Processes that may not be
	 * read are counted, by the reason.  Arguments are patterns, as `'web-*'`: the name of a
	 * program, as `tdt ps` shows it, must match one of them (fnmatch(3)).  A pattern that
	 * matches nothing is no error, since processes come and go. */
	FLAG(METRICS, "all", all_processes,
	     "of all processes that use the library and may be read"),
	/*
	 * Also count tasks by name and by what they wait for: `tdt_task_group`; and, while the
	 * flight recorder runs, their waits: `tdt_task_waits` and `tdt_task_wait_seconds`.  Numbers
	 * in names are replaced by `#`, and of each process 20 groups are counted, the rest as
	 * `other`.  A task without a name has the place where it was spawned.  With `--listen`,
	 * profiles are served, too.
	 */
	FLAG(METRICS, "names", groups,
	     "also count tasks by name and wait, and serve profiles at /debug/pprof/tasks"),
	/* Read a core file, made by the kernel or by `gcore`(1).  One that is compressed, as
	 * systemd-coredump(8) stores it (`coredumpctl info` names the file), is decompressed by
	 * zstd, xz, lz4 or gzip into a file without a name below `$TMPDIR`, or /var/tmp. */
	TEXT(SAVED, 0, "core", "FILE", core, "read a core file instead of a process"),
	/*
	 * Read the recordings in that directory (`TDT_RECORD_DIR`).  Of several, the newest one of
	 * a process is read that has ended otherwise than by exit(3), else of one that has ended,
	 * else the newest one.  Links, and those of other users, are passed over, unless the
	 * directory is theirs, or the file is named.  DIR may also be one file.  `--check`, its
	 * limits, and `--threads` need a process or a core file.
	 */
	TEXT(SAVED, 0, "dir", "DIR", dir,
	     "read recordings in a directory (TDT_RECORD_DIR): of several, the newest one of a "
	     "process that was killed; or one file"),
	/* The program of the core file.  A file counts only if it has the build-id that the core
	 * file has. */
	TEXT(SAVED, 0, "exe", "FILE", exe, "the program of the core file"),
	/* The directory that stands for the root directory of the core file's process. */
	TEXT(SAVED, 0, "sysroot", "DIR", sysroot, "where the files of the core file's process lie"),
	/* The directory of separate debug files, instead of `/usr/lib/debug`. */
	TEXT(SAVED | TOP | PROFILE | DIFF, 0, "debug-dir", "DIR", debug_dir,
	     "separate debug files, instead of /usr/lib/debug"),
	/* Get debug files that are not found on this machine by `debuginfod`(8) from the servers of
	 * the variable `DEBUGINFOD_URLS`.  Without this, or `TDT_DEBUGINFOD=1` in the environment,
	 * names are looked up without a network.  Names whose file takes too long are left out; a
	 * longer `--timeout` gives the servers more time. */
	FLAG(SAVED | TOP | PROFILE | DIFF, "debuginfod", debuginfod,
	     "get debug files that are missing here from the servers of DEBUGINFOD_URLS"),

	/* --- Which tasks --- */

	/* Only tasks whose name matches the pattern of the shell.  `tdt top` takes a part of the
	 * name, too, and the id of a task. */
	TEXT(PS | TOP, 0, "name", "PATTERN", name, "only tasks whose name matches, as \"conn *\""),
	WORD_LIST(PS, "state", "STATE,...", states, task_states,
		  "only tasks that are waiting, runnable, polling, ended or unknown"),
	WORD_LIST(PROFILE, "state", "STATE,...", states, polled_states,
		  "only waiting, runnable or polling tasks (default: all)"),
	/* Only tasks that have been in their state for longer than that, as `10ms`, `1.5s`, `2m` or
	 * `1h`. */
	TIME(PS, 0, "longer", "TIME", longer, 0, ANY,
	     "only tasks that have been in their state for longer, as 10ms"),
	/* With `--otlp`: only phases that lasted at least that time, as `50ms`. */
	TIME(RECORD | PRINT, 0, "longer", "TIME", longer, 0, ANY,
	     "with --otlp: only phases that lasted at least that time, as 50ms"),
	/* Only tasks of the trace with that id, as Jaeger and Tempo show it (up to 32 hexadecimal
	 * digits): those for which the program has called `tdt_task_context`(3), and what they have
	 * spawned since. */
	ROW(PS | BT, 0, "trace", "ID", KIND_TRACE, trace, 0, 0, NULL,
	    "only tasks of this trace, by its id in hexadecimal"),
	NUMBER(TOP, 0, "task", "ID", task, 0, ANY, "show the tree of this task"),

	/* --- Times --- */

	/* Look at the target now, and again after that time. */
	TIME(DIFF, 0, "after", "TIME", after, 1, ANY, "the time between the answers, as 5s"),
	TIME(PROFILE, 'd', "duration", "TIME", duration, 1, 24 * 3600 * SECOND,
	     "how long (default: 30s); Ctrl-C ends it, and prints what there is"),
	/* Wait for so long, as `10s`, and take what was recorded meanwhile. */
	TIME(RECORD | REPORT, 'd', "duration", "TIME", duration, 1, ANY,
	     "wait for so long, as 10s, and take what was recorded meanwhile; Ctrl-C ends that"),
	/* Take only what was recorded in that time, which ends now, or with the newest event if the
	 * process does not run any more. */
	TIME(RECORD, 0, "last", "TIME", last, 1, ANY, "take only what was recorded last"),
	TIME(SET, 0, "for", "TIME", duration, 0, ANY, "end after that time, as 60s"),
	/* The time between two rounds: 1 second unless this says otherwise, and at least `100ms`.
	 */
	TIME(TOP, 'd', "interval", "TIME", interval, SECOND / 10, ANY,
	     "the time between rounds, as 500ms (default: 1s)"),
	NUMBER(TOP, 'n', "rounds", "N", rounds, 0, ANY, "end after so many rounds"),
	/* Look so often in a second, from 1 to 1000 times.  The default is 19; more looks make a
	 * profile of the same length hardly more exact. */
	NUMBER(PROFILE, 'F', "frequency", "HZ", frequency, 1, 1000,
	       "looks in a second, 1 to 1000 (default: 19)"),

	/* --- Requests and trees --- */

	/* Also request the tasks that wait and whose watched tree is of their last poll.  A request
	 * wakes a task, and if its wake-up had been lost, it goes on: so these are only read
	 * otherwise. */
	FLAG(BT | REPORT | DIFF, "request", request,
	     "also request tasks whose last tree shows where they wait"),
	/* Have the tasks watched while the program runs, as by `tdt set watch=10ms`; the key `w`
	 * does the same.  A task has a tree after its next poll. */
	FLAG(TOP, "watch", keeps_watch, "have the tasks watched meanwhile: places have trees"),
	/* Only read: make no request to any task.  In a profile, tasks that are not polled have no
	 * place then, unless the process was watched before. */
	FLAG(BT | REPORT | DIFF | PROFILE | TOP, "no-request", no_request,
	     "only read: make no request to any task"),
	/* Request the trees of no more than N tasks, since each request wakes a task; the default
	 * is 1000, and 10000 for a profile.  Other tasks are only read. */
	NUMBER(BT | REPORT | DIFF | PROFILE, 0, "max-requests", "N", max_requests, 0,
	       UINT32_MAX,
	       "request no more tasks than these (default: 1000; of a profile: 10000)"),
	/* Stop each thread that runs, by `ptrace`(2), while its stack is copied: for some
	 * microseconds, and without a signal.  This needs no `perf_event_open`(2), and copies up to
	 * 1 MiB of the stack, not 64 KiB.  A system call in which the thread begins to block at
	 * that moment may return EINTR.  A thread that another debugger has attached to cannot be
	 * stopped. */
	FLAG(BT | REPORT | DIFF, "ptrace", ptrace,
	     "stop each thread that runs while its stack is copied: take no sample"),
	/* Look up no names: print modules and offsets, and read no debug information. */
	FLAG(BT | REPORT | DIFF | PROFILE | RECORD, "no-symbols", no_symbols,
	     "look up no names: print modules and offsets"),

	/* --- The form --- */

	FLAG(PS, "tree", tree, "below the task that spawned them"),
	/* Print a graph for `dot`(1): which task waits for which.  Deadlocks are red. */
	FLAG(PS, "dot", dot, "who waits for whom, for dot(1); rings are red"),
	/* List the threads instead of the tasks: the workers of a runtime, and the other threads
	 * that have polled a task.  A worker is `polling` a task, `parked`, or `between polls`; a
	 * thread that its runtime has not reported (`tdt_worker_thread_start`(3)) is `no worker`.
	 * A thread is known from its first poll on.  A core file does not have the names of
	 * threads. */
	FLAG(PS, "threads", threads, "the threads that poll, instead of the tasks"),
	/* The order.  Times and polls: the largest first. */
	WORD(PS, "sort", "KEY", key, ps_keys, "id (the default), name, state, for, age or polls"),
	FLAG(PS, "reverse", reverse, "in the other order"),
	/* `suspicion` (the default): deadlocks, then polls, then runnable tasks, then the longest
	 * waits; or `for`, `age`, `polls`, `name` or `id`. */
	WORD(TOP, "sort", "KEY", sort, top_keys,
	     "suspicion (the default), for, age, polls, name or id"),
	WORD(TOP, "view", "VIEW", view, views, "tasks (the default), places, threads or times"),
	/* The file to write, in the form that its name ends with: OUT.pb.gz for `go tool pprof`,
	 * OUT.json, OUT.folded for flame graphs; otherwise text. */
	TEXT(PROFILE, 'o', "output", "OUT", output,
	     "the file to write, by its name: OUT.pb.gz for pprof, OUT.json, OUT.folded for flame "
	     "graphs, otherwise text"),
	TEXT(RECORD, 'o', "output", "OUT", output,
	     "the file to write, by its name: OUT.pftrace for ui.perfetto.dev, OUT.pftrace.gz the "
	     "same compressed, OUT.json the summary, otherwise the recording (tdt print "
	     "--summary)"),
	/* The page to write.  The file is made anew, for its owner only (mode 0600), and put in the
	 * place of a regular file that is there; a symbolic link is not followed. */
	TEXT(REPORT, 'o', "output", "OUT", output, "the page to write, as incident.html"),
	/* Replace names, paths and addresses, in the JSON of the page, too: the same one by the
	 * same word.  What tells nothing of the program stays: functions of tdt, of the C library
	 * and of the languages' libraries, build-ids, numbers of lines, and times. */
	FLAG(REPORT, "redact", redact, "replace names, paths and addresses"),
	FLAG(RECORD, "summary", summary, "print the summary, too"),
	FLAG(PRINT, "summary", summary, "print the summary of a recording"),
	/*
	 * Write the recording to the file OUT (`-`: standard output) as a trace for ui.perfetto.dev
	 * or trace_processor.  The trace is compressed if the name ends in `.gz`.  The file is made
	 * anew, for its owner only (mode 0600), and put in the place of a regular file that is
	 * there; a symbolic link is not followed.
	 */
	TEXT(PRINT, 0, "perfetto", "OUT", perfetto,
	     "write a recording to this file as a trace for ui.perfetto.dev"),
	/*
	 * Write what the tasks of a recording did that belong to traces (tdt_task_context(3)) as
	 * spans of OpenTelemetry: to the file OUT (`-`: standard output), which is made as that of
	 * `--perfetto` is, or to the collector at OUT, a URL as `http://localhost:4318`.  Without a
	 * port, the URL has 4318; without a path, `/v1/traces`.
	 */
	TEXT(RECORD | PRINT, 0, "otlp", "OUT", otlp,
	     "write a recording as spans of OpenTelemetry to this file, or to the collector at "
	     "http://HOST:4318"),
	/*
	 * `text` (the default); `json`; or `folded`: stacks for flame graphs, a line for each place
	 * where leaves wait.  The line has the task and the functions, outermost first, with `;`
	 * between them, and then the number of leaves.  A `;` in a name becomes `:`.  Those of
	 * `tdt diff` have two numbers of tasks, or of nanoseconds, as `difffolded.pl` writes them
	 * and `flamegraph.pl` reads them.  A summary has the first two forms.
	 */
	WORD(BT | DIFF | PRINT, "format", "FORM", print.format, forms,
	     "text (the default), json, or folded: stacks for flame graphs"),
	WORD(JOIN, "format", "FORM", print.format, join_forms, "text (the default) or json"),
	/* `text` (the default), `json`, `folded` for flame graphs, with nanoseconds, or `pprof`,
	 * which `go tool pprof` reads: its values are the nanoseconds `waiting`, `runnable` and
	 * `polling`, and the number of `samples`; its labels are `task`, `state` and `waits for`.
	 */
	WORD(PROFILE, "format", "FORM", print.format, profile_forms,
	     "text (the default), json, folded or pprof"),
	/* `openmetrics` (the default); `prometheus`: its older text format, which the textfile
	 * collector of node_exporter reads, too; or `json`. */
	WORD(METRICS, "format", "FORM", page, page_forms,
	     "openmetrics (the default), prometheus: its older text format, or json"),
	/*
	 * Serve the page at http://ADDRESS/metrics.  ADDRESS is a port of 127.0.0.1, or the number
	 * of an address with a port: `9777`, `127.0.0.1:9777`, `[::1]:9777`.  Any other address, as
	 * `0.0.0.0:9777`, is open to whoever can reach it.  Port 0 stands for any free port.  The
	 * URL is printed to standard output.  Each reading of the process may last for `--timeout`,
	 * or 10s if that is not given; with `--all`, that of all for `--timeout` or 8s.
	 */
	TEXT(METRICS, 0, "listen", "ADDRESS", listen,
	     "go on, and serve them at http://ADDRESS/metrics: 9777 or 127.0.0.1:9777 is a port of "
	     "this machine alone; other addresses, as 0.0.0.0:9777, are open to others"),
	/* Print one JSON object on one line, for each copy of the library or each round: see below.
	 * With `tdt record`, print the summary in this form. */
	VALUE(PS | TOP | BT | PROFILE | DIFF | RECORD | PRINT | SET | JOIN, "json", print.format,
	      TDT_PRINT_JSON, "as JSON, an object on one line"),
	VALUE(METRICS, "json", page, METRICS_JSON, "as JSON, an object on one line"),
	/* The most places of the text.  The default is 20; the other forms have all places. */
	NUMBER(PROFILE, 0, "rows", "N", rows, 1, UINT32_MAX,
	       "the most places of the text (default: 20)"),
	/* With `--summary`: print at most N entries of each list (default: 3; 100 with `--full` or
	 * as JSON). */
	NUMBER(PRINT, 0, "rows", "N", rows, 1, TDT__SUMMARY_ROWS_MAX,
	       "with --summary: at most N entries of each list"),
	/* With `--summary`: leave out what is older than that when the recording ends.  Digits may
	 * follow a point. */
	ROW(PRINT, 0, "since", "SECONDS", KIND_SECONDS, since, 1, ANY, NULL,
	    "with --summary: only what happened in the last SECONDS"),
	/* Print at most N levels of frames, and the number of frames and leaves below. */
	NUMBER(PRINT, 0, "depth", "N", depth, 1, UINT32_MAX,
	       "at most N levels of frames; what is cut is marked"),
	/*
	 * Name frames as tracers do, `symbol+0x1f`, instead of by function and place.  The symbol
	 * is not demangled.  A frame without a symbol is printed as module and offset.  An inlined
	 * function is marked as `(inlined)`.
	 */
	FLAG(BT | DIFF | PRINT, "addresses", print.addresses,
	     "symbol+0x1f, as tracers print it, instead of the place in the source"),
	/* Print the whole path of the source, not only the part below the directory of the program,
	 * or from the package on. */
	FLAG(BT | DIFF | PROFILE | PRINT, "full-paths", print.full_paths,
	     "the source's whole path"),
	/* Print all calls in libraries, too, with their whole names.  JSON and folded stacks always
	 * have them.  With `--summary`: print up to 100 entries of each list, whole stacks, and how
	 * far each ring reaches back. */
	FLAG(BT | DIFF | PROFILE | PRINT, "full", print.full,
	     "also the calls in libraries, which are folded otherwise; long lists of a summary"),
	FLAG(BT | DIFF | PROFILE | PRINT, "plumbing", print.plumbing,
	     "also the frames of tdt itself"),

	/* --- Checks --- */

	/*
	 * End with status 1 if it is proved that there is a deadlock, or a futurelock: a lock that
	 * was handed to a task which was polled since, and has not taken it; or an orphaned lock;
	 * or if earlier requests have found that a wake-up was lost.  If a ring of waits is
	 * unproven, `tdt bt` requests its tasks, and no others; nothing else is requested for a
	 * check.  If they do not answer, or with `--no-request`, or in `tdt ps`, which makes no
	 * requests, that is reported, and the status is 3.
	 */
	FLAG(PS | BT, "check", check.on,
	     "exit with 1 if there is a deadlock; tdt bt requests only tasks that may be in one"),
	/* End with status 1 if a poll has gone on for longer, too.  Where that is not seen in a
	 * core file, it is unknown: the status is 3. */
	TIME(PS | BT, 0, "polling-longer", "TIME", check.polling_longer, 0, ANY,
	     "the same if a poll has gone on for longer"),
	TIME(PS | BT, 0, "waiting-longer", "TIME", check.waiting_longer, 0, ANY,
	     "the same if a task has waited for longer"),

	/* --- All commands --- */

	/* Give up after that time, beside the time that `--after` or `--duration` gives.  The
	 * default is 60s, and 120s for a profile.  A large recording gets a second more for every
	 * 4 MiB. */
	TIME(SAVED | ALIVE, 0, "timeout", "TIME", timeout, 0, ANY,
	     "give up after that (default: 60s; of a profile: 120s)"),
	/* Print to standard error how long each step took, and how much of a CPU the looks of a
	 * profile took. */
	FLAG(SAVED | PROFILE | METRICS | DIFF | SET, "verbose", verbose,
	     "say how long each step took"),
	/* The characters for the lines of trees.  The default is as the locale is. */
	VALUE(PS | BT | RECORD | TOP | PROFILE | DIFF | PRINT | JOIN, "utf8", print.utf8,
	      TDT_PRINT_YES, "lines of trees in UTF-8 (default: as the locale is)"),
	/* The characters for the lines of trees; all other characters that are not ASCII are
	 * escaped as in C, too. */
	VALUE(PS | BT | RECORD | TOP | PROFILE | DIFF | PRINT | JOIN, "ascii", print.utf8,
	      TDT_PRINT_NO, "lines of trees in ASCII"),
	/* When to use colours: `always`, `never`, or `auto` (the default): if standard output is a
	 * terminal with colours, and `NO_COLOR` is not set. */
	WORD(PS | BT | RECORD | TOP | PROFILE | DIFF | PRINT | JOIN, "color", "WHEN", print.color,
	     color_words, "auto (the default: on a terminal), always or never"),
	ACTION(SAVED | ALIVE | PRINT | JOIN | TDT, "help", KIND_HELP,
	       "print how the program is used"),
	ACTION(SAVED | ALIVE | PRINT | JOIN | TDT, "version", KIND_VERSION, "print the version"),
};

const size_t n_option_rows = sizeof option_rows / sizeof option_rows[0];

/* --- Commands ------------------------------------------------------------------------------- */

#define CHECK_STATUS                                                                     \
	"0; 1 if --check found something; 2 if something went wrong; 3 if a deadlock is " \
	"unproven."
#define PLAIN_STATUS "0; 2 if something went wrong."
#define TARGET_IS "TARGET is the number or the name of a process"
#define ABOUT_PRINT                                                                       \
	"Print traces of async tasks, and dumps of many, which the tdt library wrote as " \
	"JSON to FILE (default, or -: standard input).\n\n"                               \
	"With --summary: say what happened last, by a RECORDING of the flight recorder: " \
	"a file, or a directory with files (TDT_RECORD_DIR).  Of several files, the "     \
	"newest one of a process that was killed is read.  With --perfetto: write it to " \
	"OUT as a trace for ui.perfetto.dev, compressed if OUT ends in .gz.  With "      \
	"--otlp: write it as spans of OpenTelemetry to the file OUT, or to the "         \
	"collector at OUT, a URL as http://localhost:4318."

const struct command commands[COMMANDS] = {
	[COMMAND_PS] = {
		.name = "ps",
		.word = "list the tasks",
		.brief = "list the tasks: what they do, since when, and what they wait for; only "
			 "reads",
		.usage = "tdt ps [OPTION]... [TARGET]...",
		.about = "List the async tasks of a process, of a core file, or of a recording at "
			 "its end: what they do, since when, what they wait for, and where they "
			 "were spawned.  The process is only read.  " TARGET_IS ".  Without "
			 "one, list the processes that use the library, and what has lasted "
			 "longest in each, or is wrong.",
		.status = CHECK_STATUS,
	},
	[COMMAND_TOP] = {
		.name = "top",
		.word = "show them again and again",
		.brief = "show the same again and again: who waits, where, and what runs; only "
			 "reads, but wakes the one task whose tree is open once a round",
		.usage = "tdt top [OPTION]... [TARGET]",
		.about = "Show what the async tasks of a process do, again and again: how many "
			 "wait, where and for how long, which polls run, what the workers do, and "
			 "with Enter the tree of one task, which is woken for it once a round.  "
			 TARGET_IS "; without one, the processes that use the library are listed.  "
			 "On a terminal, ? explains the keys.  Otherwise each round is printed as "
			 "text.",
		.status = "0; 2 if something went wrong, or the process has ended.",
	},
	[COMMAND_BT] = {
		.name = "bt",
		.word = "print where they wait",
		.brief = "print where they wait: call trees, the same ones only once; wakes once "
			 "each waiting task whose tree is missing, unless --no-request",
		.usage = "tdt bt [OPTION]... TARGET [TASK]...",
		.about = "Print where the async tasks of a process or of a core file wait, or of a "
			 "recording waited at its end: all of them, or those with the ids TASK.  "
			 TARGET_IS ".\n\n"
			 "Tasks that wait at the same places are printed once.  If the library in "
			 "the process listens, each task whose tree is missing or old is "
			 "requested to show where it waits, which wakes it once.  Otherwise there "
			 "are the stacks of polls that go on, and the last trees of tasks that are "
			 "watched (TDT_WATCH=10ms).",
		.status = CHECK_STATUS,
	},
	[COMMAND_PROFILE] = {
		.name = "profile",
		.word = "sum up where they wait",
		.brief = "sum up for a time where they wait, and what they run; has the process "
			 "watch its tasks meanwhile, and wakes once each waiting task whose tree "
			 "is missing",
		.usage = "tdt profile [OPTION]... TARGET",
		.about = "Sum up where the async tasks of a process spend their time: waiting, by "
			 "the place where they wait; runnable, until a worker polls them; and "
			 "polling, by the stack that runs.  Each task counts once, however many "
			 "leaves it has.  The process watches its tasks meanwhile (as by tdt set "
			 "watch=10ms), unless it does so by itself.  " TARGET_IS ".",
		.status = PLAIN_STATUS,
	},
	[COMMAND_METRICS] = {
		.name = "metrics",
		.word = "numbers for Prometheus",
		.brief = "print numbers for Prometheus: tasks by state, polls, panics; only reads",
		.usage = "tdt metrics [OPTION]... TARGET\n"
			 "tdt metrics [OPTION]... --all [PATTERN]...",
		.about = "Print numbers about the async tasks of a process, for Prometheus and "
			 "what else reads OpenMetrics.  The process is only read.  " TARGET_IS ".",
		.status = PLAIN_STATUS,
	},
	[COMMAND_DIFF] = {
		.name = "diff",
		.word = "compare two answers",
		.brief = "compare two answers of bt or ps: what has not moved, and what has grown; "
			 "with --after, wakes once each waiting task whose tree is missing, unless "
			 "--no-request",
		.usage = "tdt diff [OPTION]... A B\n"
			 "tdt diff --after=TIME [OPTION]... TARGET [TASK]...",
		.about = "Compare two answers that tdt bt or tdt ps gave as JSON, the file A "
			 "before B: which tasks have not moved in between, and where they wait; at "
			 "which places there are more tasks than before; which tasks have come "
			 "and gone.  They may also be two profiles, as JSON or as folded stacks: "
			 "which stacks have another share.\n\n"
			 "With --after: ask for both answers as tdt bt does, TIME apart.  "
			 TARGET_IS ".",
		.status = "0, whatever has changed; 2 if something went wrong.",
	},
	[COMMAND_RECORD] = {
		.name = "record",
		.word = "save what was recorded",
		.brief = "save what the flight recorder has recorded, or sum it up; only reads, "
			 "but with --duration has the process record if it does not",
		.usage = "tdt record [OPTION]... -o OUT TARGET",
		.about = "Save what the flight recorder of a process has recorded: what each task "
			 "did and waited for, who woke it, and what was slow.  The process goes "
			 "on recording meanwhile.  " TARGET_IS " that was started with "
			 "TDT_RECORD=16M, for example.",
		.status = PLAIN_STATUS,
	},
	[COMMAND_REPORT] = {
		.name = "report",
		.word = "write a page for a ticket",
		.brief = "write all that is known of an incident to one HTML file; wakes once each "
			 "waiting task whose tree is missing, unless --no-request",
		.usage = "tdt report [OPTION]... -o OUT TARGET",
		.about = "Write one page that a person attaches to a ticket: what is wrong, the "
			 "tasks, their trees, who waits for whom, the places where they wait, what "
			 "the flight recorder has recorded, if it did, and what the process was.  "
			 "The page needs no network, and tdt print reads it.  It has no "
			 "environment, no command line and no memory of the process.  " TARGET_IS
			 ".",
		.status = PLAIN_STATUS,
	},
	[COMMAND_PRINT] = {
		.name = "print",
		.word = "print what was saved",
		.brief = "print what was saved: traces and dumps (JSON), recordings; needs no "
			 "process",
		.usage = "tdt print [OPTION]... [FILE]\n"
			 "tdt print --summary [OPTION]... RECORDING\n"
			 "tdt print --perfetto=OUT RECORDING\n"
			 "tdt print --otlp=OUT [--longer=TIME] RECORDING",
		.about = ABOUT_PRINT,
		.status = "0; 2 if FILE is damaged (what stands before is printed), the output "
			  "fails, or an option is wrong.",
	},
	[COMMAND_SET] = {
		.name = "set",
		.word = "watch or record them",
		.brief = "have the process watch its tasks or record, until this ends",
		.usage = "tdt set [OPTION]... TARGET [watch=TIME] [record=SIZE]",
		.about = "Have a process watch its tasks (keep the last tree of each task, once in "
			 "TIME, as watch=10ms), or record polls and wake-ups (in rings of SIZE, as "
			 "record=16M), until this program ends: by Ctrl-C, or by --for.  What the "
			 "process does by itself goes on as before.  " TARGET_IS ".",
		.status = "0; 2 if something went wrong, or the process has ended.",
	},
	[COMMAND_TREE] = {
		.name = "",
		.usage = "tdt-tree [OPTION]... [FILE]\n"
			 "tdt-tree --summary [OPTION]... RECORDING\n"
			 "tdt-tree --perfetto=OUT RECORDING\n"
			 "tdt-tree --otlp=OUT [--longer=TIME] RECORDING",
		.about = ABOUT_PRINT,
		.status = "0; 1 if FILE is damaged (what stands before is printed) or the output "
			  "fails; 2 for a wrong option.",
	},
	[COMMAND_JOIN] = {
		.name = "",
		.usage = "tdt-join-ustack [OPTION]... TRACES STACKS...",
		.about = "Print where async tasks wait and where a tracer saw them, in one tree "
			 "for each task.  TRACES is the output of tdt bt --json, or what the tdt "
			 "library wrote as JSON; STACKS is the output of perf script, or of the "
			 "scripts oncpu-by-task, wait-stacks or long-polls, for bpftrace or "
			 "DTrace.  One of them may be -: standard input.",
		.status = "0; 1 if a file is damaged or the output fails; 2 for wrong usage.",
	},
	[COMMAND_TDT] = {
		.name = "",
		.usage = "tdt COMMAND [OPTION]... TARGET",
		.about = "Look at the async tasks of a process that uses the tdt library, or of "
			 "its core file, from outside.  Its memory is only read, and no thread of "
			 "it is stopped, except by --ptrace.  Some commands also make requests to "
			 "the library, if it listens in the process:",
		.status = "0; 1 if --check found something; 2 if something went wrong; 3 if a "
			  "deadlock is unproven.",
	},
};
