/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A page of metrics over HTTP, for one program that reads it now and then, and profiles, which are
 * made in children.
 *
 * Clients may be slow, or hostile: each has a limited time to send its request and to take the
 * answer, a request has a limited length, and if there are too many clients, the oldest one has to
 * go.  While a page is made, all clients wait; while a profile is made, only its own client does.
 *
 * This is less than any HTTP library does: of a request only the first line and the headers Accept
 * and Host are looked at, and each connection gets one answer.  A request is refused if its Host is
 * neither an address, nor localhost, nor one of the machine's own names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/apart.h"

/*
 * Make the page, as OpenMetrics or in Prometheus's older form: set `*text`, which malloc() made and
 * serve() frees, and its length.  Returns 0 or a negative errno.
 */
typedef int serve_fn(void *arg, bool open_metrics, char **text, size_t *length);

/*
 * Start to make the profile that `query` asks for, as "seconds=5", up to a space or the end: start
 * a child that writes it.  Returns for how many seconds the child may last, or a negative errno:
 * -EINVAL, if the query is not understood; -EPERM, if there are no profiles.
 */
typedef int serve_start_fn(void *arg, const char *query, struct apart *apart);

struct serve_pages {
	serve_fn *page;
	serve_start_fn *start;
	void *arg; /* of both */
};

struct serve_limits {
	uint64_t request_ns; /* for a client to send its request */
	uint64_t answer_ns;  /* and to take the answer */
};

/*
 * Listen at `where`: PORT, which is one of 127.0.0.1, ADDRESS:PORT, or [ADDRESS]:PORT.  The address
 * is a number; port 0 stands for any free one.  Returns a descriptor, or a negative errno: -EINVAL,
 * if `where` is not understood, or what socket(2), bind(2) and listen(2) report.
 */
int serve_listen(const char *where);

/* Write the URL of the page, as "http://127.0.0.1:9090/metrics", into `url`. */
#define SERVE_URL_MAX 128
int serve_url(int listener, char url[SERVE_URL_MAX]);

#define SERVE_NAME_MAX 256

/* Names of this machine, as "node7" and "node7.example". */
struct serve_names {
	char name[SERVE_NAME_MAX], whole_name[SERVE_NAME_MAX];
};

/*
 * Find them.  The whole name is that of the resolver, which may take long; if it has none, it is
 * the short one.
 */
void serve_find_names(struct serve_names *names);

/*
 * Serve the page at /metrics, and two profiles at a time at /debug/pprof/tasks.  Returns only if
 * that becomes impossible: a negative errno.
 */
int serve(int listener, const struct serve_names *names, const struct serve_limits *limits,
	  const struct serve_pages *pages);
