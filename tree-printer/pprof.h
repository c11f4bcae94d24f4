/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Profiles in pprof's form: gzip around one message of protocol buffers, profile.proto.  `go tool
 * pprof` and continuous profilers read it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tdt/tree.h>

struct tdt__modules;

#define TDT__PPROF_VALUES 4
#define TDT__PPROF_LABELS 3

struct tdt__pprof_sample {
	const struct tdt_node *leaf; /* the innermost frame of the stack */
	const bool *shown;           /* which frames are written, by node id; NULL: all */
	const char *instead;         /* the one frame of a sample whose `leaf` is NULL */
	const char *label[TDT__PPROF_LABELS]; /* NULL: this sample has no such label */
	int64_t value[TDT__PPROF_VALUES];
};

/* All strings may hold any bytes. */
struct tdt__pprof {
	const char *type[TDT__PPROF_VALUES]; /* of the values; pprof shows the first one */
	const char *unit[TDT__PPROF_VALUES];
	const char *label[TDT__PPROF_LABELS]; /* the names of the labels */
	const char *comment;
	const struct tdt__pprof_sample *sample;
	size_t n;
	const struct tdt__modules *modules; /* of the samples' frames */
	uint64_t real;     /* when the profile began, ns of CLOCK_REALTIME */
	uint64_t duration; /* ns */
	uint64_t period;   /* ns between two looks */
};

/* Write the profile, compressed.  Returns 0 or a negative errno. */
int tdt__pprof_write(const struct tdt__pprof *profile, FILE *out);
