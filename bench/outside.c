// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures how long it takes from outside to see where 10,000 idle tasks wait, at
 * 128 places, ten functions deep: the requests alone, and the whole program tdt, which looks up
 * names anew each time.  Beside it are the process's own dump, and gdb, which lists as many frames
 * of a thread in the same process.
 *
 * The process is a child that dumps when it is told to.  The rounds are interleaved, so that what
 * disturbs one measurement disturbs all.
 */

#include <config.h>

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/dump.h>
#include <tdt/rt/runtime.h>

#include "reader/fresh.h"
#include "report.h"

#define MOST 10000
#define PLACE_DIGITS 7
#define DEPTH (PLACE_DIGITS + 1)
#define MORE_PATIENCE (10 * INT64_C(1000000000))

static int n_tasks;

/* --- The process ---------------------------------------------------------------------- */

static struct idle {
	const struct tdt_waker *waker;
	unsigned place;
} idle[MOST];

static atomic_int polled;

/* Each digit of the place says which of two functions comes next. */
typedef tdt_poll_t wait_below(int depth, unsigned place, struct idle *task, struct tdt_context *cx);

static wait_below wait_left, wait_right;

static inline __attribute__((always_inline)) tdt_poll_t
wait_here(int depth, unsigned place, struct idle *task, struct tdt_context *cx)
{
	tdt_poll_t result = TDT_PENDING;

	if (depth > 0) {
		result = (place % 2 != 0 ? wait_right : wait_left)(depth - 1, place / 2, task, cx);
	} else if (task->waker == NULL || !tdt_waker_will_wake(task->waker, cx->waker)) {
		tdt_waker_drop(task->waker);
		task->waker = tdt_waker_clone(cx->waker);
		atomic_fetch_add(&polled, 1);
	}
	TDT_KEEP_FRAME();
	return result;
}

static __attribute__((noinline)) tdt_poll_t wait_left(int depth, unsigned place, struct idle *task,
						      struct tdt_context *cx)
{
	return wait_here(depth, place, task, cx);
}

static __attribute__((noinline)) tdt_poll_t wait_right(int depth, unsigned place, struct idle *task,
						       struct tdt_context *cx)
{
	return wait_here(depth, place, task, cx);
}

static tdt_poll_t idle_poll(void *state, struct tdt_context *cx)
{
	struct idle *task = state;

	return wait_here(PLACE_DIGITS, task->place, task, cx);
}

static void idle_drop(void *state)
{
	(void)state;
}

static void spawn_all(void)
{
	struct tdt_rt *rt = tdt_rt_new(NULL);

	if (rt == NULL)
		die("tdt_rt_new");
	for (int i = 0; i < n_tasks; i++) {
		struct tdt_handle *handle;

		idle[i].place = (unsigned)i;
		handle = tdt_rt_spawn(rt, (struct tdt_future){ &idle[i], idle_poll, idle_drop },
				      TDT_TASK_ATTR(.name = "idle"));
		if (handle == NULL)
			die("tdt_rt_spawn");
		tdt_handle_unref(handle);
	}
	while (atomic_load(&polled) < n_tasks)
		usleep(1000);
}

/* A stack with as many frames as all tasks have together. */
static __attribute__((noinline)) int go_deep(int frames)
{
	volatile int below = 0;

	if (frames == 0)
		pause();
	else
		below = go_deep(frames - 1);
	return below + 1;
}

static void *be_deep(void *arg)
{
	go_deep(n_tasks * DEPTH);
	return arg;
}

static void start_deep_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)256 << 20);
	if (pthread_create(&thread, &attr, be_deep, NULL) != 0)
		die("pthread_create");
	pthread_attr_destroy(&attr);
}

/* Dump to nowhere for each byte, and answer with how many milliseconds that took. */
static _Noreturn void dump_when_told(int commands, int answers)
{
	static const struct tdt_dump_options patient = { .size = sizeof patient,
							 .timeout_ns = MORE_PATIENCE };
	FILE *null = fopen("/dev/null", "we");
	char byte;

	if (tdt_listen(NULL) != 0)
		die("tdt_listen");
	spawn_all();
	start_deep_thread();
	while (read(commands, &byte, 1) == 1) {
		int64_t start = now();
		double took;

		if (byte == 'd' && tdt_dump_with(null, &patient) != 0)
			die("tdt_dump");
		took = (double)(now() - start) / 1e6;
		if (write(answers, &took, sizeof took) != sizeof took)
			die("write");
	}
	_exit(0);
}

struct process {
	pid_t pid;
	int commands, answers;
};

/* Have the process do something, and wait for that. */
static double tell(const struct process *process, char command)
{
	double took;

	if (write(process->commands, &command, 1) != 1 ||
	    read(process->answers, &took, sizeof took) != sizeof took)
		die("the process");
	return took;
}

