// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures a request to all tasks of a process, and the printing of the answers.
 * The tasks are idle and ten functions deep.  They all wait at the same place, at a hundred
 * places, or each at its own.  Calls of tdt_backtrace() for one task after the other are measured
 * beside it, and so is the growth with the number of tasks.
 *
 * Each kind of process is a child that makes its tasks and then measures what it is told to.  So
 * all kinds can be measured in turn, and the first dump of a process can be measured many times.
 */

#include <config.h>

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tdt/dump.h>
#include <tdt/rt/runtime.h>

#include "report.h"

#define DEPTH 10
#define MOST 100000
#define DIFFERENT 0 /* as the number of places: each task has its own */

/* What a process is to be like. */
struct kind {
	unsigned workers;
	int tasks;
	int places; /* that they wait at; DIFFERENT: each at its own */
	bool names; /* each task its own, or all the same */
};

/* What it is told to measure. */
enum measure { ASK, TEXT, TO_PIPE, JSON, FOLDED, ONE_BY_ONE, PRINT_EACH, SNAPSHOT_BYTES };

/* --- Tasks that wait for ever ------------------------------------------------ */

static struct idle {
	const struct tdt_waker *waker; /* touched in polls and in the drop alone */
	struct tdt_handle *handle;
	uint32_t place;
} idle[MOST];

static atomic_int polled;

/*
 * A digit of the task's place says which of three functions comes next.  There are 9 digits, and so
 * 19,683 places.
 */
typedef tdt_poll_t wait_below(int depth, uint32_t place, struct idle *task, struct tdt_context *cx);

static wait_below wait_a, wait_b, wait_c;

static wait_below *const wait_in[] = { wait_a, wait_b, wait_c };

static inline __attribute__((always_inline)) tdt_poll_t
wait_here(int depth, uint32_t place, struct idle *task, struct tdt_context *cx)
{
	tdt_poll_t result = TDT_PENDING;

	if (depth > 0) {
		result = wait_in[place % 3](depth - 1, place / 3, task, cx);
	} else if (task->waker == NULL || !tdt_waker_will_wake(task->waker, cx->waker)) {
		tdt_waker_drop(task->waker);
		task->waker = tdt_waker_clone(cx->waker);
		atomic_fetch_add(&polled, 1);
	}
	TDT_KEEP_FRAME();
	return result;
}

#define WAIT_IN(name)                                                                              \
	static __attribute__((noinline)) tdt_poll_t name(                                          \
	    int depth, uint32_t place, struct idle *task, struct tdt_context *cx)                  \
	{                                                                                          \
		return wait_here(depth, place, task, cx);                                          \
	}

WAIT_IN(wait_a)
WAIT_IN(wait_b)
WAIT_IN(wait_c)

static tdt_poll_t idle_poll(void *state, struct tdt_context *cx)
{
	struct idle *task = state;
	tdt_poll_t result = wait_here(DEPTH - 1, task->place, task, cx);

	TDT_KEEP_FRAME();
	return result;
}

static void idle_drop(void *state)
{
	struct idle *task = state;

	tdt_waker_drop(task->waker);
	task->waker = NULL;
}

static struct tdt_rt *start(const struct kind *kind)
{
	struct tdt_rt *rt = tdt_rt_new(
	    &(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), kind->workers });
	char name[16] = "idle";

	if (rt == NULL)
		die("tdt_rt_new");
	for (int i = 0; i < kind->tasks; i++) {
		idle[i].place = (uint32_t)(kind->places != DIFFERENT ? i % kind->places : i);
		if (kind->names)
			snprintf(name, sizeof name, "task %d", i);
		idle[i].handle =
		    tdt_rt_spawn(rt, (struct tdt_future){ &idle[i], idle_poll, idle_drop },
				 TDT_TASK_ATTR(.name = name));
		if (idle[i].handle == NULL)
			die("tdt_rt_spawn");
	}
	while (atomic_load(&polled) < kind->tasks)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	return rt;
}

