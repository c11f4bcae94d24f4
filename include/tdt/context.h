/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CONTEXT_H
#define TDT_CONTEXT_H /* stable from 1.0: docs/compatibility.md */

/*
 * The trace context of a task: which request of a distributed trace (OpenTelemetry, W3C Trace
 * Context) the task works for.  Dumps, the tools and recordings show it, and `tdt bt --trace=ID`
 * finds the tasks of a trace that is slow in Jaeger or Tempo.
 *
 *	struct tdt_trace_context context = { .flags = 1 };
 *
 *	memcpy(context.trace_id, span->trace_id, 16);
 *	memcpy(context.span_id, span->span_id, 8);
 *	tdt_task_context(NULL, &context);    // of the task that is being polled
 *
 * A task that is spawned in a poll of another task inherits the context that this one has then.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/decls.h>

TDT_DECLS_BEGIN

struct tdt_handle;

/*
 * 28 bytes: the beginning of the record that OpenTelemetry's OTEP 4947 ("Thread Context") defines,
 * so a pointer to it is what readers of that record expect.
 */
struct tdt_trace_context {
	uint8_t trace_id[16]; /* @0  as in a `traceparent`: not all 0 */
	uint8_t span_id[8];   /* @16 of the application's span, the parent of what the task does;
				 not all 0 */
	uint8_t valid;        /* @24 1.  (tdt_task_context() does not read it) */
	uint8_t flags;        /* @25 trace-flags of W3C; bit 0: sampled */
	uint16_t attrs_size;  /* @26 0 */
};

/*
 * Set the context of a task; of the task that is being polled on this thread, or that the thread
 * has entered, if `handle` is NULL.  A `context` of NULL takes the task's context away.  Tasks that
 * were spawned before keep what they have.
 *
 * The library copies `*context` before the call returns, and the caller keeps the handle.  Whoever
 * reads the context meanwhile, on any thread or from outside the process, finds all of the old one
 * or all of the new one.  If several threads set it at once, one of them is the last.
 *
 * Returns 0.  Returns a negative errno and sets errno, and nothing has changed: -EINVAL (an id is
 * all 0, or `attrs_size` is not 0), -ESRCH (`handle` is NULL and no traced task is being polled
 * here; a task that a runtime only reports must have a record, see tdt_hook_spawn()), -ENOMEM.
 * Any thread; not async-signal-safe.  It takes about as long as an allocation.
 */
int tdt_task_context(struct tdt_handle *handle, const struct tdt_trace_context *context);

/*
 * Have profilers see which trace a thread works for, by what OpenTelemetry's OTEP 4947 defines: in
 * each poll of a traced future, from its beginning to its end, the thread-local pointer
 * `otel_thread_ctx_v1` leads to the context of the future's task.  The eBPF profilers of
 * OpenTelemetry and others label their samples by it.  An SDK alone cannot do so in an async
 * program, since a task that waits leaves its thread to others.  `false` ends it.  It is off at
 * first, and TDT_CONTEXT_LABELS=1 in the environment switches it on with the first traced future.
 *
 * Readers look for the pointer only if the process says so, by a mapping "OTEL_CTX" (OTEP 4719).
 * Unless there is such a mapping, the call makes one, of a page.  So call it after an SDK has
 * started that makes its own; whether that one speaks of the pointer is for the SDK to say.  If an
 * SDK has set the pointer of a thread itself, the polls on that thread leave it alone until the SDK
 * has taken it back.
 *
 * A context that a poll sets for its own task is seen at once; one that is set from elsewhere, from
 * the task's next poll on.  The context of a fiber's task goes with the fiber; a poll that was in
 * progress on its stack when it was suspended has no label from then on.  Tasks of tdt_task_new(),
 * and tasks that a runtime only reports, are not seen.
 *
 * In a program that is linked with libtdt.a readers find the pointer only if the linker exports it:
 * -Wl,--export-dynamic-symbol=otel_thread_ctx_v1.
 *
 * Cost: while it is off, a poll takes not an instruction more; while it is on, about 5 ns.
 *
 * Returns 0.  Returns a negative errno and sets errno, and nothing has changed: -ENOMEM, or another
 * error of mmap(2) or madvise(2).  Any thread.
 */
int tdt_context_labels(bool on);

TDT_DECLS_END

#endif
