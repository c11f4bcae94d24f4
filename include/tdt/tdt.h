/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TDT_H
#define TDT_TDT_H

/* All of libtdt's public headers, one per concern. */

#include <tdt/async.h>   /* async functions in plain C */
#include <tdt/combine.h> /* join, select */
#include <tdt/future.h>  /* the ABI */
#include <tdt/hooks.h>   /* for the author of a runtime */
#include <tdt/print.h>   /* a trace as text, JSON, folded stacks */
#include <tdt/trace.h>   /* trace a future, ask where it waits */
#include <tdt/tree.h>    /* walk the answer, or build one */

#endif
