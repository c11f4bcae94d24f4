// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt top: what the tasks of a process do, round by round.
 *
 * Each round is a look at the target by a child process (top_look.h), so that a target that is made
 * to do harm makes a round fail, and the screen stays.  The child fills in the round in memory that
 * it shares with this process.  Meanwhile this process waits for keys, for the child, and for the
 * end of the target.  If looks take long, there are fewer of them, so that they take no more than
 * an eighth of a CPU.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/processes.h"
#include "cli/tdt.h"
#include "cli/top_look.h"
#include "cli/top_screen.h"
#include "tree-printer/terminal.h"

#define PLAIN_LINES 40 /* of a round that goes to no terminal */
#define SHARE 8        /* looks take one part in so many of the time, at most */

struct top_command {
	struct options options; /* no `rounds`: without end */
	struct top_choice choice;
	char target[16]; /* the number of the process */
	int process;     /* a pidfd, which tells of its end; -1: the kernel has none */

	struct top_round *last, *taken; /* `taken` is shown, if there is one */
	bool has_round, has_last;
	struct top_look look; /* `round` is shared with the child */
	struct apart apart, watcher;
	bool watches;          /* a child has the tasks watched */
	bool looks;            /* a child looks */
	bool again;            /* another child shall, for the same round */
	uint64_t started;      /* when the round began */
	uint64_t next;         /* when the next one is due */
	uint64_t done, failed; /* rounds */
	int status;          /* of the last look */
	bool on_terminal;
};

static void top_options(struct top_command *command, int argc, char **argv)
{
	struct options *options = &command->options;
	struct top_question *question = &command->choice.question;

	read_command_line(COMMAND_TOP, options, &argc, &argv, TARGET_OR_NONE);
	if (options->name != NULL && strlen(options->name) >= sizeof question->filter)
		bad_usage("too long a name: ", options->name);
	if (options->name != NULL)
		strcpy(question->filter, options->name);
	question->view = (enum top_view)options->view;
	question->sort = (enum top_sort)options->sort;
	question->requests = !options->no_request;
	question->open = options->task != TASK_NOT_GIVEN;
	question->id = question->open ? options->task : 0;
	command->choice.interval = options->interval;
	command->choice.watch = options->keeps_watch;
}

static unsigned look_seconds(const struct top_command *command)
{
	return timeout_seconds(&command->options, BOUND_SECONDS);
}

static void set_trouble(struct top_command *command, const char *text)
{
	snprintf(command->choice.trouble, sizeof command->choice.trouble, "%s", text);
}

static void start_look(struct top_command *command)
{
	memset(command->look.round, 0, sizeof *command->look.round);
	command->look.options = &command->options;
	command->look.question = command->choice.question;
	command->look.last = command->has_round ? command->taken : NULL;
	if (!command->again)
		command->started = tdt__clock();
	command->choice.anew = command->again = false;
	command->looks = apart_start(&command->apart, top_look, &command->look,
				     look_seconds(command)) == 0;
	if (!command->looks) {
		command->failed++;
		set_trouble(command, "no process can be started to look at the target");
		command->next = command->started + command->choice.interval;
	}
}

/* Read what the child says of its trouble, which its report has made harmless: the first line. */
static void read_trouble(struct top_command *command, int file)
{
	char text[TOP_TEXT] = "";
	ssize_t n = pread(file, text, sizeof text - 1, 0);
	const char *words = text;

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (strncmp(words, "tdt: ", 5) == 0)
		words += 5;
	set_trouble(command, words);
}

static void take_round(struct top_command *command)
{
	struct top_round *spare = command->last;

	command->last = command->taken;
	command->taken = spare;
	command->has_last = command->has_round;
	memcpy(command->taken, command->look.round, sizeof *command->taken);
	top_round_take(command->taken, command->has_last ? command->last : NULL);
	command->has_round = true;
	command->done++;
	top_follow(&command->choice, command->taken);
}

/*
 * The look was ended.  If it has crashed, the round goes on without the files of the target, as in
 * tdt bt, in the rest of its time.
 */
static bool note_crash(struct top_command *command, const char *why, bool too_long)
{
	bool again = !too_long && !command->options.no_files;
	char text[TOP_TEXT];

	snprintf(text, sizeof text, "reading the target %s", why);
	set_trouble(command, text);
	command->options.no_files = true;
	return again;
}

static uint64_t children_cpu(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_CHILDREN, &usage);
	return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * TDT__SECOND +
	       ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}

