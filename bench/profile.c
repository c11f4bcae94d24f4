// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark asks whether tdt profile tells the truth, and what that costs.
 *
 * Truth: tasks of one name wait at five places, for constant, exponential, many short times, and in
 * bursts.  They keep a ledger of how long.  The profile of each place is compared with the ledger
 * of the same time.  The watch captures each of many tasks so rarely that most trees are stale.
 *
 * Cost: of the looks, in a process with 10,000 tasks; and of the process that is looked at, which
 * is profiled every other half second.
 */

#include <config.h>

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/layout/outside.h>
#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "reader/door.h"
#include "reader/profile.h"
#include "reader/profile_places.h"
#include "report.h"
#include "waits.h"

#define HZ 19
#define MANY 10000
#define TRUTH_SECONDS 60

/* --- The processes ------------------------------------------------------------------------- */

static struct waits_ledger *ledger;
static uint64_t seed;

struct sleeper {
	struct tdt_async async;
};

static tdt_poll_t sleep_poll(void *state, struct tdt_context *cx)
{
	struct sleeper *sleeper = state;

	TDT_BEGIN(&sleeper->async, cx);
	for (;;)
		TDT_AWAIT(tdt_sleep_ms(100 + (uint64_t)(drand48() * 10000)));
	TDT_END();
}

static void start_many(void)
{
	struct tdt_rt *rt = tdt_rt_new(NULL);

	if (rt == NULL)
		die("tdt_rt_new");
	for (int i = 0; i < (quick ? 100 : MANY); i++) {
		struct tdt_future future = TDT_ASYNC_NEW(sleep_poll, (struct sleeper){ 0 });
		struct tdt_handle *handle =
			tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = "sleeper"));

		if (handle == NULL)
			die("tdt_rt_spawn");
		tdt_handle_unref(handle);
	}
}

static void start_150_waits(void)
{
	waits_start(ledger, 10, seed);
}

static void start_1500_waits(void)
{
	waits_start(ledger, 100, seed);
}

/* Fork a process that calls `start`, with this interval of its own watch ("": none). */
static pid_t start_process(void (*start)(void), const char *watch)
{
	int ready[2];
	char byte;
	pid_t pid;

	waits_ledger_init(ledger);
	if (pipe(ready) != 0)
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (watch[0] != '\0')
			tdt_watch((int64_t)atoll(watch) * 1000000, NULL);
		start();
		if (write(ready[1], "", 1) != 1)
			die("write");
		for (;;)
			pause();
	}
	if (read(ready[0], &byte, 1) != 1)
		die("read");
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void stop_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* --- Profiles ------------------------------------------------------------------------------ */

struct profiled {
	struct tdt__target target;
	struct tdt__images images;
	struct tdt__found found[TDT__REGISTRIES_MAX];
	struct tdt__door door;
	struct tdt__profile profile;
};

static void open_process(struct profiled *profiled, pid_t pid)
{
	static const struct tdt__places places;
	struct tdt__trouble trouble;

	if (tdt__target_open_process(&profiled->target, pid, &trouble) != 0 ||
	    tdt__images_init(&profiled->images, &profiled->target, &places) != 0 ||
	    tdt__find(&profiled->target, profiled->found) == 0)
		die("opening the process");
}

static void begin_profile(struct profiled *profiled, bool watch)
{
	struct tdt_outside_watch request = { .interval_ns = 10000000 };
	struct tdt__trouble trouble;

	if (tdt__profile_begin(&profiled->profile, &profiled->target, &profiled->images,
			       &profiled->found[0]) != 0)
		die("tdt__profile_begin");
	profiled->profile.watched_from = 0;
	profiled->door.connection = -1;
	if (!watch)
		return;
	if (tdt__door_open(&profiled->door, &profiled->target, &profiled->found[0], &trouble) != 0)
		die(trouble.text);
	if (tdt__door_request(&profiled->door, &request.header, TDT_OUTSIDE_WATCH, sizeof request,
			      &trouble) != 0)
		die(trouble.text);
	profiled->profile.watched_from = (uint64_t)now();
}

static void end_profile(struct profiled *profiled)
{
	if (profiled->door.connection >= 0)
		tdt__door_close(&profiled->door);
	tdt__profile_end(&profiled->profile);
}

static void close_process(struct profiled *profiled)
{
	tdt__images_fini(&profiled->images);
	tdt__target_close(&profiled->target);
}

/* Look once in each period, at a random moment of it. */
static void look_for(struct profiled *profiled, double seconds)
{
	int64_t start = now(), period = 1000000000 / HZ;

	for (int64_t i = 0; i < (int64_t)(seconds * HZ); i++) {
		int64_t left = start + i * period + (int64_t)(drand48() * (double)period) - now();

		if (left > 0)
			usleep((unsigned)(left / 1000));
		if (tdt__profile_look(&profiled->profile, (double)period) != 0)
			die("tdt__profile_look");
	}
}

/* Let the tasks begin to wait. */
static void settle(void)
{
	usleep(quick ? 100000 : 1000000);
}

/* --- Truth --------------------------------------------------------------------------------- */

static enum waits_place place_named(const char *function)
{
	int place = 0;

	while (place < WAITS_PLACES &&
	       (function == NULL || strcmp(function, waits_function[place]) != 0))
		place++;
	return (enum waits_place)place;
}

/* The function of the program in which the task waits: the frames within are tdt's. */
static enum waits_place place_of(const struct tdt__profile_place *place)
{
	const struct tdt_node *node = place->leaf;
	enum waits_place found = WAITS_PLACES;

