/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The process context of OpenTelemetry's OTEP 4719: a mapping by which a profiler finds what a
 * process says about itself.  This one says that there are labels of threads (task/label.h).
 */

/*
 * Publish the process context, once, unless an SDK has published one.  Returns 0 or a negative
 * errno.  Any thread.
 */
int tdt__process_context_publish(void);

/* A child of fork() does not have the mapping: publish it again. */
void tdt__process_context_forked(void);