static void end_look(struct top_command *command, bool too_long)
{
	const char *why = "";
	uint64_t before = children_cpu(), took;

	command->status = apart_end(&command->apart, too_long, &why);
	read_trouble(command, command->apart.file);
	close(command->apart.file);
	command->looks = false;
	command->again = command->status < 0 && note_crash(command, why, too_long);
	if (command->status == EXIT_SUCCESS)
		take_round(command);
	else if (!command->again)
		command->failed++;
	took = children_cpu() - before;
	command->next = command->started +
			(SHARE * took > command->choice.interval ? SHARE * took
								 : command->choice.interval);
}

#define WATCHER_SECONDS 86400 /* of CPU time, of which it takes none */

static void end_watcher(struct top_command *command)
{
	const char *why = "";

	if (!command->watches)
		return;
	command->watches = false;
	apart_end(&command->watcher, true, &why);
	close(command->watcher.file);
}

/* The watch lasts as long as the child has its connection. */
static void keep_watch(struct top_command *command)
{
	struct pollfd end = { .fd = command->watches ? command->watcher.pipe : -1,
			      .events = POLLIN };

	if (poll(&end, 1, 0) > 0 && end.revents != 0) { /* the watch was refused */
		read_trouble(command, command->watcher.file);
		command->choice.watch = false;
	}
	if (command->watches && !command->choice.watch)
		end_watcher(command);
	else if (!command->watches && command->choice.watch)
		command->watches = apart_start(&command->watcher, top_watch, &command->options,
					       WATCHER_SECONDS) == 0;
}

static volatile sig_atomic_t stopped_by; /* the signal that ends the program */

static void note_signal(int signo)
{
	stopped_by = signo;
}

static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
#define ENDING (sizeof ending_signals / sizeof ending_signals[0])

/*
 * The signals are blocked except while the program waits, so that none of them is overlooked.
 * `waiting` becomes the mask for that time.
 */
static void handle_signals(sigset_t *waiting)
{
	const struct sigaction action = { .sa_handler = note_signal };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, waiting);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGWINCH);
	for (size_t i = 0; i < ENDING; i++) {
		struct sigaction before;

		sigaction(ending_signals[i], NULL, &before);
		if (before.sa_handler != SIG_IGN)
			sigaction(ending_signals[i], &action, NULL);
		sigaddset(&blocked, ending_signals[i]);
		sigdelset(waiting, ending_signals[i]);
	}
	sigaction(SIGPIPE, &ignore, NULL); /* a write fails instead */
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigdelset(waiting, SIGWINCH);
}

static bool is_due(const struct top_command *command)
{
	return !command->looks && !command->choice.ended &&
	       (command->choice.anew || command->again ||
		(!command->choice.paused && tdt__clock() >= command->next));
}

/* When something is to be done without an event; UINT64_MAX: never. */
static uint64_t wake_time(const struct top_command *command)
{
	if (command->again)
		return 0;
	if (command->looks)
		return command->started + (uint64_t)look_seconds(command) * TDT__SECOND;
	return command->choice.paused || command->choice.ended ? UINT64_MAX : command->next;
}

static void wait_for_event(struct top_command *command, const sigset_t *waiting)
{
	struct pollfd events[3] = {
		{ .fd = command->looks ? command->apart.pipe : -1, .events = POLLIN },
		{ .fd = command->choice.ended ? -1 : command->process, .events = POLLIN },
		{ .fd = command->on_terminal ? STDIN_FILENO : -1, .events = POLLIN },
	};
	uint64_t until = wake_time(command), now = tdt__clock();
	uint64_t left = until > now ? until - now : 0;
	const struct timespec time = tdt__timespec(left);

	if (ppoll(events, 3, until != UINT64_MAX ? &time : NULL, waiting) < 0)
		return;
	if (events[2].revents & (POLLHUP | POLLERR | POLLNVAL))
		command->choice.quit = true; /* the terminal is gone */
	if (events[1].revents != 0)
		command->choice.ended = true;
	if (events[0].revents != 0)
		end_look(command, false);
	else if (command->looks && tdt__clock() >= wake_time(command))
		end_look(command, true);
}

static void show_screen(const struct top_command *command)
{
	struct tdt__string text = { 0 };
	struct top_size size;

	top_terminal_size(&size);
	top_draw(&text, &command->choice, command->has_round ? command->taken : NULL, &size,
		 &command->options.print);
	if (!text.failed)
		top_terminal_show(text.bytes, text.n);
	tdt__string_free(&text);
}

static void take_keys(struct top_command *command)
{
	int key;

	while ((key = top_terminal_key()) >= 0)
		top_press(&command->choice, key, command->has_round ? command->taken : NULL);
}

/* Nothing can be shown: the first round has failed. */
static bool is_hopeless(const struct top_command *command)
{
	return !command->looks && !command->has_round &&
	       (command->choice.ended || command->failed > 0);
}