	while (node != NULL && found == WAITS_PLACES) {
		found = place_named(tdt_node_frame(node)->function);
		node = tdt_node_parent(node);
	}
	return found;
}

/* Share by share, in percentage points. */
static double worst_error(const double *told, const uint64_t *before, const uint64_t *after)
{
	double all_told = 0, all_true = 0, worst = 0, off;

	for (int i = 0; i < WAITS_PLACES; i++) {
		all_told += told[i];
		all_true += (double)(after[i] - before[i]);
	}
	for (int i = 0; i < WAITS_PLACES; i++) {
		off = 100 * told[i] / all_told - 100 * (double)(after[i] - before[i]) / all_true;
		remark("%s: %.2f %%, %+.2f points", waits_function[i],
		       100 * (double)(after[i] - before[i]) / all_true, off);
		worst = fmax(worst, fabs(off));
	}
	return worst;
}

static void sum_places(struct profiled *profiled, double told[WAITS_PLACES + 1])
{
	struct tdt__profile_sum *sum = &profiled->profile.sum;
	struct tdt__profile_places places;

	if (tdt__profile_conclude(sum) != 0)
		die("tdt__profile_conclude");
	tdt__profile_open_images(sum, &profiled->images);
	if (tdt__profile_places_find(&places, sum, UINT64_MAX) != 0)
		die("tdt__profile_places_find");
	memset(told, 0, (WAITS_PLACES + 1) * sizeof told[0]);
	for (size_t i = 0; i < places.n; i++)
		if (places.place[i].group->state == TDT__PROFILE_WAITING)
			told[place_of(&places.place[i])] += places.place[i].ns;
	tdt__profile_places_fini(&places);
}

static void measure_truth(struct profiled *profiled, void (*start)(void), struct figure *error,
			  struct figure *stale)
{
	pid_t pid = start_process(start, "10");
	uint64_t before[WAITS_PLACES], after[WAITS_PLACES];
	double told[WAITS_PLACES + 1];
	const struct tdt__profile_sum *sum = &profiled->profile.sum;

	open_process(profiled, pid);
	settle();
	begin_profile(profiled, false);
	waits_ledger_read(ledger, before);
	look_for(profiled, quick ? 0.5 : TRUTH_SECONDS);
	waits_ledger_read(ledger, after);
	sum_places(profiled, told);
	add(error, worst_error(told, before, after));
	add(stale, 100 * sum->stale_ns / sum->state_ns[TDT__PROFILE_WAITING]);
	end_profile(profiled);
	close_process(profiled);
	stop_process(pid);
}

/* --- Cost ---------------------------------------------------------------------------------- */

static double cpu_of(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		die("clock_gettime");
	return (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
}

static void measure_looks(struct profiled *profiled, struct figure *looks)
{
	pid_t pid = start_process(start_many, "");

	open_process(profiled, pid);
	begin_profile(profiled, true);
	look_for(profiled, quick ? 0.2 : 1); /* the first look reads all trees */
	for (int i = 0; i < (quick ? 1 : 5); i++) {
		double cpu = cpu_of(getpid());
		int64_t start = now();

		look_for(profiled, quick ? 0.2 : 2);
		add(looks, 100 * (cpu_of(getpid()) - cpu) / (double)(now() - start));
	}
	end_profile(profiled);
	close_process(profiled);
	stop_process(pid);
}

static double cpu_in_turn(pid_t pid, struct profiled *profiled, bool looks)
{
	double seconds = quick ? 0.1 : 0.5, cpu;
	int64_t start;

	if (looks)
		begin_profile(profiled, true);
	cpu = cpu_of(pid);
	start = now();
	if (looks)
		look_for(profiled, seconds);
	else
		usleep((unsigned)(seconds * 1e6));
	cpu = (cpu_of(pid) - cpu) / (double)(now() - start);
	if (looks)
		end_profile(profiled);
	return cpu;
}

static void measure_process(struct profiled *profiled, struct figure *more)
{
	pid_t pid = start_process(start_150_waits, "");

	open_process(profiled, pid);
	settle();
	for (int i = 0; i < (quick ? 3 : 60); i++) {
		double alone = cpu_in_turn(pid, profiled, false);

		add(more, 100 * (cpu_in_turn(pid, profiled, true) - alone));
	}
	close_process(profiled);
	stop_process(pid);
}

int main(int argc, char **argv)
{
	static struct profiled profiled;
	struct figure *few, *few_stale, *many, *many_stale, *looks, *more;

	report_start(argc, argv, "Does tdt profile tell the truth, and what does it cost?", "%", 1);
	ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (ledger == MAP_FAILED)
		die("mmap");
	seed = getenv("TDT_TEST_SEED") != NULL ? strtoull(getenv("TDT_TEST_SEED"), NULL, 10)
					      : (uint64_t)now();
	srand48((long)seed);
	remark("TDT_TEST_SEED=%" PRIu64, seed);
	few = figure("150 tasks: the worst place, points off", NULL);
	few_stale = figure("  of the waiting time without a fresh tree", NULL);
	many = figure("1,500 tasks: the worst place, points off", NULL);
	many_stale = figure("  of the waiting time without a fresh tree ", NULL);
	looks = figure("19 looks a second at 10,000 tasks: of one CPU", NULL);
	more = figure_uncertain("the process while it is profiled: more of one CPU");
	at_most(few, 1);
	at_most(many, 1);
	at_most(looks, 3);
	at_most(more, 1);
	measure_truth(&profiled, start_150_waits, few, few_stale);
	measure_truth(&profiled, start_1500_waits, many, many_stale);
	measure_looks(&profiled, looks);
	measure_process(&profiled, more);
	return report_end();
}
