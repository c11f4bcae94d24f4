// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Labels of threads: see label.h. */

#include "task/label.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/result.h"
#include "capture/chain.h"
#include "host/process_context.h"
#include "host/start.h"
#include "host/thread.h"
#include "registry/contexts.h"
#include "registry/handle.h"

/*
 * The pointer.  Readers look for this name among the dynamic symbols of the process, and for a
 * descriptor of it (TLSDESC).  Weak: an SDK that is linked into the same program may define it,
 * too, and then both use that one.
 */
__attribute__((visibility("default"), tls_model("global-dynamic"), weak)) __thread struct tdt__label
    *volatile otel_thread_ctx_v1;

struct tdt__label *volatile *tdt__label_find(void)
{
	tdt__thread.labelled = &otel_thread_ctx_v1;
	return tdt__thread.labelled;
}

void tdt__label_suspend(const struct tdt__poll *outer)
{
	for (const struct tdt__poll *poll = tdt__thread.poll; poll != outer; poll = poll->outer)
		if (tdt__thread.label != NULL && tdt__thread.label->poll == poll)
			tdt__label_end(tdt__thread.label);
}

void tdt__label_set(const struct tdt_handle *task, const struct tdt_trace_context *context)
{
	const struct tdt__poll *poll = tdt__thread.poll;
	struct tdt__label *label = tdt__thread.label;

	if (label == NULL || poll == NULL || label->poll != poll || poll->task != task)
		return;
	*(volatile uint8_t *)&label->context.valid = 0;
	if (context == NULL)
		return;
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(label->context.trace_id, context->trace_id, sizeof context->trace_id);
	memcpy(label->context.span_id, context->span_id, sizeof context->span_id);
	label->context.flags = context->flags;
	label->context.attrs_size = 0;
	atomic_signal_fence(memory_order_seq_cst);
	*(volatile uint8_t *)&label->context.valid = 1;
}

/* --- Switching ------------------------------------------------------------------------------ */

int tdt_context_labels(bool on)
{
	int error = tdt__start();

	if (error == 0 && on)
		error = tdt__process_context_publish();
	if (error == 0)
		tdt__epoch_flag(TDT__EPOCH_LABELS, on);
	return tdt__result(error);
}

void tdt__labels_by_environment(void)
{
	const char *text = secure_getenv("TDT_CONTEXT_LABELS");

	if (text != NULL && strcmp(text, "1") == 0 && tdt__process_context_publish() == 0)
		tdt__epoch_flag(TDT__EPOCH_LABELS, true);
}
