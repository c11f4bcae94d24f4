/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef DEMO_METRICS_H
#define DEMO_METRICS_H

/* Numbers about the tasks of the process, as a page for Prometheus. */

#include <stdint.h>
#include <stdio.h>

/* Print the page.  Returns 0 or a negative errno. */
int metrics_print(FILE *out);

/*
 * Serve the page over HTTP at 127.0.0.1 and `port`, from a thread that lives as long as the
 * process.  Returns 0 or a negative errno.
 */
int metrics_start(uint16_t port);

#endif
