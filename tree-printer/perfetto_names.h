/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Names of functions for a Perfetto trace, by a table of modules. */

#include "perfetto.h"

struct tdt__modules;

struct tdt__perfetto_modules {
	struct tdt__modules *modules;
	uint64_t deadline; /* for all names (tdt__clock()) */
};

/* A tdt__perfetto_names_fn, whose data is a struct tdt__perfetto_modules. */
size_t tdt__perfetto_name(void *data, uint64_t pc, struct tdt_frame *frames, size_t max);
