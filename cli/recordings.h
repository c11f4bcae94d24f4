/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The recordings of the flight recorder that an operator has: a file, or a directory (the
 * environment variable TDT_RECORD_DIR) with the files of several processes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tdt/dump.h>

#include "cli/program.h"

struct tdt__modules;
struct tdt__recording;

/* A file in a directory of recordings. */
struct recording_file {
	char *path;
	char program[32];
	uint32_t pid;
	uint64_t started; /* ns of CLOCK_REALTIME */
	bool runs;        /* the process that records still runs, on this machine */
	bool exited;	  /* it called exit(); otherwise, and if it does not run, it was killed */
	uid_t owner;
	bool strange; /* anybody else may have put it there: it is not read unless it is named */
};

struct recording_files {
	struct recording_file *file; /* the newest one first */
	size_t n, room;
	/*
	 * The newest one of a process that has ended otherwise than by exit(), else of one that has
	 * ended, else the newest one; not a strange one.
	 */
	size_t chosen;
	uid_t owner; /* of the directory */
};

/*
 * List the recordings at `path`: those in a directory, or a file, which alone is not looked into.
 * Returns PROGRAM_GOES_ON, or an exit status after a report of what is wrong.
 */
int recordings_list(const char *path, struct recording_files *files);
void recordings_free(struct recording_files *files);

/* Print the list for a reader, or as JSON. */
int recordings_print(const struct recording_files *files,
		     const struct tdt_print_options *options);

/* If there are several recordings, say on standard error which one is read. */
void recordings_say_chosen(const struct recording_files *files);

/* A recording that was read into memory. */
struct recording_read {
	char *path; /* NULL: read by recording_read() */
	void *block;
	size_t size;
	struct tdt__recording *recording;
	struct tdt__modules *modules; /* by which its addresses are named */
};

/* Read a file.  Returns PROGRAM_GOES_ON, or an exit status after a report of what is wrong. */
int recording_read(const char *path, struct recording_read *read);

/*
 * Read the file at `path`, or the recording in that directory that recordings_list() chooses.  Of
 * several, it is named on standard error.
 */
int recording_read_chosen(const char *path, struct recording_read *read);
void recording_read_free(struct recording_read *read);

struct options;

/* Look up the names of tasks without one, for a command that prints or sends them. */
void recording_name_tasks(const struct recording_read *read, const struct options *options);

/* Take and print what the options want, as tdt record does.  Returns an exit status. */
int record_take(struct options *options);

/*
 * Write it to the file at `path`, in the form that the name of the file ends with: .pftrace,
 * .pftrace.gz, .json (the summary), or anything else: the recording itself.  Returns an exit
 * status.
 */
int write_recording(const struct recording_read *read, const struct options *options,
		    const char *path);

/* Write a trace for Perfetto to the file at `path`, or for "-", to standard output. */
int write_trace(const struct recording_read *read, const struct options *options,
		const char *path);

/*
 * Write its spans, with --longer, as `otlp` of the options says: to a file, for "-" to standard
 * output, or to the collector at a URL.  Reports how many there are.  Returns an exit status.
 */
int write_otlp(const struct recording_read *read, const struct options *options);

/* Print the summary, with --rows, --since and --full. */
int write_summary(const struct recording_read *read, const struct options *options);