static void start_process(struct process *process)
{
	int commands[2], answers[2];

	if (pipe2(commands, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
		die("pipe2");
	process->pid = fork();
	if (process->pid < 0)
		die("fork");
	if (process->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(commands[1]);
		dump_when_told(commands[0], answers[1]);
	}
	close(commands[0]);
	process->commands = commands[1];
	process->answers = answers[0];
	tell(process, 'r'); /* it is ready when it answers */
}

/* --- Requests ------------------------------------------------------------------------- */

static void request_all(pid_t pid, struct figure *figure)
{
	static const struct tdt__task_choice all;
	struct tdt__found found[TDT__REGISTRIES_MAX];
	struct tdt__answers answers = { 0 };
	struct tdt__trouble trouble;
	struct tdt__target target;
	struct tdt__door door;
	int64_t start;

	if (tdt__target_open_process(&target, pid, &trouble) != 0)
		die(trouble.text);
	if (tdt__find(&target, found) == 0)
		die("tdt__find");
	start = now();
	if (tdt__door_open(&door, &target, &found[0], &trouble) != 0 ||
	    tdt__answers_request(&answers, &door, &all, MOST, MORE_PATIENCE, &trouble) != 0)
		die(trouble.text);
	add(figure, (double)(now() - start) / 1e6);
	if (answers.n != (size_t)n_tasks)
		die("the answers");
	tdt__answers_fini(&answers);
	tdt__door_close(&door);
	tdt__target_close(&target);
}

/* --- Programs ------------------------------------------------------------------------- */

static int open_nowhere(posix_spawn_file_actions_t *actions)
{
	posix_spawn_file_actions_init(actions);
	posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
	return posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0);
}

/* Run a program to its end.  Returns whether it succeeded. */
static bool run(char *const *argv, struct figure *figure)
{
	posix_spawn_file_actions_t actions;
	int64_t start = now();
	int status = -1;
	pid_t pid;

	open_nowhere(&actions);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) == 0)
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	if (status == 0 && figure != NULL)
		add(figure, (double)(now() - start) / 1e6);
	return status == 0;
}

/* The program tdt of the build. */
static const char *path_of_tdt(void)
{
	static char path[PATH_MAX + 8];
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);

	if (n < 0)
		die("/proc/self/exe");
	own[n] = '\0';
	snprintf(path, sizeof path, "%s/../tdt", dirname(own));
	return path;
}

static void run_tdt(pid_t pid, struct figure *figure)
{
	char tdt[PATH_MAX + 8], number[16];
	char command[] = "bt", most[] = "--max-requests=100000";
	char *argv[] = { tdt, command, most, number, NULL };

	snprintf(tdt, sizeof tdt, "%s", path_of_tdt());
	snprintf(number, sizeof number, "%d", pid);
	if (!run(argv, figure))
		die(tdt);
}

/* gdb stops the process meanwhile. */
static bool run_gdb(pid_t pid, struct figure *figure)
{
	char gdb[] = "gdb", no_files[] = "-nx", batch[] = "-batch", attach[] = "-p", ex[] = "-ex",
	     /* Arguments of frames would take a hundred times as long. */
	     no_values[] = "set print entry-values no",
	     no_arguments[] = "set print frame-arguments none",
	     list[] = "thread apply all -q bt", number[16];
	char *argv[] = { gdb, no_files, batch, attach, number, ex, no_values,
			 ex, no_arguments, ex, list, NULL };

	snprintf(number, sizeof number, "%d", pid);
	return run(argv, figure);
}

static bool has_gdb(void)
{
	char gdb[] = "gdb", version[] = "--version";
	char *argv[] = { gdb, version, NULL };

	return run(argv, NULL);
}

int main(int argc, char **argv)
{
	struct figure *own, *asked, *whole, *gdb = NULL;
	struct process process;

	report_start(argc, argv, "What does it take to see from outside where 10,000 tasks wait?",
		     "ms", 11);
	n_tasks = quick ? 100 : MOST;
	own = figure("the process's own dump", NULL);
	asked = figure("requesting all trees through the door", own);
	at_most(asked, 250);
	whole = figure("tdt bt, the whole program", own);
	at_most(whole, 300);
	if (has_gdb())
		gdb = figure("gdb -batch, which lists as many frames", own);
	else
		remark("there is no gdb to compare with");
	start_process(&process);
	for (int i = 0; i < rounds; i++) {
		add(own, tell(&process, 'd'));
		request_all(process.pid, asked);
		run_tdt(process.pid, whole);
		if (gdb != NULL && !run_gdb(process.pid, gdb))
			die("gdb");
	}
	kill(process.pid, SIGKILL);
	waitpid(process.pid, NULL, 0);
	return report_end();
}
