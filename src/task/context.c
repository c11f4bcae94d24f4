// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Setting the trace context of a task: <tdt/context.h>. */

#include <tdt/context.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/result.h"
#include "capture/chain.h"
#include "host/thread.h"
#include "recorder/record.h"
#include "registry/contexts.h"
#include "registry/handle.h"
#include "task/label.h"

static bool is_context(const struct tdt_trace_context *context)
{
	static const struct tdt_trace_context none;

	return memcmp(context->trace_id, none.trace_id, sizeof none.trace_id) != 0 &&
	       memcmp(context->span_id, none.span_id, sizeof none.span_id) != 0 &&
	       context->attrs_size == 0;
}

int tdt_task_context(struct tdt_handle *handle, const struct tdt_trace_context *context)
{
	struct tdt_registry_context *new = NULL;
	struct tdt_trace_context copy;

	if (handle == NULL && tdt__thread.poll != NULL)
		handle = tdt__thread.poll->task;
	if (handle == NULL)
		return tdt__result(-ESRCH);
	if (context != NULL) {
		if (!is_context(context))
			return tdt__result(-EINVAL);
		copy = *context;
		copy.valid = 1;
		new = tdt__context_new(&copy);
		if (new == NULL)
			return tdt__result(-ENOMEM);
	}
	tdt__context_set(handle, new);
	tdt__label_set(handle, context);
	if (tdt__recording())
		tdt__record_context(handle->record.id, context != NULL ? &copy : NULL);
	return 0;
}
