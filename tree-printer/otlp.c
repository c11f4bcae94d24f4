// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A recording as spans of OpenTelemetry, below the spans of the program:
 *
 *	GET /order                         the program's
 *	├ polling
 *	├ waiting for a mutex "db pool"    with a link to the program's span of its holder
 *	├ runnable
 *	└ polling
 *
 * Where a task gets another trace context, its phase is cut in two.  A phase that is not over ends
 * with the recording, so that what hangs is seen.
 */

#include "otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "protobuf.h"
#include "recording/timeline.h"
#include "schema.h"
#include "words.h"

/* The numbers of the fields, by message. */
enum {
	REQUEST_RESOURCE_SPANS = 1,
	RESOURCE_SPANS_RESOURCE = 1,
	RESOURCE_SPANS_SCOPE_SPANS = 2,
	RESOURCE_ATTRIBUTE = 1,
	SCOPE_SPANS_SCOPE = 1,
	SCOPE_SPANS_SPAN = 2,
	SCOPE_NAME = 1,
	SCOPE_VERSION = 2,
	SPAN_TRACE_ID = 1,
	SPAN_ID = 2,
	SPAN_PARENT = 4,
	SPAN_NAME = 5,
	SPAN_KIND = 6,
	SPAN_START = 7,
	SPAN_END = 8,
	SPAN_ATTRIBUTE = 9,
	SPAN_LINK = 13,
	SPAN_FLAGS = 16,
	LINK_TRACE_ID = 1,
	LINK_SPAN_ID = 2,
	LINK_ATTRIBUTE = 4,
	LINK_FLAGS = 6,
	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE = 2,
	VALUE_STRING = 1,
	VALUE_BOOL = 2,
	VALUE_INT = 3
};

#define SPAN_KIND_INTERNAL 1
#define PARENT_IS_LOCAL 0x100 /* a bit of `flags`: the parent is of this process */

/* To which trace a task belongs, and belonged before. */
struct traced_task {
	struct tdt_trace_context now, before;
	uint64_t since; /* `now` holds, ns */
	bool exact;	/* it did not before: an event says so */
};

struct span_export {
	const struct tdt__recording *recording;
	struct tdt__timeline timeline;
	struct traced_task *traced; /* as the recording's table of tasks */
	uint64_t process;	    /* a number of the process that recorded */
	uint64_t longer;
	struct tdt__string message, name;
	size_t scope_spans;  /* where they begin in the message */
	uint64_t in_message; /* spans */
	tdt__otlp_fn *take;
	void *arg;
	int error; /* 0 or a negative number */
	struct tdt__otlp_counts *counts;
};

/* A phase of a task as a span. */
struct phase_span {
	uint32_t task; /* its number */
	const struct tdt__timeline_task *known;
	const struct tdt__step *end; /* the step that ended it; NULL: it goes on, or is cut */
	struct tdt__timeline_phase phase;
};

/* --- Attributes --- */

/* The name of an attribute, whose value is added next.  Returns where that begins. */
static size_t begin_value(struct tdt__string *to, const char *key)
{
	tdt__proto_add_text(to, ATTRIBUTE_KEY, key);
	return to->n;
}

/* The attribute that begins at `start` is field `field` of what it belongs to. */
static void end_value(struct tdt__string *to, unsigned field, size_t start, size_t value)
{
	tdt__proto_wrap(to, value, ATTRIBUTE_VALUE);
	tdt__proto_wrap(to, start, field);
}

static void add_text_value(struct tdt__string *to, unsigned field, const char *key,
			   const char *text)
{
	size_t start = to->n, value = begin_value(to, key);

	tdt__string_escape(to, text, true, '\0');
	tdt__proto_wrap(to, value, VALUE_STRING);
	end_value(to, field, start, value);
}

static void add_number_value(struct tdt__string *to, unsigned field, const char *key, unsigned type,
			     uint64_t number)
{
	size_t start = to->n, value = begin_value(to, key);

	tdt__proto_add_uint(to, type, number);
	end_value(to, field, start, value);
}

static void attach_number(struct tdt__string *to, const char *key, unsigned type, uint64_t number)
{
	add_number_value(to, SPAN_ATTRIBUTE, key, type, number);
}

static void attach_text(struct tdt__string *to, const char *key, const char *name)
{
	if (name != NULL && name[0] != '\0')
		add_text_value(to, SPAN_ATTRIBUTE, key, name);
}

/* What a task is to the span: "task", "holder".  0: there is none. */
static void attach_task(struct span_export *export, const char *what, uint64_t id)
{
	char key[32];

	if (id == 0)
		return;
	snprintf(key, sizeof key, "tdt.%s.id", what);
	attach_number(&export->message, key, VALUE_INT, id);
	snprintf(key, sizeof key, "tdt.%s.name", what);
	attach_text(&export->message, key, tdt__recording_task_name(export->recording, id));
}

