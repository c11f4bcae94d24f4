/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TDT_H
#define TDT_TDT_H

/* All public headers, one per concern.  Those of libtdt-rt are marked: what they declare is in a library of its own. */

#include <tdt/async.h>   /* async functions in plain C */
#include <tdt/combine.h> /* join, select */
#include <tdt/coroutine.h> /* functions that wait, on stacks of their own */
#include <tdt/dump.h>    /* where all tasks wait */
#include <tdt/future.h>  /* the ABI */
#include <tdt/hooks.h>   /* for the author of a runtime */
#include <tdt/join.h>    /* await a task's end */
#include <tdt/net.h>     /* libtdt-rt: TCP */
#include <tdt/print.h>   /* a trace as text, JSON, folded stacks */
#include <tdt/registry.h> /* the tasks' records, for readers outside the process */
#include <tdt/runtime.h> /* libtdt-rt: the runtime, timers */
#include <tdt/sync.h>    /* libtdt-rt: a mutex, a channel for one value */
#include <tdt/tasks.h>   /* all tasks, and what is known of them */
#include <tdt/trace.h>   /* trace a future, ask where it waits */
#include <tdt/tree.h>    /* walk the answer, or build one */
#include <tdt/watch.h>   /* keep every task's last tree */

#endif
