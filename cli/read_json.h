/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_READ_JSON_H
#define TDT_CLI_READ_JSON_H

/* Read traces and dumps back from the JSON that the library prints: tdt-trace(5) has the schema. */

#include <stdio.h>

#include <tdt/dump.h>

struct reader {
	FILE *file;
	unsigned long line; /* of the last byte read, from 1; a new reader has all 0 */
	unsigned long column;
	char message[512]; /* what is wrong: the file may have put anything into it */
	char prefix[40];   /* "groups[7].": where in a dump we are */
};

/*
 * Read the next trace.  Returns 1, and a trace for the caller to free; 0 at the end of the file; or -1: what follows
 * can't be read, `message` says why, and `line` and `column` where (for an object that is JSON but no trace: where it
 * starts).
 */
int reader_next(struct reader *reader, struct tdt_trace **trace);

/* A dump that was read: a snapshot, and all that it points to. */
struct dump;

const struct tdt_snapshot *dump_snapshot(const struct dump *dump);
void dump_free(struct dump *dump); /* NULL does nothing */

/*
 * The same where dumps of many tasks stand among the traces, which reader_next() takes for damage: one of `*trace` and
 * `*dump`, for the caller to free, the other NULL.
 */
int reader_next_of_both(struct reader *reader, struct tdt_trace **trace, struct dump **dump);

#endif
