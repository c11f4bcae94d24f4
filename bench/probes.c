// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what a hit of a probe costs while bpftrace is attached to it: how much
 * longer a traced poll takes than without a tracer.  Beside it is a plain nop of sys/sdt.h
 * without semaphore and arguments, which was the cheapest probe before kernels patched nops of
 * five bytes.
 *
 * The library is linked in, because a tracer that is attached to a file is attached in all
 * programs that use the file.
 */

#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>
#include <tdt/tdt.h>

#include "../src/probes/probes.h"
#include "report.h"

#if TDT_PROBES

#include <sys/sdt.h>

enum { BATCHES = 21, TIMES = 1000 };

/* --- What is measured --------------------------------------------------------------- */

#define STRINGIFY(name) #name
#define STRING(name) STRINGIFY(name)
#define START STRING(TDT_USDT_PROVIDER) ":task__poll__start"
#define CLONE STRING(TDT_USDT_PROVIDER) ":task__waker__clone"

enum { CODE = 64 };

/* Its first CODE bytes, in which a site is looked for, are its own. */
#define ALONE __attribute__((noinline, aligned(64)))

static ALONE void hit_plain(void)
{
	STAP_PROBE(tdt_bench, plain);
}

/* By the same flags as the library's probes: see src/probes/probes.c. */
#ifdef TDT_NOP5
#undef _SDT_NOP
#define _SDT_NOP                                                                                   \
	.balign 8;                                                                                 \
	990 :.nops 5
#endif