static void stop(struct tdt_rt *rt, const struct kind *kind)
{
	tdt_rt_free(rt);
	for (int i = 0; i < kind->tasks; i++)
		tdt_handle_unref(idle[i].handle);
}

/* --- What is measured, in a child ----------------------------------------------- */

#define PATIENCE INT64_C(60000000000)

static const struct tdt_dump_options patient = { .size = sizeof patient, .timeout_ns = PATIENCE };

static FILE *open_null(void)
{
	FILE *null = fopen("/dev/null", "we");

	if (null == NULL)
		die("/dev/null");
	return null;
}

static void ask_one_by_one(const struct kind *kind)
{
	for (int i = 0; i < kind->tasks; i++) {
		struct tdt_trace *trace = tdt_backtrace_with(idle[i].handle,
		&(const struct tdt_backtrace_options){ .size = sizeof(struct tdt_backtrace_options),
						.timeout_ns = PATIENCE });

		if (trace == NULL)
			die("tdt_backtrace_with");
		tdt_trace_free(trace);
	}
}

/* A worker may be held up in a poll: then that task is told as running. */
static const struct tdt_snapshot *ask_all(const struct kind *kind)
{
	const struct tdt_snapshot *taken = tdt_snapshot_take(&patient);
	size_t answered;

	if (taken == NULL)
		die("tdt_snapshot_take");
	answered = taken->fresh + taken->running;
	if (answered != (size_t)kind->tasks) {
		fprintf(stderr, "only %zu of %d tasks answered\n", answered, kind->tasks);
		exit(1);
	}
	return taken;
}

/* For every task, of those that are alike too, its line and its tree. */
static void print_each(const struct kind *kind, FILE *out)
{
	const struct tdt_snapshot *taken = ask_all(kind);

	for (size_t i = 0; i < taken->n_groups; i++)
		for (size_t k = 0; k < taken->groups[i]->n; k++)
			if (tdt_trace_print(taken->groups[i]->trace, out) != 0)
				die("tdt_trace_print");
	tdt_snapshot_free(taken);
}

static void dump(FILE *out, enum tdt_print_format format)
{
	const struct tdt_print_options print = { .size = sizeof print,
						 .format = format,
						 .utf8 = TDT_PRINT_YES };
	struct tdt_dump_options options = patient;

	options.print = &print;
	if (tdt_dump_with(out, &options) != 0)
		die("tdt_dump");
}

static void *read_all(void *argument)
{
	static char bytes[65536];
	int *fd = argument;

	while (read(*fd, bytes, sizeof bytes) > 0)
		;
	return NULL;
}

/* Until all of it was read. */
static void dump_to_pipe(void)
{
	pthread_t reader;
	FILE *out;
	int fds[2];

	if (pipe(fds) != 0 || pthread_create(&reader, NULL, read_all, &fds[0]) != 0)
		die("pipe");
	out = fdopen(fds[1], "w");
	if (out == NULL)
		die("fdopen");
	dump(out, TDT_PRINT_TEXT);
	fclose(out);
	pthread_join(reader, NULL);
	close(fds[0]);
}

static double allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return (double)info.uordblks + (double)info.hblkhd;
}

static double snapshot_bytes(const struct kind *kind)
{
	double before = allocated(), after;
	const struct tdt_snapshot *taken = ask_all(kind);

	after = allocated();
	tdt_snapshot_free(taken);
	return (after - before) / kind->tasks;
}