static void attach_thread(struct span_export *export, const char *id_key, const char *name_key,
			  uint32_t number)
{
	const struct tdt__recorded_thread *thread;

	if (number == TDT__RECORDED_NONE)
		return;
	thread = &export->recording->thread[number];
	if (thread->id == 0)
		return;
	attach_number(&export->message, id_key, VALUE_INT, thread->id);
	attach_text(&export->message, name_key, thread->name);
}

/* --- Spans --- */

static void attach_context(struct tdt__string *to, const struct tdt_trace_context *context,
			   unsigned trace_field, unsigned span_field)
{
	tdt__proto_add_bytes(to, trace_field, context->trace_id, sizeof context->trace_id);
	tdt__proto_add_bytes(to, span_field, context->span_id, sizeof context->span_id);
}

/* A link to the span for which the task `id` worked during the phase, if it worked for one. */
static void attach_link(struct span_export *export, uint64_t id, const char *what,
			const struct tdt__timeline_phase *phase)
{
	uint32_t number = tdt__recording_task(export->recording, id);
	struct tdt__string *to = &export->message;
	const struct tdt_trace_context *context;
	const struct traced_task *traced;
	size_t start = to->n;

	if (number == TDT__RECORDED_NONE)
		return;
	traced = &export->traced[number];
	context =
	    traced->now.valid && traced->since < phase->until ? &traced->now : &traced->before;
	if (!context->valid || (context == &traced->before && traced->since <= phase->since))
		return;
	attach_context(to, context, LINK_TRACE_ID, LINK_SPAN_ID);
	add_text_value(to, LINK_ATTRIBUTE, "tdt.link", what);
	tdt__proto_add_fixed32(to, LINK_FLAGS, context->flags | PARENT_IS_LOCAL);
	tdt__proto_wrap(to, start, SPAN_LINK);
}

static const struct tdt_print_options name_form = { .size = sizeof(name_form),
						    .utf8 = TDT_PRINT_YES,
						    .color = TDT_PRINT_NO };

/*
 * `waiting for a mutex "db pool"`: without what differs from wait to wait, which the attributes
 * have.
 */
static void name_of_wait(struct span_export *export, const struct tdt_wait *wait, uint64_t self)
{
	struct tdt_wait shown = *wait;

	shown.orphaned = 0;
	if (wait->kind != TDT_WAIT_TASK)
		shown.owner = 0;
	if (wait->kind != TDT_WAIT_IO)
		shown.object = 0;
	tdt__string_puts(&export->name, " ");
	tdt__wait_for(&export->name, &shown, self,
		      tdt__recording_task_name(export->recording, shown.owner));
}

static void attach_wait(struct span_export *export, const struct phase_span *span,
			const struct tdt__recorded_waits *waits)
{
	const struct tdt_wait *wait = &waits->main;
	const char *owner = wait->kind == TDT_WAIT_MUTEX ? "holder" : "owner";
	struct tdt__string *to = &export->message;
	char object[24];

	if (waits->n == 0)
		return;
	attach_text(to, "tdt.wait.kind", wait_words[wait->kind]);
	snprintf(object, sizeof object, "0x%" PRIx64, wait->object);
	attach_text(to, "tdt.wait.object", wait->object != 0 ? object : NULL);
	if (waits->n > 1)
		attach_number(to, "tdt.wait.leaves", VALUE_INT, waits->n);
	attach_task(export, owner, wait->owner);
	if (wait->orphaned != 0)
		attach_number(to, "tdt.holder.ended", VALUE_BOOL, 1);
	if (wait->owner != 0)
		attach_link(export, wait->owner, owner, &span->phase);
}

/* Who ended the wait. */
static void attach_waker(struct span_export *export, const struct tdt__step *end)
{
	if (end == NULL ||
	    (end->item.event.kind != TDT_EVENT_WAKE && end->item.event.kind != TDT_EVENT_POLL))
		return;
	attach_task(export, "waker", end->item.event.c);
	if (end->item.event.kind == TDT_EVENT_WAKE)
		attach_thread(export, "tdt.waker.thread.id", "tdt.waker.thread.name",
			      end->item.thread);
}

static const char *const phase_words[TDT__PHASES] = {
	[TDT__SPAWNED] = "spawned",
	[TDT__WAITING] = "waiting",
	[TDT__RUNNABLE] = "runnable",
	[TDT__POLLING] = "polling",
};

