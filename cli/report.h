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

/*
 * Replace names, paths and addresses in the documents of a page: the same by the same.  False: no
 * memory.
 */
bool redact_documents(json_t *documents);

/*
 * Write the page of `documents`: the `n` bytes are JSON objects, each on a line of its own.
 * `ended`: how the process ended, if it has since the documents were gathered; else NULL.
 * Returns 0 or a negative errno; -ENODATA: no object is a dump.
 */
int report_page(FILE *out, const char *documents, size_t n, bool redact, const char *ended);
