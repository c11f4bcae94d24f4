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
	bool over;
};

/* --- Attributes, as field `field` of what they belong to --- */

static void attach_number(struct tdt__string *to, unsigned field, const char *key, unsigned type,
			  uint64_t number)
{
	size_t start = to->n, value;

	tdt__proto_add_text(to, ATTRIBUTE_KEY, key);
	value = to->n;
	tdt__proto_add_uint(to, type, number);
	tdt__proto_wrap(to, value, ATTRIBUTE_VALUE);
	tdt__proto_wrap(to, start, field);
}

static void attach_text(struct tdt__string *to, unsigned field, const char *key, const char *text)
{
	size_t start = to->n, value;

	tdt__proto_add_text(to, ATTRIBUTE_KEY, key);
	value = to->n;
	tdt__proto_add_escaped(to, VALUE_STRING, text);
	tdt__proto_wrap(to, value, ATTRIBUTE_VALUE);
	tdt__proto_wrap(to, start, field);
}

static void attach_true(struct tdt__string *to, const char *key)
{
	attach_number(to, SPAN_ATTRIBUTE, key, VALUE_BOOL, 1);
}

/* What has to do with the span: its id (0: there is none) and its name (NULL or "": unknown). */
static void attach_named(struct tdt__string *to, const char *what, uint64_t id, const char *name)
{
	char key[32];

	if (id == 0)
		return;
	snprintf(key, sizeof key, "%s.id", what);
	attach_number(to, SPAN_ATTRIBUTE, key, VALUE_INT, id);
	snprintf(key, sizeof key, "%s.name", what);
	if (name != NULL && name[0] != '\0')
		attach_text(to, SPAN_ATTRIBUTE, key, name);
}

static void attach_task(struct span_export *export, const char *what, uint64_t id)
{
	attach_named(&export->message, what, id, tdt__recording_task_name(export->recording, id));
}

static void attach_thread(struct span_export *export, const char *what, uint32_t number)
{
	const struct tdt__recorded_thread *thread = export->recording->thread;

	if (number != TDT__RECORDED_NONE)
		attach_named(&export->message, what, thread[number].id, thread[number].name);
}

static void attach_context(struct tdt__string *to, const struct tdt_trace_context *context,
			   unsigned trace_field, unsigned span_field, unsigned flags_field)
{
	tdt__proto_add_bytes(to, trace_field, context->trace_id, sizeof context->trace_id);
	tdt__proto_add_bytes(to, span_field, context->span_id, sizeof context->span_id);
	tdt__proto_add_fixed32(to, flags_field, context->flags | PARENT_IS_LOCAL);
}

/* --- Spans --- */

/* A link to the span for which the task `id` worked at `at`, or at least since `from`, if any. */
static void attach_link(struct span_export *export, uint64_t id, const char *what, uint64_t from,
			uint64_t at)
{
	uint32_t number = tdt__recording_task(export->recording, id);
	struct tdt__string *to = &export->message;
	const struct tdt_trace_context *context;
	const struct traced_task *traced;
	size_t start = to->n;

	if (number == TDT__RECORDED_NONE)
		return;
	traced = &export->traced[number];
	context = traced->now.valid && traced->since <= at ? &traced->now : &traced->before;
	if (!context->valid || (context == &traced->before && traced->since <= from))
		return;
	attach_context(to, context, LINK_TRACE_ID, LINK_SPAN_ID, LINK_FLAGS);
	attach_text(to, LINK_ATTRIBUTE, "tdt.link", what);
	tdt__proto_wrap(to, start, SPAN_LINK);
}

static const struct tdt_print_options name_form = { .size = sizeof(name_form),
						    .utf8 = TDT_PRINT_YES,
						    .color = TDT_PRINT_NO };

/* `for a mutex "db pool"`: without what differs from wait to wait, which the attributes have. */
static void name_of_wait(struct span_export *export, struct tdt_wait wait, uint64_t self)
{
	wait.orphaned = 0;
	if (wait.kind != TDT_WAIT_TASK)
		wait.owner = 0;
	if (wait.kind != TDT_WAIT_IO)
		wait.object = 0;
	tdt__string_puts(&export->name, " ");
	tdt__wait_for(&export->name, &wait, self,
		      tdt__recording_task_name(export->recording, wait.owner));
}

/*
 * Whom the wait depends on, or depended on at last; and, since a lock is passed on from task to
 * task that waits, who had it at first.
 */
static void attach_owners(struct span_export *export, const struct phase_span *span,
			  const struct tdt_wait *wait, uint64_t first)
{
	bool lock = wait->kind == TDT_WAIT_MUTEX;
	uint64_t from = span->phase.since;

	if (wait->owner != 0) {
		attach_task(export, lock ? "tdt.holder" : "tdt.owner", wait->owner);
		attach_link(export, wait->owner, lock ? "holder" : "owner", from,
			    span->phase.until - 1);
	}
	if (wait->orphaned != 0)
		attach_true(&export->message, "tdt.holder.ended");
	if (lock && first != 0 && first != wait->owner) {
		attach_task(export, "tdt.first_holder", first);
		attach_link(export, first, "first holder", from, from);
	}
}

