// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt set: have a process watch its tasks, or record what they do, for a time.  The process does so
 * as long as this program is connected to it, so that nothing is left behind, however this program
 * ends.
 */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/tdt.h"
#include "cli/wait.h"
#include "reader/door.h"
#include "tree-printer/words.h"

struct set_command {
	struct options options; /* `duration` 0: until a signal */
	uint64_t watch_ns;      /* 0: not asked for */
	uint64_t ring_size;     /* bytes; 0: not asked for */
};

/* A process may have several copies of the library, with a door each. */
struct set_doors {
	struct tdt__door door[TDT__REGISTRIES_MAX];
	nfds_t n;
};

static void set_setting(struct set_command *command, const char *setting)
{
	bool known = false;

	if (tdt__starts_with(setting, "watch=")) {
		set_duration(&command->watch_ns, setting + strlen("watch="));
		known = command->watch_ns != 0;
	} else if (tdt__starts_with(setting, "record=")) {
		known = tdt__text_bytes(setting + strlen("record="), &command->ring_size) &&
			command->ring_size != 0;
	}
	if (!known)
		bad_usage("neither watch=TIME, as watch=10ms, nor record=SIZE, as record=16M: ",
			  setting);
}

/* Print the settings that are in force, as the library has answered. */
static void print_in_force(const struct set_command *command, uint64_t watch_ns, bool by_program)
{
	bool recording = command->ring_size != 0;

	if (command->options.print.format == TDT_PRINT_JSON) {
		printf("{\"tdt\":1,\"set\":{\"watch_ns\":%" PRIu64 ",\"recording\":%s}}\n",
		       watch_ns, recording ? "true" : "false");
		return;
	}
	if (watch_ns != 0)
		printf("the tasks are watched: every %s\n", TDT__DURATION(watch_ns));
	if (recording)
		printf("the tasks are recorded%s\n",
		       by_program ? ", as the program itself has chosen" : "");
}

static int set_one(const struct set_command *command, struct set_doors *doors,
		   const struct outside *outside, size_t registry, struct tdt__trouble *trouble)
{
	struct tdt_outside_watch watch = { .interval_ns = command->watch_ns };
	struct tdt_outside_record record = { .ring_size = command->ring_size, .on = 1 };
	struct tdt__door *door = &doors->door[doors->n];
	int error = tdt__door_open(door, &outside->target, &outside->found[registry], trouble);

	if (error != 0)
		return error;
	doors->n++;
	if (command->watch_ns != 0)
		error = tdt__door_request(door, &watch.header, TDT_OUTSIDE_WATCH, sizeof watch,
					  trouble);
	if (error == 0 && command->ring_size != 0)
		error = tdt__door_request(door, &record.header, TDT_OUTSIDE_RECORD, sizeof record,
					  trouble);
	if (error == 0)
		print_in_force(command, watch.interval_ns, record.by_program != 0);
	return error;
}

/* Stay connected.  The library says nothing by itself, so only an end is to be read. */
static int stay(const struct set_command *command, const struct set_doors *doors)
{
	uint64_t ns = command->options.duration;
	const struct timespec time = tdt__timespec(ns);
	struct pollfd wait[TDT__REGISTRIES_MAX + 1];
	int ready;

	bound_time(0);
	wait[0] = (struct pollfd){ .fd = wait_descriptor(), .events = POLLIN };
	for (nfds_t i = 0; i < doors->n; i++)
		wait[1 + i] = (struct pollfd){ .fd = doors->door[i].connection, .events = POLLIN };
	ready = ppoll(wait, 1 + doors->n, ns != 0 ? &time : NULL, NULL);
	if (ready <= 0 || wait[0].revents != 0)
		return EXIT_SUCCESS; /* also if a signal has interrupted it */
	return report_trouble("the process has ended, or has broken off the connection");
}

static int set_all(const struct set_command *command, const struct outside *outside)
{
	struct set_doors doors = { .n = 0 };
	struct tdt__trouble trouble;
	int status, error = 0;

	if (wait_begin() != 0) /* before the user reads that the settings are in force */
		return report_no_memory();
	for (size_t i = 0; i < outside->n_found && error == 0; i++) {
		error = set_one(command, &doors, outside, i, &trouble);
		if (error == -ENOTCONN && outside->n_found > 1)
			error = 0; /* another copy of the library may listen */
	}
	if (error != 0 || doors.n == 0)
		status = report_trouble("%s", trouble.text);
	else if (fflush(stdout) != 0)
		status = program_output_failed(errno);
	else
		status = stay(command, &doors);
	for (nfds_t i = 0; i < doors.n; i++)
		tdt__door_close(&doors.door[i]);
	return status;
}

int command_set(int argc, char **argv)
{
	struct set_command command = { .watch_ns = 0 };
	struct outside outside;
	int status;

	read_command_line(COMMAND_SET, &command.options, &argc, &argv, TARGET_AND_MORE);
	if (argc == 0)
		bad_usage("what is to be set is missing: watch=TIME or record=SIZE", "");
	for (int i = 0; i < argc; i++)
		set_setting(&command, argv[i]);
	outside_bound(&command.options, 0);
	status = outside_open(&outside, &command.options);
	if (status != PROGRAM_GOES_ON)
		return status;
	status = set_all(&command, &outside);
	outside_close(&outside);
	return status;
}