/* A round that has failed is one, too: otherwise `-n 1` might last for ever. */
static bool had_all_rounds(const struct top_command *command)
{
	uint64_t rounds = command->options.rounds;

	return rounds != 0 && command->done + command->failed >= rounds;
}

static int print_round(const struct top_command *command)
{
	const struct top_size size = { .height = PLAIN_LINES };
	struct tdt__string text = { 0 };
	struct tdt__out out = { .file = stdout };

	if (command->options.print.format == TDT_PRINT_JSON) {
		top_json(&out, command->taken);
	} else {
		top_draw(&text, &command->choice, command->taken, &size, &command->options.print);
		tdt__string_puts(&text, "\n");
		tdt__out_take(&out, &text);
	}
	return tdt__out_end(&out);
}

/*
 * Without a terminal, each round is printed as text, and the end of the process is that of the
 * rounds.  Without a first round, a failure is the end.
 */
static int run_rounds_until_end(struct top_command *command, const sigset_t *waiting)
{
	bool screen = command->on_terminal;
	uint64_t printed = 0;
	int error = 0;

	while (error == 0 && !command->choice.quit && stopped_by == 0 && !is_hopeless(command) &&
	       !had_all_rounds(command) && (screen || !command->choice.ended)) {
		keep_watch(command);
		if (is_due(command))
			start_look(command);
		if (screen)
			show_screen(command);
		wait_for_event(command, waiting);
		if (screen)
			take_keys(command);
		else if (command->done > printed)
			error = print_round(command);
		printed = command->done;
	}
	return error;
}

static int open_process(struct top_command *command)
{
	int status;
	pid_t pid;

	status = choose_process(command->options.target, &pid);
	if (status != PROGRAM_GOES_ON)
		return status;
	snprintf(command->target, sizeof command->target, "%d", pid);
	command->options.target = command->target;
	command->process = (int)syscall(SYS_pidfd_open, pid, 0);
	return PROGRAM_GOES_ON;
}

static int allocate_rounds(struct top_command *command)
{
	void *shared = mmap(NULL, sizeof *command->look.round, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	command->last = calloc(1, sizeof *command->last);
	command->taken = calloc(1, sizeof *command->taken);
	if (shared == MAP_FAILED)
		return -ENOMEM;
	command->look.round = shared;
	return command->last != NULL && command->taken != NULL ? 0 : -ENOMEM;
}

static void free_rounds(struct top_command *command)
{
	end_watcher(command);
	if (command->looks)
		end_look(command, true);
	if (command->look.round != NULL)
		munmap(command->look.round, sizeof *command->look.round);
	if (command->process >= 0)
		close(command->process);
	free(command->last);
	free(command->taken);
}

/* Say what there is no screen for any more.  Returns the exit status. */
static int say_farewell(const struct top_command *command, int error)
{
	if (error != 0)
		return report_output(NULL, error);
	if (command->choice.ended && !command->choice.quit)
		return report_ended();
	if ((!command->has_round || (command->failed > 0 && !command->on_terminal)) &&
	    command->choice.trouble[0] != '\0' && !command->choice.quit)
		return report_trouble("%s", command->choice.trouble);
	return EXIT_SUCCESS;
}

/* End as the signal ends a program that does not handle it. */
static void end_by_signal(void)
{
	sigset_t one;

	if (stopped_by == 0)
		return;
	signal(stopped_by, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, stopped_by);
	raise(stopped_by);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static int run_rounds(struct top_command *command)
{
	sigset_t waiting;
	int error;

	command->on_terminal =
		command->options.print.format != TDT_PRINT_JSON &&
		top_terminal_begin(command->options.print.color == TDT_PRINT_YES);
	handle_signals(&waiting);
	error = run_rounds_until_end(command, &waiting);
	top_terminal_end();
	return error;
}

int command_top(int argc, char **argv)
{
	struct top_command command = { .options = { .task = TASK_NOT_GIVEN,
						    .interval = TDT__SECOND },
				       .process = -1 };
	int status;

	top_options(&command, argc, argv);
	if (command.options.target == NULL) {
		tdt__terminal_choose(&command.options.print, stdout);
		return processes_list(&command.options);
	}
	status = open_process(&command);
	if (status != PROGRAM_GOES_ON)
		return status;
	tdt__terminal_choose(&command.options.print, stdout);
	if (allocate_rounds(&command) != 0) {
		status = report_no_memory();
	} else {
		int error = run_rounds(&command);

		status = say_farewell(&command, error);
	}
	free_rounds(&command);
	end_by_signal();
	return status;
}