static void attach_wait(struct span_export *export, const struct phase_span *span)
{
	struct tdt__string *to = &export->message;
	struct tdt__recorded_waits waits;
	const struct tdt_wait *wait = &waits.main;
	uint64_t first;
	char object[24];

	tdt__recorded_waits(export->recording, &span->known->parts, &waits);
	if (waits.n == 0)
		return;
	first = wait->owner;
	tdt__timeline_renew(&export->timeline, span->task, span->known, &waits.main);
	name_of_wait(export, *wait, export->recording->task[span->task].id);
	attach_text(to, SPAN_ATTRIBUTE, "tdt.wait.kind", wait_words[wait->kind]);
	if (wait->object != 0 && tdt__shared_object(wait->kind) != NULL) {
		snprintf(object, sizeof object, "0x%" PRIx64, wait->object);
		attach_text(to, SPAN_ATTRIBUTE, "tdt.wait.object", object);
	}
	if (waits.n > 1)
		attach_number(to, SPAN_ATTRIBUTE, "tdt.wait.leaves", VALUE_INT, waits.n);
	attach_owners(export, span, wait, first);
}

/* Who ended a wait by a wake-up, or, as the poll says that followed, by one that is missing. */
static void attach_waker(struct span_export *export, const struct tdt__recorded_item *end)
{
	if (end->event.kind == TDT_EVENT_WAKE || end->event.kind == TDT_EVENT_POLL)
		attach_task(export, "tdt.waker", end->event.c);
	if (end->event.kind == TDT_EVENT_WAKE)
		attach_thread(export, "tdt.waker.thread", end->thread);
}

/* What only phases of its kind have. */
static void attach_phase(struct span_export *export, const struct phase_span *span)
{
	const struct tdt__recorded_item *end = span->end != NULL ? &span->end->item : NULL;
	enum tdt__phase phase = span->phase.phase;

	tdt__string_puts(&export->name, tdt__phase_words[phase]);
	if (phase == TDT__WAITING)
		attach_wait(export, span);
	if (phase == TDT__WAITING && end != NULL)
		attach_waker(export, end);
	if (phase == TDT__POLLING)
		attach_thread(export, "thread", span->known->thread);
	else if (phase != TDT__WAITING && end != NULL && end->kind == TDT__RECORDED_BEGIN)
		attach_thread(export, "thread", end->thread);
}

/* The same for the same phase of the same process, and never 0. */
static uint64_t span_number(const struct span_export *export, const struct phase_span *span)
{
	uint64_t task = tdt__mix(export->process, export->recording->task[span->task].id);
	uint64_t number = tdt__mix(tdt__mix(task, span->phase.since), span->phase.phase);

	return number != 0 ? number : 1;
}

static void add_span(struct span_export *export, const struct phase_span *span)
{
	const struct tdt__recorded_task *task = &export->recording->task[span->task];
	const struct tdt__timeline_phase *phase = &span->phase;
	uint64_t number = span_number(export, span),
		 start = tdt__recording_wall(export->recording, phase->since);
	struct tdt__string *to = &export->message;
	size_t begin = to->n;

	export->name.n = 0;
	attach_context(to, &export->traced[span->task].now, SPAN_TRACE_ID, SPAN_PARENT, SPAN_FLAGS);
	tdt__proto_add_bytes(to, SPAN_ID, &number, sizeof number);
	tdt__proto_add_uint(to, SPAN_KIND, SPAN_KIND_INTERNAL);
	tdt__proto_add_fixed64(to, SPAN_START, start);
	tdt__proto_add_fixed64(to, SPAN_END, start + (phase->until - phase->since));
	attach_task(export, "tdt.task", task->id);
	if (task->name[0] == '\0' && task->file[0] != '\0') {
		attach_text(to, SPAN_ATTRIBUTE, "tdt.task.file", task->file);
		attach_number(to, SPAN_ATTRIBUTE, "tdt.task.line", VALUE_INT, task->line);
	}
	if (!span->over)
		attach_true(to, "tdt.not_over");
	if (!phase->sure)
		attach_true(to, "tdt.unsure");
	attach_phase(export, span);
	tdt__proto_add_bytes(to, SPAN_NAME, export->name.bytes, export->name.n);
	tdt__proto_wrap(to, begin, SCOPE_SPANS_SPAN);
}

/* --- Messages --- */

