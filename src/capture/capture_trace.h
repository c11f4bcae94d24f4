/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_CAPTURE_TRACE_H
#define TDT_SRC_CAPTURE_CAPTURE_TRACE_H

struct tdt_handle;
struct tdt_trace;
struct tdt__capture;

/*
 * Make `capture` a trace of `task`; no names are looked up.  Takes over the reference to `capture`,
 * also when it fails.  NULL and errno (ENOMEM) on failure.
 */
struct tdt_trace *tdt__capture_trace(const struct tdt_handle *task, struct tdt__capture *capture);

#endif
