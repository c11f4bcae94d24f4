/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TDT_H
#define TDT_TDT_H /* stable from 1.0: docs/compatibility.md */

/*
 * All headers for users of the library.  Three folders are for others, who include what they need
 * by name: tdt/integrate/ for the author of a runtime, a lock, a leaf or a coroutine; tdt/layout/
 * for readers outside the process; tdt/rt/ is libtdt-rt, a library of its own.
 */

#include <tdt/async.h>     /* async functions in plain C */
#include <tdt/callback.h>  /* operations of callbacks, on any event loop */
#include <tdt/combine.h>   /* join and select */
#include <tdt/context.h>   /* trace contexts of tasks */
#include <tdt/coroutine.h> /* functions that wait, on stacks of their own */
#include <tdt/counters.h>  /* numbers for a metrics endpoint */
#include <tdt/dump.h>      /* where all tasks wait */
#include <tdt/future.h>    /* the ABI of futures and wakers */
#include <tdt/join.h>      /* await the end of a task */
#include <tdt/misuse.h>    /* rules of the library that were broken */
#include <tdt/panics.h>    /* the last tasks that panicked */
#include <tdt/print.h>     /* print a trace as text, JSON or folded stacks */
#include <tdt/probe.h>     /* static probes of your own */
#include <tdt/recorder.h>  /* record what happens, for later */
#include <tdt/tasks.h>     /* all live tasks and their records */
#include <tdt/trace.h>     /* trace a future, request where it waits */
#include <tdt/tree.h>      /* walk a trace, or build one */
#include <tdt/version.h>   /* of these headers, and of the library */
#include <tdt/watch.h>     /* keep the last tree of every task */

#endif
