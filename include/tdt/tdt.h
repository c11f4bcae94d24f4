/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TDT_H
#define TDT_TDT_H

/*
 * All public headers, one per concern.  The mark "libtdt-rt:" stands at headers whose functions are
 * in libtdt-rt, which is a library of its own.
 */

#include <tdt/async.h>     /* async functions in plain C */
#include <tdt/combine.h>   /* join and select */
#include <tdt/coroutine.h> /* functions that wait, on stacks of their own */
#include <tdt/counters.h>  /* numbers for a metrics endpoint */
#include <tdt/dump.h>      /* where all tasks wait */
#include <tdt/fiber.h>     /* coroutines of any library as tasks */
#include <tdt/future.h>    /* the ABI of futures and wakers */
#include <tdt/hooks.h>     /* for the author of a runtime */
#include <tdt/join.h>      /* await the end of a task */
#include <tdt/leaf.h>      /* where a task waits that has neither poll nor stack */
#include <tdt/misuse.h>    /* rules of the library that were broken */
#include <tdt/net.h>       /* libtdt-rt: TCP */
#include <tdt/outside.h>   /* requests from outside the process */
#include <tdt/panics.h>    /* the last tasks that panicked */
#include <tdt/print.h>     /* print a trace as text, JSON or folded stacks */
#include <tdt/probe.h>     /* static probes of your own */
#include <tdt/recorder.h>  /* record what happens, for later */
#include <tdt/recording.h> /* the layout of the flight recorder's rings */
#include <tdt/registry.h>  /* the records of tasks, for readers outside the process */
#include <tdt/runtime.h>   /* libtdt-rt: the runtime, timers */
#include <tdt/sync.h>      /* libtdt-rt: a mutex, a channel for one value */
#include <tdt/tasks.h>     /* all live tasks and their records */
#include <tdt/trace.h>     /* trace a future, request where it waits */
#include <tdt/tree.h>      /* walk a trace, or build one */
#include <tdt/version.h>   /* of these headers, and of the library */
#include <tdt/watch.h>     /* keep the last tree of every task */

#endif
