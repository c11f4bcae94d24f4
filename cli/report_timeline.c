// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The timeline of a page: the phases of each task of a recording, one behind the other.  A phase is
 * two numbers, its length and what it was; those of polls also say what the threads did.
 */

#include "cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/texts.h"
#include "recording/timeline.h"
#include "tree-printer/forms.h"
#include "tree-printer/schema.h"

#define SPANS_MAX 350000 /* the newest ones; each takes some 12 bytes of the page */
#define WHATS_MAX 10000	 /* each takes some 120 bytes; further waits are told by their kind */

struct span {
	uint64_t since, until;
	uint32_t task, what;
};

/* A phase of a task: what it did, or waited for.  It is compared as bytes. */
struct what {
	uint64_t object, owner;
	uint32_t phase, sure, thread, waits, kind, orphaned;
	char name[TDT_WAIT_NAME_MAX + 1];
};

struct gathered {
	struct tdt__timeline timeline;
	struct span *span; /* a ring of SPANS_MAX, until it is sorted */
	uint64_t n;	   /* all that there were */
	uint64_t by_kind;  /* waits of which only the kind is in the page */
	size_t room;
	struct tdt__texts whats;
	bool failed;
};

static void tell_wait(struct gathered *gathered, uint32_t task,
		      const struct tdt__timeline_task *known, struct what *what)
{
	struct tdt__recorded_waits waits;

	tdt__recorded_waits(gathered->timeline.recording, &known->parts, &waits);
	what->kind = waits.main.kind;
	what->waits = waits.n != 0;
	if (gathered->whats.n >= WHATS_MAX) {
		gathered->by_kind++;
		return;
	}
	what->waits = waits.n;
	memcpy(what->name, waits.main.name, sizeof what->name);
	if (waits.main.kind == TDT_WAIT_TIMER)
		return; /* each has a number of its own */
	tdt__timeline_renew(&gathered->timeline, task, known, &waits.main);
	what->object = waits.main.object;
	what->owner = waits.main.owner;
	what->orphaned = waits.main.orphaned;
}

static uint32_t number_what(struct gathered *gathered, uint32_t task,
			    const struct tdt__timeline_task *known,
			    const struct tdt__timeline_phase *phase)
{
	struct what what;

	memset(&what, 0, sizeof what);
	what.phase = phase->phase;
	what.sure = phase->sure;
	if (phase->phase == TDT__POLLING)
		what.thread = known->thread;
	if (phase->phase == TDT__WAITING)
		tell_wait(gathered, task, known, &what);
	return tdt__texts_number(&gathered->whats, &what, sizeof what);
}

static void keep_span(struct gathered *gathered, uint32_t task,
		      const struct tdt__timeline_task *known,
		      const struct tdt__timeline_phase *phase)
{
	struct span span = { phase->since, phase->until, task, 0 };

	if (phase->phase == TDT__UNKNOWN || phase->phase == TDT__ENDED ||
	    span.until <= span.since)
		return;
	span.what = number_what(gathered, task, known, phase);
	if (span.what == TDT__INDEX_NONE ||
	    (gathered->n < SPANS_MAX &&
	     !tdt__array_grow(&gathered->span, (size_t)gathered->n, &gathered->room,
			      sizeof span))) {
		gathered->failed = true;
		return;
	}
	gathered->span[gathered->n++ % SPANS_MAX] = span;
}

static void gather_spans(struct gathered *gathered)
{
	struct tdt__timeline *timeline = &gathered->timeline;
	struct tdt__timeline_phase phase;
	struct tdt__step step;

	while (!gathered->failed && tdt__timeline_next(timeline, &step))
		if (tdt__step_ends_phase(&step, &phase))
			keep_span(gathered, step.task, &step.before, &phase);
	for (uint32_t i = 0; i < timeline->n_tasks && !gathered->failed; i++) {
		phase = tdt__timeline_last(&timeline->task[i]);
		if (phase.until == 0)
			phase.until = timeline->recording->until;
		keep_span(gathered, i, &timeline->task[i], &phase);
	}
}

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return (x->since > y->since) - (x->since < y->since);
}

