/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Recordings in the form of Perfetto traces, which ui.perfetto.dev and trace_processor read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tdt/tree.h>

#include "recording/read.h"

/* The most frames that one return address stands for: functions that were inlined there. */
#define TDT__PERFETTO_INLINED_MAX 32

/*
 * Find the frames of a return address: the innermost function first, each but the last inlined
 * into the next.  Fill in at most `max` frames, and return how many; 0: nothing is known.  Fields
 * that are used: function, file, line, module, module_offset, symbol, build_id.  The strings must
 * live until the next call.
 */
typedef size_t tdt__perfetto_names_fn(void *data, uint64_t pc, struct tdt_frame *frames,
				      size_t max);

struct tdt__perfetto_options {
	bool gzip;		       /* compress the trace */
	tdt__perfetto_names_fn *names; /* NULL: functions are printed as their addresses */
	void *data;
};

/*
 * Write the recording to `out`.  `options` may be NULL.  Returns 0 or a negative errno: -ENOMEM, or
 * what writing failed with.
 */
int tdt__perfetto_write(const struct tdt__recording *recording,
			const struct tdt__perfetto_options *options, FILE *out);

struct tdt__modules;

/* The data of tdt__perfetto_name(), a tdt__perfetto_names_fn that looks names up. */
struct tdt__perfetto_modules {
	struct tdt__modules *modules;
	uint64_t deadline; /* for all names (tdt__clock()) */
};

size_t tdt__perfetto_name(void *data, uint64_t pc, struct tdt_frame *frames, size_t max);
