/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Work in many pieces, as the processes of a machine, in child processes with limits (apart.h).  A
 * child does one piece after the other.  If a piece takes long, another child goes on with the rest
 * meanwhile, so pieces that stall do not hold up the others.
 */

#include <stddef.h>
#include <stdint.h>

#include "cli/apart.h"

/* Does piece `i`: as apart_fn. */
typedef int piece_fn(FILE *out, void *arg, size_t i);

struct work_piece {
	int status;      /* what the work has returned; -ECANCELED: see apart.h;
			    -ETIME: there was no time to begin it */
	const char *why; /* of -ECANCELED */
	char *text;      /* what the work has written, ends with NUL; NULL: nothing, or no memory */
	size_t length;
};

struct piece_limits {
	uint64_t each_ns; /* that one piece may last */
	uint64_t all_ns;  /* after which none is begun any more, and a second later all are ended */
};

/*
 * Do `n` pieces.  Returns an array that the caller frees with pieces_free().  NULL and errno: there
 * is no memory.
 */
struct work_piece *pieces_do(size_t n, piece_fn *work, void *arg,
			     const struct piece_limits *limits);
void pieces_free(struct work_piece *piece, size_t n);