static void put_what(struct tdt__json *json, const struct gathered *gathered, uint32_t number)
{
	const struct tdt__recording *recording = gathered->timeline.recording;
	struct what what;
	uint32_t owner;

	memcpy(&what, gathered->whats.text[number].bytes, sizeof what);
	tdt__json_begin(json, NULL, '{');
	tdt__json_string(json, "phase", tdt__phase_words[what.phase]);
	tdt__json_true(json, "unsure", what.sure == 0);
	if (what.phase == TDT__POLLING && what.thread < recording->n_threads)
		tdt__json_u64(json, "thread", what.thread);
	if (what.waits != 0) {
		tdt__json_string(json, "kind", wait_words[tdt__wait_kind(what.kind)]);
		if (what.object != 0)
			tdt__json_address(json, "object", what.object);
		tdt__json_known_string(json, "name", what.name);
		tdt__json_known_u64(json, "owner", what.owner);
		owner = what.owner != 0 ? tdt__recording_task(recording, what.owner)
					: TDT__RECORDED_NONE;
		if (owner != TDT__RECORDED_NONE)
			tdt__json_known_string(json, "owner_name", recording->task[owner].name);
		tdt__json_true(json, "orphaned", what.orphaned != 0);
		tdt__json_u64(json, "waits", what.waits);
	}
	tdt__json_end(json, '}');
}

/* Where nothing is known, the phase has the number of all phases. */
static void put_span(struct tdt__json *json, const struct gathered *gathered,
		     const struct span *span, uint64_t *at)
{
	if (span->since > *at) {
		tdt__json_u64(json, NULL, span->since - *at);
		tdt__json_u64(json, NULL, gathered->whats.n);
		*at = span->since;
	}
	if (span->until <= *at)
		return;
	tdt__json_u64(json, NULL, span->until - *at);
	tdt__json_u64(json, NULL, span->what);
	*at = span->until;
}

static void put_task_spans(struct tdt__json *json, const struct gathered *gathered, size_t n,
		      uint64_t start)
{
	const struct tdt__recorded_task *task;

	tdt__json_begin(json, "tasks", '[');
	for (size_t i = 0; i < n;) {
		uint64_t at = gathered->span[i].since;
		uint32_t number = gathered->span[i].task;

		task = &gathered->timeline.recording->task[number];
		tdt__json_begin(json, NULL, '{');
		tdt__json_u64(json, "id", task->id);
		tdt__json_known_string(json, "name", task->name);
		tdt__json_u64(json, "at_ns", at - start);
		tdt__json_begin(json, "spans", '[');
		for (; i < n && gathered->span[i].task == number; i++)
			put_span(json, gathered, &gathered->span[i], &at);
		tdt__json_end(json, ']');
		tdt__json_end(json, '}');
	}
	tdt__json_end(json, ']');
}

static void recorded_thread_members(struct tdt__json *json,
				    const struct tdt__recorded_thread *thread)
{
	tdt__json_u64(json, "id", thread->id);
	tdt__json_known_string(json, "name", thread->name);
}

static void put_timeline(struct tdt__json *json, struct gathered *gathered)
{
	const struct tdt__recording *recording = gathered->timeline.recording;
	size_t n = gathered->n < SPANS_MAX ? (size_t)gathered->n : SPANS_MAX;
	uint64_t start = recording->until;

	if (n != 0)
		qsort(gathered->span, n, sizeof *gathered->span, compare_spans);
	for (size_t i = 0; i < n; i++)
		start = gathered->span[i].since < start ? gathered->span[i].since : start;
	tdt__json_begin(json, "timeline", '{');
	tdt__json_u64(json, "start_ns", start);
	tdt__json_u64(json, "end_ns", recording->until);
	tdt__json_u64(json, "end_real_ns", recording->until + tdt__recording_real(recording));
	tdt__json_known_u64(json, "left_out", gathered->n - n);
	tdt__json_known_u64(json, "by_kind", gathered->by_kind);
	tdt__json_end(json, '}');
	TDT__JSON_LIST(json, "threads", recording->thread, recording->n_threads,
		       recorded_thread_members, json);
	tdt__json_begin(json, "what", '[');
	for (uint32_t i = 0; i < gathered->whats.n; i++)
		put_what(json, gathered, i);
	tdt__json_end(json, ']');
	put_task_spans(json, gathered, n, start);
	tdt__json_finish(json);
}

int report_timeline(const struct tdt__recording *recording, FILE *file)
{
	struct gathered gathered = { .n = 0 };
	struct tdt__out out = { .file = file };
	int error = tdt__timeline_begin(&gathered.timeline, recording);

	if (error != 0)
		return error;
	gather_spans(&gathered);
	if (!gathered.failed) {
		struct tdt__json json = tdt__json_document(&out);

		put_timeline(&json, &gathered);
	}
	tdt__timeline_end(&gathered.timeline);
	tdt__texts_fini(&gathered.whats);
	free(gathered.span);
	return gathered.failed ? -ENOMEM : tdt__out_end(&out);
}