static void begin_message(struct span_export *export)
{
	const struct tdt_recording *header = &export->recording->header;
	struct tdt__string *to = &export->message;

	to->n = 0;
	export->in_message = 0;
	attach_text(to, RESOURCE_ATTRIBUTE, "service.name", header->program);
	attach_number(to, RESOURCE_ATTRIBUTE, "process.pid", VALUE_INT, header->pid);
	tdt__proto_wrap(to, 0, RESOURCE_SPANS_RESOURCE);
	export->scope_spans = to->n;
	tdt__proto_add_text(to, SCOPE_NAME, "tdt");
	tdt__proto_add_escaped(to, SCOPE_VERSION, header->library);
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

	if (!traced->now.valid || tdt__phase_words[phase->phase] == NULL)
		return;
	span.over = phase->until != 0;
	if (!span.over)
		phase->until = export->recording->until;
	if (traced->exact && phase->since < traced->since)
		phase->since = traced->since;
	/* The last event of a process that was killed may begin what hung: that counts, too. */
	if (phase->until < phase->since + span.over || phase->until < traced->since)
		return;
	if (phase->until - phase->since < export->longer) {
		export->counts->shorter++;
		return;
	}
	add_span(export, &span);
	export->counts->spans++;
	export->in_message++;
	if (export->message.failed || export->message.n >= TDT__OTLP_MESSAGE)
		end_message(export);
}

/* The phase of a task that goes on. */
static struct phase_span going_on(const struct span_export *export, uint32_t number)
{
	const struct tdt__timeline_task *known = &export->timeline.task[number];

	return (struct phase_span){ .task = number,
				    .known = known,
				    .phase = tdt__timeline_last(known) };
}

/* --- The whole --- */

/* What the item says of its task's trace.  False: nothing. */
static bool says_trace(const struct span_export *export, const struct tdt__recorded_item *item,
		       struct traced_task **traced, struct tdt_trace_context *context)
{
	uint32_t number = tdt__recording_task(export->recording, item->event.task);

	if (number == TDT__RECORDED_NONE ||
	    !tdt__recorded_context(export->recording, item, context))
		return false;
	*traced = &export->traced[number];
	return true;
}

/* Whether the task has its trace from the item on.  If not, a missing event said so before. */
static bool is_change(const struct tdt__recorded_item *item)
{
	return item->event.kind == TDT_EVENT_CONTEXT || item->event.kind == TDT_EVENT_SPAWN;
}

/*
 * A task gets a trace context, or loses it.  If it had it before, its whole phase belongs to the
 * trace.
 */
static void follow_context(struct span_export *export, const struct tdt__recorded_item *item)
{
	struct tdt_trace_context context;
	struct traced_task *traced;
	struct phase_span span;

	if (!says_trace(export, item, &traced, &context))
		return;
	if (memcmp(&traced->now, &context, sizeof context) == 0) {
		traced->since = item->ns < traced->since ? item->ns : traced->since;
		return;
	}
	if (is_change(item)) {
		span = going_on(export, (uint32_t)(traced - export->traced));
		if (span.phase.until == 0 || span.phase.until > item->ns)
			span.phase.until = item->ns;
		export_span(export, span);
	}
	*traced = (struct traced_task){ context, traced->now, item->ns, is_change(item) };
}

/*
 * The traces to which tasks belonged when the recording begins: where the first item that says
 * something of a task is no change, it was so all the time in which no event is missing.
 */
static int find_first_contexts(struct span_export *export)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	struct tdt_trace_context context;
	struct traced_task *traced;
	int error = tdt__recording_begin(&cursor, export->recording);

	if (error != 0)
		return error;
	while (tdt__recording_next(&cursor, &item)) {
		if (!says_trace(export, &item, &traced, &context) || traced->exact)
			continue;
		traced->exact = true; /* for now: the first item was found */
		traced->since = export->recording->sure_from;
		if (!is_change(&item))
			traced->now = context;
	}
	tdt__recording_end(&cursor);
	for (size_t i = 0; i < export->recording->n_tasks; i++)
		export->traced[i].exact = false;
	return 0;
}

static void export_steps(struct span_export *export)
{
	struct tdt__step step;

	while (export->error == 0 && tdt__timeline_next(&export->timeline, &step)) {
		struct phase_span span = { .task = step.task, .known = &step.before, .end = &step };

		if (tdt__step_ends_phase(&step, &span.phase))
			export_span(export, span);
		follow_context(export, &step.item);
	}
	for (uint32_t i = 0; i < export->recording->n_tasks && export->error == 0; i++)
		export_span(export, going_on(export, i));
	end_message(export);
}

int tdt__otlp_write(const struct tdt__recording *recording, uint64_t longer, tdt__otlp_fn *take,
		    void *arg, struct tdt__otlp_counts *counts)
{
	const struct tdt_recording *header = &recording->header;
	struct span_export export = { .recording = recording,
				      .longer = longer,
				      .name.options = &name_form,
				      .take = take,
				      .arg = arg,
				      .counts = counts };

	*counts = (struct tdt__otlp_counts){ 0 };
	export.process = tdt__mix(tdt__mix(0, header->pid), header->start_real);
	export.traced = calloc(recording->n_tasks + 1, sizeof(*export.traced));
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