static ALONE void hit_five(void)
{
	STAP_PROBE(tdt_bench, five);
}

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void no_wake(const struct tdt_waker *waker)
{
	(void)waker;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static tdt_poll_t wait_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static tdt_poll_t clone_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static struct tdt_traced waits, clones;
static struct tdt_context cx;

static void hit_plains(void)
{
	for (int i = 0; i < TIMES; i++)
		hit_plain();
}

static void hit_fives(void)
{
	for (int i = 0; i < TIMES; i++)
		hit_five();
}

static void poll_waiting(void)
{
	for (int i = 0; i < TIMES; i++)
		tdt_future_poll(&waits.future, &cx);
}

static void poll_cloning(void)
{
	for (int i = 0; i < TIMES; i++)
		tdt_future_poll(&clones.future, &cx);
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The middle of batches that are each short enough to be mostly undisturbed. */
static double once(void (*batch)(void))
{
	int64_t took[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		int64_t start = now();

		batch();
		took[i] = now() - start;
	}
	qsort(took, BATCHES, sizeof took[0], by_value);
	return (double)took[BATCHES / 2] / TIMES;
}

/* --- The tracer ----------------------------------------------------------------------- */

static char self[4096]; /* this program's file */

/* What is to be hit, and where its site is. */
struct hit {
	struct figure *figure;
	void (*batch)(void);
	const char *probe, *action;
	const void *function;
	unsigned char code[CODE]; /* with nobody attached */
	double alone;
};

static bool is_attached(const struct hit *hit)
{
	return memcmp(hit->code, hit->function, CODE) != 0;
}

static pid_t start_tracer(const struct hit *hit, size_t n)
{
	char name[] = "bpftrace", option[] = "-e", program[4 * sizeof self] = "";
	char *arguments[] = { name, option, program, NULL };
	size_t length = 0;
	pid_t tracer;

	for (size_t i = 0; i < n; i++)
		length +=
		    (size_t)snprintf(program + length, sizeof program - length,
				     "usdt:%s:%s { %s }\n", self, hit[i].probe, hit[i].action);
	tracer = fork();
	if (tracer == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would go on tracing */
		if (dup2(null, STDOUT_FILENO) != -1 && dup2(null, STDERR_FILENO) != -1)
			execvp(name, arguments);
		_exit(127);
	}
	return tracer;
}

/*
 * It is told again and again: bpftrace 0.17 sleeps on if the signal comes just before it goes to
 * sleep.
 */
static void stop_tracer(pid_t tracer)
{
	for (int i = 0; waitpid(tracer, NULL, WNOHANG) == 0; i++) {
		if (i % 100 == 0)
			kill(tracer, SIGINT);
		usleep(5000);
	}
}

/* Measure each of these, alone and attached to by one tracer. */
static bool measure(struct hit *hit, size_t n)
{
	pid_t tracer;

	for (size_t i = 0; i < n; i++) {
		memcpy(hit[i].code, hit[i].function, CODE);
		hit[i].alone = once(hit[i].batch);
	}
	tracer = start_tracer(hit, n);
	if (tracer == -1)
		return false;
	for (size_t i = 0; i < n; i++)
		while (!is_attached(&hit[i])) {
			if (waitpid(tracer, NULL, WNOHANG) != 0)
				return false;
			usleep(5000);
		}
	for (size_t i = 0; i < n; i++)
		add(hit[i].figure, once(hit[i].batch) - hit[i].alone);
	stop_tracer(tracer);
	return true;
}

static struct tdt_traced trace(tdt_poll_t (*poll)(void *state, struct tdt_context *context))
{
	struct tdt_traced traced = tdt_traced(((struct tdt_future){ NULL, poll, drop_nothing }));

	if (traced.handle == NULL)
		die("tdt_traced");
	return traced;
}

static void untrace(struct tdt_traced *traced)
{
	tdt_future_drop(&traced->future);
	tdt_handle_unref(traced->handle);
}

int main(int argc, char **argv)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, no_wake, no_wake, no_wake };
	static const struct tdt_waker waker = { &vtable };
	static struct hit counted[] = {
		{ .batch = hit_plains,
		  .probe = "tdt_bench:plain",
		  .action = "@plain = count();",
		  .function = hit_plain },
		{ .batch = hit_fives,
		  .probe = "tdt_bench:five",
		  .action = "@five = count();",
		  .function = hit_five },
		{ .batch = poll_waiting,
		  .probe = START,
		  .action = "@ = count();",
		  .function = tdt_probe_task__poll__start },
	};
	static struct hit by_task = { .batch = poll_waiting,
				      .probe = START,
				      .action = "@[arg0] = count();",
				      .function = tdt_probe_task__poll__start };
	static struct hit cloned = { .batch = poll_cloning,
				     .probe = CLONE,
				     .action = "@ = count();",
				     .function = tdt_probe_task__waker__clone };
	static struct hit stacks = { .batch = poll_cloning,
				     .probe = CLONE,
				     .action = "@[arg0, ustack()] = count();",
				     .function = tdt_probe_task__waker__clone };
	struct figure *baseline;
	bool works;

	report_start(argc, argv, "What does a hit of a probe cost that bpftrace is attached to?",
		     "ns a hit", 15);
	if (quick)
		rounds = 1; /* of four starts of bpftrace */
	counted[0].figure = baseline = figure("a plain nop of sys/sdt.h, counted", NULL);
	counted[1].figure = figure("a 5-byte nop, counted", baseline);
	counted[2].figure = figure("task-poll-start, counted", baseline);
	by_task.figure = figure("task-poll-start, counted by task", baseline);
	cloned.figure = figure("task-waker-clone, counted, with the substitute", baseline);
	stacks.figure = figure("task-waker-clone, by task and ustack", baseline);
#ifdef TDT_NOP5
	ratio_at_most(counted[1].figure, 0.6);
#else
	remark("Here all probes are plain nops.");
#endif
	cx = (struct tdt_context){ &waker };
	waits = trace(wait_poll);
	clones = trace(clone_poll);
	tdt_worker_now((uint64_t)now()); /* no clock in a poll */
	setenv("BPFTRACE_CACHE_USER_SYMBOLS", "1", 1);
	works = readlink("/proc/self/exe", self, sizeof self - 1) > 0;
	for (int i = 0; i < rounds && works; i++)
		works = measure(counted, 3) && measure(&by_task, 1) && measure(&cloned, 1) &&
			measure(&stacks, 1);
	if (!works)
		remark(geteuid() != 0
			   ? "Not measured: only root may trace."
			   : "Not measured: there is no bpftrace, or it can't attach here.");
	untrace(&waits);
	untrace(&clones);
	return report_end();
}

#else

int main(int argc, char **argv)
{
	report_start(argc, argv, "What does a hit of a probe cost that bpftrace is attached to?",
		     "ns a hit", 1);
	remark("Not measured: built without probes.");
	return report_end();
}

#endif
