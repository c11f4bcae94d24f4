/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Reads traces and dumps from the JSON that the library prints, also where it stands in a page of
 * tdt report; tdt-trace(5) has the schema.
 */

#include <stdbool.h>
#include <stdio.h>

#include <tdt/dump.h>

struct json_t; /* of jansson */

/* A new reader has `file`, and what the caller takes, and zeros in all other fields. */
struct reader {
	FILE *file;
	unsigned long line; /* of the last byte that was read, from 1 */
	unsigned long column;
	char message[512]; /* what is wrong; it may quote the file, and so hold any bytes */
	char prefix[40];   /* the current place in a dump: "groups[7]." */
	bool page;   /* the file is a page of tdt report: set when its first byte is read */
	bool dumped; /* a dump or a trace was read, which a page has */
	/* The caller also takes the lists of tdt ps, as dumps of tasks that have no trees. */
	bool lists;
	/*
	 * The caller also takes profiles: this is called for each, and returns 1, or -1 with the
	 * message set.  NULL: profiles are damage.
	 */
	int (*profile)(struct reader *reader, const struct json_t *object);
	void *arg; /* for `profile` */
};

/* Whether jansson ran out of memory since the last beginning; not all of its functions say so. */
void reader_json_begin(void);
bool reader_json_failed(void);

/* A dump that was read: a snapshot, and everything that the snapshot points to. */
struct dump;

const struct tdt_snapshot *dump_snapshot(const struct dump *dump);
void dump_free(struct dump *dump); /* NULL does nothing */

/*
 * Skip to the next object.  Returns its first byte; 0: there is none; or -1: reading failed, and
 * `message` says why.
 */
int reader_skip_space(struct reader *reader);

/*
 * Read the next trace or dump.  Returns 1, and one of `*trace` and `*dump` is for the caller to
 * free, and the other one is NULL; both are NULL after a profile.  Returns 0 at the end of the
 * file; or -1 if the next object can't be read.  Then `message` says why, and `line` and `column`
 * say where; for an object that is JSON but not a trace they say where the object begins.  `dump`
 * is NULL: dumps of many tasks are damage.
 */
int reader_next(struct reader *reader, struct tdt_trace **trace, struct dump **dump);
