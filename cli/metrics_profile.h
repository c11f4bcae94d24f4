/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Profiles that are asked for over HTTP, as those of Go are: for Parca, Alloy and go tool pprof. */

#include "cli/apart.h"
#include "cli/options.h"

/*
 * A serve_start_fn (serve.h): profile the target of the server, or, if that serves all processes,
 * the one that the query names.  Nothing is requested, and no watch is started.
 */
int metrics_profile_start(const struct options *server, const char *query, struct apart *apart);
