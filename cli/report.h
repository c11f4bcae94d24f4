/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The parts of tdt report: one page with all that is known of an incident. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct tdt__recording;

/*
 * Print what the tasks and threads of a recording did, for the page's timeline, as one JSON object
 * on one line; tdt-trace(5) has its schema.  Returns 0 or a negative errno.
 */
int report_timeline(const struct tdt__recording *recording, FILE *out);

/* What stands for the names, paths and addresses that were replaced: the same for the same. */
struct redaction;

struct redaction *redaction_new(void); /* NULL: no memory */
void redaction_free(struct redaction *redaction); /* NULL does nothing */

/* Replace them in a document, also below it.  False: no memory. */
bool redact_document(struct redaction *redaction, json_t *document);

/*
 * Write the page of `documents`: the `n` bytes are JSON objects, each on a line of its own.
 * Returns 0 or a negative errno; -ENODATA: no object
 * is a dump.
 */
int report_page(FILE *out, const char *documents, size_t n, bool redact);