/* What only phases of its kind have. */
static void attach_phase(struct span_export *export, const struct phase_span *span)
{
	uint64_t self = export->recording->task[span->task].id;
	struct tdt__recorded_waits waits = { .n = 0 };

	tdt__string_puts(&export->name, phase_words[span->phase.phase]);
	if (span->phase.phase == TDT__WAITING) {
		tdt__recorded_waits(export->recording, &span->known->parts, &waits);
		tdt__timeline_renew(&export->timeline, span->task, span->known, &waits.main);
		if (waits.n != 0)
			name_of_wait(export, &waits.main, self);
		attach_wait(export, span, &waits);
		attach_waker(export, span->end);
	} else if (span->phase.phase == TDT__POLLING) {
		attach_thread(export, "thread.id", "thread.name", span->known->thread);
	} else if (span->end != NULL && span->end->item.kind == TDT__RECORDED_BEGIN) {
		attach_thread(export, "thread.id", "thread.name", span->end->item.thread);
	}
}

/* The same for the same phase of the same process, and never 0. */
static uint64_t span_number(const struct span_export *export, const struct phase_span *span)
{
	uint64_t task = tdt__mix(export->process, export->recording->task[span->task].id);
	uint64_t number = tdt__mix(tdt__mix(task, span->phase.since), span->phase.phase);

	return number != 0 ? number : 1;
}

static void add_span(struct span_export *export, const struct phase_span *span, bool over)
{
	const struct tdt_trace_context *context = &export->traced[span->task].now;
	const struct tdt__timeline_phase *phase = &span->phase;
	const struct tdt__recorded_task *task = &export->recording->task[span->task];
	uint64_t number = span_number(export, span),
		 start = tdt__recording_wall(export->recording, phase->since);
	struct tdt__string *to = &export->message;
	size_t begin = to->n;

	export->name.n = 0;
	attach_context(to, context, SPAN_TRACE_ID, SPAN_PARENT);
	tdt__proto_add_bytes(to, SPAN_ID, &number, sizeof number);
	tdt__proto_add_uint(to, SPAN_KIND, SPAN_KIND_INTERNAL);
	tdt__proto_add_fixed64(to, SPAN_START, start);
	tdt__proto_add_fixed64(to, SPAN_END, start + (phase->until - phase->since));
	tdt__proto_add_fixed32(to, SPAN_FLAGS, context->flags | PARENT_IS_LOCAL);
	attach_task(export, "task", task->id);
	if (task->name[0] == '\0' && task->file[0] != '\0') {
		attach_text(to, "tdt.task.file", task->file);
		attach_number(to, "tdt.task.line", VALUE_INT, task->line);
	}
	if (!over)
		attach_number(to, "tdt.not_over", VALUE_BOOL, 1);
	if (!phase->sure)
		attach_number(to, "tdt.unsure", VALUE_BOOL, 1);
	attach_phase(export, span);
	tdt__proto_add_bytes(to, SPAN_NAME, export->name.bytes, export->name.n);
	tdt__proto_wrap(to, begin, SCOPE_SPANS_SPAN);
}

/* --- Messages --- */

static void begin_message(struct span_export *export)
{
	const struct tdt_recording *header = &export->recording->header;
	struct tdt__string *to = &export->message;
	size_t version;

	to->n = 0;
	export->in_message = 0;
	add_text_value(to, RESOURCE_ATTRIBUTE, "service.name", header->program);
	add_number_value(to, RESOURCE_ATTRIBUTE, "process.pid", VALUE_INT, header->pid);
	tdt__proto_wrap(to, 0, RESOURCE_SPANS_RESOURCE);
	export->scope_spans = to->n;
	tdt__proto_add_text(to, SCOPE_NAME, "tdt");
	version = to->n;
	tdt__string_escape(to, header->library, true, '\0');
	tdt__proto_wrap(to, version, SCOPE_VERSION);
	tdt__proto_wrap(to, export->scope_spans, SCOPE_SPANS_SCOPE);
}

static void end_message(struct span_export *export)
{
	struct tdt__string *to = &export->message;

	if (export->error != 0 || export->in_message == 0)
		return;
	tdt__proto_wrap(to, export->scope_spans, RESOURCE_SPANS_SCOPE_SPANS);
	tdt__proto_wrap(to, 0, REQUEST_RESOURCE_SPANS);
	export->error = to->failed || export->name.failed
			    ? -ENOMEM
			    : export->take(export->arg, to->bytes, to->n, export->in_message);
	if (export->error == 0)
		begin_message(export);
}