/* In ms, but for bytes. */
static double measure(const struct kind *kind, enum measure what)
{
	FILE *null = open_null();
	int64_t begin = now();
	double took;

	switch (what) {
	case ASK:
		tdt_snapshot_free(ask_all(kind));
		break;
	case TEXT:
		dump(null, TDT_PRINT_TEXT);
		break;
	case TO_PIPE:
		dump_to_pipe();
		break;
	case JSON:
		dump(null, TDT_PRINT_JSON);
		break;
	case FOLDED:
		dump(null, TDT_PRINT_FOLDED);
		break;
	case ONE_BY_ONE:
		ask_one_by_one(kind);
		break;
	case PRINT_EACH:
		print_each(kind, null);
		break;
	default:
		fclose(null);
		return snapshot_bytes(kind);
	}
	took = (double)(now() - begin) / 1e6;
	fclose(null);
	return took;
}

/* --- Children ------------------------------------------------------------------- */

struct child {
	struct kind kind;
	pid_t pid;
	int to, from;
};

static _Noreturn void serve(const struct kind *kind, int from, int to)
{
	struct tdt_rt *rt = start(kind);
	unsigned char what;

	while (read(from, &what, 1) == 1) {
		double value = measure(kind, what);

		if (write(to, &value, sizeof value) != sizeof value)
			die("write");
	}
	stop(rt, kind);
	exit(EXIT_SUCCESS);
}