/* Write what of a phase belongs to the trace that the task belongs to now. */
static void export_span(struct span_export *export, struct phase_span span)
{
	const struct traced_task *traced = &export->traced[span.task];
	struct tdt__timeline_phase *phase = &span.phase;
	bool over = phase->until != 0;

	if (!traced->now.valid || phase_words[phase->phase] == NULL)
		return;
	if (!over)
		phase->until = export->recording->until;
	if (traced->exact && phase->since < traced->since)
		phase->since = traced->since;
	if (phase->until <= phase->since || phase->until < traced->since)
		return;
	if (phase->until - phase->since < export->longer) {
		export->counts->shorter++;
		return;
	}
	add_span(export, &span, over);
	export->counts->spans++;
	export->in_message++;
	if (export->message.failed || export->message.n >= TDT__OTLP_MESSAGE)
		end_message(export);
}

/* --- The whole --- */

/*
 * A task gets a trace context, or loses it.  `exact`: at this time.  Otherwise it had it before,
 * and the event that said so is missing; then its whole phase belongs to the trace.
 */
static void change_context(struct span_export *export, uint32_t number, uint64_t ns, bool exact,
			   const struct tdt_trace_context *context)
{
	struct traced_task *traced = &export->traced[number];
	const struct tdt__timeline_task *known = &export->timeline.task[number];
	struct phase_span span = { .task = number,
				   .known = known,
				   .phase = tdt__timeline_last(known) };

	if (memcmp(&traced->now, context, sizeof *context) == 0)
		return;
	if (exact && (span.phase.until == 0 || span.phase.until > ns))
		span.phase.until = ns;
	if (exact)
		export_span(export, span);
	*traced = (struct traced_task){ *context, traced->now, ns, exact };
}

static void follow_context(struct span_export *export, const struct tdt__recorded_item *item)
{
	uint32_t number = tdt__recording_task(export->recording, item->event.task);
	struct tdt_trace_context context;

	if (number != TDT__RECORDED_NONE &&
	    tdt__recorded_context(export->recording, item, &context))
		change_context(export, number, item->ns,
			       item->event.kind == TDT_EVENT_CONTEXT ||
				   item->event.kind == TDT_EVENT_SPAWN,
			       &context);
}

/*
 * The traces to which tasks belonged when the recording begins: where the first item that says
 * something of a task is no change, it was so all the time in which no event is missing.
 */
static int find_first_contexts(struct span_export *export)
{
	const struct tdt__recording *recording = export->recording;
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	int error = tdt__recording_begin(&cursor, recording);

	if (error != 0)
		return error;
	while (tdt__recording_next(&cursor, &item)) {
		uint32_t number = tdt__recording_task(recording, item.event.task);
		struct tdt_trace_context context;
		struct traced_task *traced;

		if (number == TDT__RECORDED_NONE ||
		    !tdt__recorded_context(recording, &item, &context))
			continue;
		traced = &export->traced[number];
		if (traced->exact)
			continue;
		traced->exact = true; /* the first item is found */
		if (item.event.kind == TDT_EVENT_TASK || item.event.kind == TDT_EVENT_END) {
			traced->now = context;
			traced->since = recording->sure_from;
		}
	}
	tdt__recording_end(&cursor);
	for (size_t i = 0; i < recording->n_tasks; i++)
		export->traced[i].exact = false;
	return 0;
}

static void export_steps(struct span_export *export)
{
	struct tdt__step step;
	struct phase_span span;

	while (export->error == 0 && tdt__timeline_next(&export->timeline, &step)) {
		span = (struct phase_span){ step.task, &step.before, &step, { 0 } };
		if (tdt__step_ends_phase(&step, &span.phase))
			export_span(export, span);
		follow_context(export, &step.item);
	}
	for (uint32_t i = 0; i < export->recording->n_tasks && export->error == 0; i++) {
		span = (struct phase_span){ .task = i, .known = &export->timeline.task[i] };
		span.phase = tdt__timeline_last(span.known);
		export_span(export, span);
	}
	end_message(export);
}

int tdt__otlp_write(const struct tdt__recording *recording, uint64_t longer, tdt__otlp_fn *take,
		    void *arg, struct tdt__otlp_counts *counts)
{
	const struct tdt_recording *header = &recording->header;
	struct span_export export = { .recording = recording,
				      .traced =
					  calloc(recording->n_tasks + 1, sizeof(*export.traced)),
				      .process =
					  tdt__mix(tdt__mix(0, header->pid), header->start_real),
				      .longer = longer,
				      .name.options = &name_form,
				      .take = take,
				      .arg = arg,
				      .counts = counts };

	*counts = (struct tdt__otlp_counts){ 0 };
	export.error = export.traced == NULL ? -ENOMEM : find_first_contexts(&export);
	if (export.error == 0)
		export.error = tdt__timeline_begin(&export.timeline, recording);
	if (export.error == 0) {
		begin_message(&export);
		export_steps(&export);
		tdt__timeline_end(&export.timeline);
	}
	tdt__string_free(&export.message);
	tdt__string_free(&export.name);
	free(export.traced);
	return export.error;
}