/* Others that were born before must not hold its pipe open: so none knows any but its own. */
static void bear(struct child *child)
{
	int down[2], up[2];

	if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
		die("pipe2");
	child->pid = fork();
	if (child->pid < 0)
		die("fork");
	if (child->pid == 0) {
		for (int fd = 3; fd < 256; fd++)
			if (fd != down[0] && fd != up[1])
				close(fd);
		serve(&child->kind, down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	child->to = down[1];
	child->from = up[0];
}

static double tell(const struct child *child, enum measure what)
{
	unsigned char byte = (unsigned char)what;
	double value;

	if (write(child->to, &byte, 1) != 1 ||
	    read(child->from, &value, sizeof value) != sizeof value)
		die("a child");
	return value;
}

static void bury(const struct child *child)
{
	int status;

	close(child->to);
	close(child->from);
	if (waitpid(child->pid, &status, 0) != child->pid || status != 0)
		die("a child");
}

/* What a process that was just born takes for the first. */
static double tell_new(const struct child *kind, enum measure what)
{
	struct child child = *kind;
	double value;

	bear(&child);
	value = tell(&child, what);
	bury(&child);
	return value;
}

/* --- All of it ---------------------------------------------------------------------- */

static struct child alike = { { 2, 10000, 1, false }, 0, 0, 0 };
static struct child one_worker = { { 1, 10000, 1, false }, 0, 0, 0 };
static struct child named = { { 2, 10000, 1, true }, 0, 0, 0 };
static struct child hundred = { { 2, 10000, 100, false }, 0, 0, 0 };
static struct child different = { { 2, 10000, DIFFERENT, true }, 0, 0, 0 };
static struct child few = { { 2, 1000, 1, false }, 0, 0, 0 };
static struct child many = { { 2, MOST, 1, false }, 0, 0, 0 };
static struct child many_one_worker = { { 1, MOST, 1, false }, 0, 0, 0 };

static struct child *const children[] = { &alike,     &one_worker, &named, &hundred,
					  &different, &few,	   &many,  &many_one_worker };
#define CHILDREN (sizeof children / sizeof children[0])

/* A line of the table. */
struct line {
	struct figure *figure;
	const struct child *child;
	enum measure what;
	bool first;   /* of a process */
	double scale; /* of the value */
};

static struct line lines[64];
static int n_lines;

static struct figure *line(const char *name, struct figure *baseline, const struct child *child,
			   enum measure what)
{
	struct figure *made = figure(name, baseline);

	lines[n_lines++] = (struct line){ made, child, what, false, 1 };
	return made;
}

static struct figure *first_line(const char *name, const struct child *child, enum measure what)
{
	struct figure *made = line(name, NULL, child, what);

	lines[n_lines - 1].first = true;
	return made;
}

/* In microseconds a task. */
static struct figure *line_a_task(const char *name, struct figure *baseline,
				  const struct child *child, enum measure what)
{
	struct figure *made = line(name, baseline, child, what);

	lines[n_lines - 1].scale = 1e3 / child->kind.tasks;
	in_unit(made, "us a task");
	return made;
}

static void list_lines(void)
{
	struct figure *each, *one, *two;

	remark("10,000 tasks that wait at one place, 2 workers:");
	each = line("tdt_backtrace() of one after the other", NULL, &alike, ONE_BY_ONE);
	at_most(line("tdt_snapshot_take()", each, &alike, ASK), 10);
	at_most(line("tdt_dump_with() to /dev/null", each, &alike, TEXT), 30);
	at_most(line("tdt_dump_with() to a pipe", each, &alike, TO_PIPE), 30);
	at_most(first_line("tdt_dump_with(), the first of a process", &alike, TEXT), 30);
	line("tdt_dump_with() as JSON", each, &alike, JSON);
	line("tdt_dump_with() as folded stacks", each, &alike, FOLDED);
	at_most(line("tdt_snapshot_take(), tdt_trace_print() for each", each, &alike, PRINT_EACH),
		150);
	remark("10,000 with names of their own:");
	at_most(line("tdt_snapshot_take()", NULL, &named, ASK), 10);
	at_most(line("tdt_dump_with()", NULL, &named, TEXT), 30);
	remark("10,000 that wait at 100 places:");
	at_most(line("tdt_snapshot_take()", NULL, &hundred, ASK), 10);
	at_most(line("tdt_dump_with()", NULL, &hundred, TEXT), 30);
	line("tdt_dump_with() as JSON", NULL, &hundred, JSON);
	remark("10,000 that wait each at its own place, with names:");
	line("tdt_snapshot_take()", NULL, &different, ASK);
	at_most(line("tdt_dump_with()", NULL, &different, TEXT), 150);
	at_most(line("tdt_dump_with() to a pipe", NULL, &different, TO_PIPE), 150);
	at_most(first_line("tdt_dump_with(), the first of a process", &different, TEXT), 150);
	line("tdt_dump_with() as JSON", NULL, &different, JSON);
	remark("By how many there are, at one place:");
	two = line_a_task("tdt_snapshot_take() of 10,000, 2 workers", NULL, &alike, ASK);
	line_a_task("tdt_snapshot_take() of 1,000, 2 workers", two, &few, ASK);
	ratio_at_most(line_a_task("tdt_snapshot_take() of 100,000, 2 workers", two, &many, ASK),
		      1.2);
	one = line_a_task("tdt_snapshot_take() of 10,000, 1 worker", NULL, &one_worker, ASK);
	ratio_at_most(
	    line_a_task("tdt_snapshot_take() of 100,000, 1 worker", one, &many_one_worker, ASK),
	    1.2);
	two = line_a_task("tdt_dump_with() of 10,000, 2 workers", NULL, &alike, TEXT);
	ratio_at_most(line_a_task("tdt_dump_with() of 100,000, 2 workers", two, &many, TEXT), 1.2);
	in_unit(line("memory of a snapshot", NULL, &alike, SNAPSHOT_BYTES), "bytes a task");
}

int main(int argc, char **argv)
{
	report_start(argc, argv,
		     "What does it take to ask all tasks where they wait, and to print it?", "ms",
		     11);
	for (size_t i = 0; quick && i < CHILDREN; i++)
		children[i]->kind.tasks /= 100;
	list_lines();
	for (size_t i = 0; i < CHILDREN; i++)
		bear(children[i]);
	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < n_lines; k++) {
			double (*how)(const struct child *child, enum measure what) =
			    lines[k].first ? tell_new : tell;

			add(lines[k].figure, lines[k].scale * how(lines[k].child, lines[k].what));
		}
	for (size_t i = 0; i < CHILDREN; i++)
		bury(children[i]);
	return report_end();
}
