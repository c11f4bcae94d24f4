// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A recording as a Perfetto trace: which tracks there are, and what stands on them.
 *
 *	process
 *	├ thread            its polls, with the stacks of their leaves; its idling; a mark for each
 *	│                   wake-up and each spawn.  A flow leads from a wake-up to the poll
 *	├ task              its phases: spawned, waiting for what, runnable, polling
 *	│ └ name            slices of the program's own: from NAME__start to NAME__end
 *	└ counters          tasks by phase, migrations
 *
 * A track is told of when the first event on it is written.
 */

#include "perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "base/array.h"
#include "exporter.h"
#include "recording/recording.h"

/* The clocks of the system are told again when CLOCK_BOOTTIME has moved by this, ns. */
#define BOOT_MOVED 1000000

/* --- What is not in the recording: slices up to the oldest events, and marks --- */

static int by_time(const void *a, const void *b)
{
	const struct tdt__loss *x = a, *y = b;

	return (x->until > y->until) - (x->until < y->until);
}

/* Begin a slice on the track of the ring's thread. */
static void begin_loss(struct tdt__exporter *exporter, const struct tdt__recorded_ring *ring)
{
	struct tdt__loss loss = { .until = ring->from };

	if (ring->lost == 0 || (ring->kind != TDT_RING_POLLS && ring->kind != TDT_RING_OTHERS) ||
	    ring->slots == 0)
		return;
	loss.track = tdt__export_thread(exporter, ring->first_thread);
	tdt__export_put(exporter, tdt__recording_from(exporter->recording), TDT__PACKET_BEGIN,
			loss.track,
			tdt__packets_name(&exporter->packets, TDT__EVENT_NAMES, "events are lost"));
	exporter->loss[exporter->n_losses++] = loss;
}

static void begin_losses(struct tdt__exporter *exporter)
{
	const struct tdt__recorded_ring *rings;
	size_t n;

	rings = tdt__recording_rings(exporter->recording, &n);
	exporter->loss = calloc(n + 1, sizeof(*exporter->loss));
	if (exporter->loss == NULL) {
		tdt__packets_fail(&exporter->packets);
		return;
	}
	for (size_t i = 0; i < n; i++)
		begin_loss(exporter, &rings[i]);
	qsort(exporter->loss, exporter->n_losses, sizeof(*exporter->loss), by_time);
}

/* Say what is lost, at the beginning. */
static void export_losses(struct tdt__exporter *exporter)
{
	const struct tdt_recording *header = tdt__recording_header(exporter->recording);
	uint64_t from = tdt__recording_from(exporter->recording);
	uint32_t stacks = tdt__recording_stacks_lost(exporter->recording);

	if (header->missed != 0) {
		tdt__export_annotate(exporter, "events", header->missed);
		tdt__export_annotate(exporter, "polls", header->missed_polls);
		tdt__export_mark(exporter, from, exporter->process,
				 "events were not recorded: there was no ring for their thread");
	}
	if (stacks != 0) {
		tdt__export_annotate(exporter, "stacks", stacks);
		tdt__export_mark(exporter, from, exporter->process,
				 "stacks were not recorded: their table was full, or no capture "
				 "was left");
	}
	begin_losses(exporter);
}

/* The times up to `ns` from which on nothing is lost. */
static void export_losses_until(struct tdt__exporter *exporter, uint64_t ns)
{
	while (exporter->next_loss < exporter->n_losses &&
	       exporter->loss[exporter->next_loss].until <= ns) {
		const struct tdt__loss *loss = &exporter->loss[exporter->next_loss++];

		tdt__export_put(exporter, loss->until, TDT__PACKET_END, loss->track, 0);
	}
}

/* --- The program's own events: marks and slices on the tracks of tasks --- */

/* The arguments of an end have names of their own: a slice has those of its beginning, too. */
static void annotate_arguments(struct tdt__exporter *exporter, struct tdt__recorded_user *user,
			       bool ends)
{
	struct tdt__packets *packets = &exporter->packets;
	struct tdt__string *to = &exporter->annotations;
	struct tdt__recorded_argument argument;
	char name[32];

	for (unsigned i = 1; tdt__recorded_user_next(user, &argument); i++) {
		snprintf(name, sizeof(name), ends ? "argument %u of the end" : "argument %u", i);
		if (argument.type == TDT_USER_INT)
			tdt__packets_annotate_int(packets, to, name, argument.i);
		else if (argument.type == TDT_USER_UINT)
			tdt__packets_annotate(packets, to, name, argument.u);
		else if (argument.type == TDT_USER_DOUBLE)
			tdt__packets_annotate_double(packets, to, name, argument.d);
		else
			tdt__packets_annotate_text(packets, to, name, argument.text);
	}
}

/* The track of the slices of this name (valid UTF-8) on a track.  NULL: no memory. */
static struct tdt__user_track *user_track(struct tdt__exporter *exporter, uint64_t parent,
					  const char *text, size_t n)
{
	uint32_t name = tdt__packets_intern(&exporter->packets, TDT__EVENT_NAMES, text, n), i;
	uint32_t hash = (uint32_t)tdt__mix(parent, name);
	struct tdt__user_track track = { .parent = parent, .name = name };

	TDT__INDEX_EACH (i, &exporter->user_table.index, hash)
		if (exporter->user[i].parent == parent && exporter->user[i].name == name)
			return &exporter->user[i];
	track.uuid = tdt__export_track(exporter, parent, text, n);
	i = tdt__table_add(&exporter->user_table, hash, &track, sizeof track);
	if (i != TDT__INDEX_NONE)
		return &exporter->user[i];
	tdt__packets_fail(&exporter->packets);
	return NULL;
}

/* An end without a beginning is a mark: the beginning was overwritten. */
static void put_slice(struct tdt__exporter *exporter, uint64_t ns, uint64_t parent, bool begins)
{
	struct tdt__user_track *track =
	    user_track(exporter, parent, exporter->text.bytes, exporter->text.n);
	enum tdt__packet_type type;

	if (track == NULL)
		return;
	type = begins		  ? TDT__PACKET_BEGIN
	       : track->open != 0 ? TDT__PACKET_END
				  : TDT__PACKET_INSTANT;
	track->open += begins ? 1u : 0u;
	track->open -= type == TDT__PACKET_END ? 1u : 0u;
	tdt__export_put(exporter, ns, type, track->uuid, type == TDT__PACKET_END ? 0 : track->name);
}

/* If `text` ends with `end`, cut that off. */
static bool cut_end(struct tdt__string *text, const char *end)
{
	size_t n = strlen(end);

	if (text->failed || text->n <= n || memcmp(text->bytes + text->n - n, end, n) != 0)
		return false;
	text->n -= n;
	return true;
}

static void export_user(struct tdt__exporter *exporter, const struct tdt__recorded_item *item)
{
	uint32_t task = tdt__recording_task(exporter->recording, item->event.task);
	char payload[TDT__PAYLOAD_MAX + 1];
	size_t n = tdt__recording_payload(exporter->recording, item, payload);
	struct tdt__recorded_user user;
	uint64_t track;
	bool begins, ends;

	if (!tdt__recorded_user(&user, &item->event, payload, n))
		return;
	track = item->event.task == 0 || task == TDT__RECORDED_NONE
		    ? tdt__export_thread(exporter, item->thread)
		    : tdt__export_task(exporter, task);
	exporter->text.n = 0;
	tdt__string_escape(&exporter->text, user.provider, true, '\0');
	tdt__string_puts(&exporter->text, ":");
	tdt__string_escape(&exporter->text, user.name, true, '\0');
	begins = cut_end(&exporter->text, "__start");
	ends = cut_end(&exporter->text, "__end");
	annotate_arguments(exporter, &user, ends);
	if (begins || ends)
		put_slice(exporter, item->ns, track, begins);
	else
		tdt__export_put(exporter, item->ns, TDT__PACKET_INSTANT, track,
				tdt__export_text(exporter));
}

/* --- The items, by kind --- */

/*
 * Set `*stack` to that of the next leaf of a poll, from part `*i` on, which becomes the part behind
 * it.  False: there are no more.
 */
static bool next_stack(struct tdt__exporter *exporter, const struct tdt__recorded_item *begin,
		       uint32_t *i, uint32_t *stack)
{
	struct tdt__recorded_item part;

	while (*i < begin->parts.n) {
		tdt__recording_part(exporter->recording, &begin->parts, (*i)++, &part);
		if (part.event.kind != TDT_EVENT_STACK)
			continue;
		*stack = tdt__packets_stack(&exporter->packets, exporter->recording, part.event.a);
		return true;
	}
	return false;
}

/* A mark on a track, with a stack (0: none). */
static void put_instant(struct tdt__exporter *exporter, uint64_t ns, uint64_t track, uint32_t name,
			uint32_t callstack)
{
	tdt__export_event(exporter, ns,
			  (struct tdt__packet_event){ .type = TDT__PACKET_INSTANT,
						      .track = track,
						      .name = name,
						      .callstack = callstack });
}

static uint32_t event_name(struct tdt__exporter *exporter, const char *words)
{
	return tdt__packets_name(&exporter->packets, TDT__EVENT_NAMES, words);
}

/* For each further leaf there is a mark with its stack. */
static void put_poll_begin(struct tdt__exporter *exporter, const struct tdt__step *step)
{
	struct tdt__task_track *track = &exporter->task_track[step->task];
	uint64_t thread = tdt__export_thread(exporter, step->item.thread);
	uint32_t i = 0, stack = 0;

	next_stack(exporter, &step->item, &i, &stack);
	tdt__export_event(exporter, step->item.ns,
			  (struct tdt__packet_event){
			      .type = TDT__PACKET_BEGIN,
			      .track = thread,
			      .name = tdt__export_task_name(exporter, step->task, "", &track->name),
			      .callstack = stack,
			      .flow_end = step->wake != 0 ? exporter->flows + step->wake : 0 });
	while (next_stack(exporter, &step->item, &i, &stack))
		put_instant(exporter, step->item.ns, thread, event_name(exporter, "another leaf"),
			    stack);
}

static void put_poll_end(struct tdt__exporter *exporter, const struct tdt__step *step)
{
	tdt__export_cpu(exporter, &step->item.event);
	if ((step->item.event.detail & 3) == TDT_PANICKED)
		tdt__packets_annotate_text(&exporter->packets, &exporter->annotations, "result",
					   "panicked");
	tdt__export_put(exporter, step->item.ns, TDT__PACKET_END,
			tdt__export_thread(exporter, step->item.thread), 0);
}

static void put_poll(struct tdt__exporter *exporter, const struct tdt__step *step)
{
	if (step->item.kind == TDT__RECORDED_BEGIN)
		put_poll_begin(exporter, step);
	else
		put_poll_end(exporter, step);
}

static void put_wake(struct tdt__exporter *exporter, const struct tdt__step *step)
{
	struct tdt__task_track *track = &exporter->task_track[step->task];

	tdt__export_event(
	    exporter, step->item.ns,
	    (struct tdt__packet_event){
		.type = TDT__PACKET_INSTANT,
		.track = tdt__export_thread(exporter, step->item.thread),
		.name = tdt__export_task_name(exporter, step->task, "wakes ", &track->wakes),
		.flow = step->wake != 0 ? exporter->flows + step->wake : 0 });
}

static void put_spawn(struct tdt__exporter *exporter, const struct tdt__step *step)
{
	struct tdt__task_track *track = &exporter->task_track[step->task];
	uint64_t thread = tdt__export_thread(exporter, step->item.thread);

	tdt__export_put(exporter, step->item.ns, TDT__PACKET_INSTANT, thread,
			tdt__export_task_name(exporter, step->task, "spawns ", &track->spawns));
}

static void put_end(struct tdt__exporter *exporter, const struct tdt__step *step)
{
	const struct tdt_event *event = &step->item.event;
	uint8_t outcome = event->detail & 3;
	bool aborted = (event->detail & TDT_EVENT_END_ABORTED) != 0;

	if (aborted)
		tdt__export_annotate(exporter, "by task", event->a | (uint64_t)event->b << 32);
	tdt__export_mark(exporter, step->item.ns, tdt__export_task(exporter, step->task),
			 outcome == TDT_PANICKED  ? "panicked"
			 : aborted		  ? "aborted"
			 : outcome == TDT_PENDING ? "dropped"
						  : "ready");
}

static void put_park(struct tdt__exporter *exporter, const struct tdt__recorded_item *item)
{
	bool begins = item->kind == TDT__RECORDED_BEGIN;

	if (!begins)
		tdt__export_cpu(exporter, &item->event);
	tdt__export_put(exporter, item->ns, begins ? TDT__PACKET_BEGIN : TDT__PACKET_END,
			tdt__export_thread(exporter, item->thread), begins ? exporter->parked : 0);
}

/* The stack of a poll that was found going on. */
static void put_stack(struct tdt__exporter *exporter, const struct tdt__recorded_item *item)
{
	uint32_t task = tdt__recording_task(exporter->recording, item->event.task);
	uint32_t callstack =
	    tdt__packets_stack(&exporter->packets, exporter->recording, item->event.a);

	if (task == TDT__RECORDED_NONE || callstack == 0)
		return;
	put_instant(exporter, item->ns, tdt__export_task(exporter, task),
		    event_name(exporter, "is being polled for long"), callstack);
}

/* What the recorder says of a wait of the task, which lasted `c` nanoseconds. */
static void put_remark(struct tdt__exporter *exporter, const struct tdt__recorded_item *item,
		       const char *words)
{
	uint32_t task = tdt__recording_task(exporter->recording, item->event.task);

	if (task == TDT__RECORDED_NONE)
		return;
	tdt__export_annotate(exporter, "ns", item->event.c);
	tdt__export_mark(exporter, item->ns, tdt__export_task(exporter, task), words);
}

/* --- The whole --- */

/* The recorder was started or stopped; a step of a task says that it is not known since then. */
static void put_mark(struct tdt__exporter *exporter, const struct tdt__step *step,
		     const char *words)
{
	if (step->task == TDT__RECORDED_NONE)
		tdt__export_mark(exporter, step->item.ns, exporter->process, words);
}

/* Tell the clocks again, if the machine was suspended. */
static void put_clock(struct tdt__exporter *exporter, const struct tdt__recorded_item *item)
{
	uint64_t ahead = item->event.c - item->event.task, moved = ahead - exporter->boot_ahead;
	char payload[TDT__PAYLOAD_MAX + 1];
	uint64_t real;

	if (moved < BOOT_MOVED || -moved < BOOT_MOVED)
		return;
	if (tdt__recording_payload(exporter->recording, item, payload) < sizeof(real))
		return;
	memcpy(&real, payload, sizeof(real));
	exporter->boot_ahead = ahead;
	tdt__packets_clocks(&exporter->packets, item->ns, item->ns + ahead,
			    real + (item->ns - item->event.task));
}

static void put_step(struct tdt__exporter *exporter, const struct tdt__step *step)
{
	const struct tdt__recorded_item *item = &step->item;

	switch (item->event.kind) {
	case TDT_EVENT_POLL:
		put_poll(exporter, step);
		break;
	case TDT_EVENT_WAKE:
		put_wake(exporter, step);
		break;
	case TDT_EVENT_SPAWN:
		put_spawn(exporter, step);
		break;
	case TDT_EVENT_END:
		put_end(exporter, step);
		break;
	case TDT_EVENT_PARK:
		put_park(exporter, item);
		break;
	case TDT_EVENT_STACK:
		put_stack(exporter, item);
		break;
	case TDT_EVENT_DELAY:
		put_remark(exporter, item, "waited long for a worker");
		break;
	case TDT_EVENT_LOST:
		put_remark(exporter, item, "had lost a wake-up");
		break;
	case TDT_EVENT_USER:
		export_user(exporter, item);
		break;
	case TDT_EVENT_CLOCK:
		put_clock(exporter, item);
		break;
	case TDT_EVENT_START:
		put_mark(exporter, step, "recording started");
		break;
	case TDT_EVENT_STOP:
		put_mark(exporter, step, "recording stopped");
		break;
	default:
		break;
	}
}

static void put_all_steps(struct tdt__exporter *exporter)
{
	struct tdt__step step;

	while (exporter->packets.error == 0 && tdt__timeline_next(&exporter->timeline, &step)) {
		export_losses_until(exporter, step.item.ns);
		tdt__export_samples(exporter, step.item.ns);
		put_step(exporter, &step);
		tdt__export_phase(exporter, &step);
		tdt__export_count(exporter, &step);
	}
	tdt__export_last_phases(exporter);
	tdt__export_samples(exporter,
			    tdt__recording_until(exporter->recording) + exporter->sampler.every);
}

static void write_packets(struct tdt__exporter *exporter)
{
	const struct tdt__recorded_clock *clock;
	uint64_t from = tdt__recording_from(exporter->recording);
	size_t n;

	clock = tdt__recording_clocks(exporter->recording, &n);
	exporter->boot_ahead = clock->boot - clock->monotonic;
	tdt__packets_clocks(&exporter->packets, from, clock->boot + (from - clock->monotonic),
			    clock->real + (from - clock->monotonic));
	exporter->process = tdt__export_process(exporter);
	exporter->cpu = tdt__packets_name(&exporter->packets, TDT__ANNOTATION_NAMES, "cpu");
	exporter->parked = tdt__packets_name(&exporter->packets, TDT__EVENT_NAMES, "parked");
	tdt__export_phase_names(exporter);
	tdt__export_counters(exporter);
	export_losses(exporter);
	put_all_steps(exporter);
}

static int prepare_export(struct tdt__exporter *exporter, const struct tdt__recording *recording)
{
	exporter->recording = recording;
	exporter->task = tdt__recording_tasks(recording, &exporter->n_tasks);
	exporter->thread = tdt__recording_threads(recording, &exporter->n_threads);
	exporter->task_track = calloc(exporter->n_tasks + 1, sizeof(*exporter->task_track));
	exporter->thread_track = calloc(exporter->n_threads + 1, sizeof(*exporter->thread_track));
	if (exporter->task_track == NULL || exporter->thread_track == NULL)
		return -ENOMEM;
	return tdt__timeline_begin(&exporter->timeline, recording);
}

/* A number that no other recording has. */
static uint64_t seed(const struct tdt_recording *header)
{
	return tdt__mix(tdt__mix(tdt__mix(0, header->pid), header->start), header->start_real);
}

static int write_trace(struct tdt__exporter *exporter, const struct tdt__perfetto_options *options,
		       FILE *out)
{
	const struct tdt_recording *header = tdt__recording_header(exporter->recording);
	int err = tdt__packets_begin(&exporter->packets, options, out, seed(header));

	if (err != 0)
		return err;
	exporter->flows = seed(header) << 32;
	write_packets(exporter);
	if (exporter->text.failed)
		tdt__packets_fail(&exporter->packets);
	return tdt__packets_end(&exporter->packets);
}

int tdt__perfetto_write(const struct tdt__recording *recording,
			const struct tdt__perfetto_options *options, FILE *out)
{
	static const struct tdt__perfetto_options none;
	struct tdt__exporter *exporter = calloc(1, sizeof(*exporter));
	int err = exporter == NULL ? -ENOMEM : prepare_export(exporter, recording);

	if (err == 0) {
		err = write_trace(exporter, options == NULL ? &none : options, out);
		tdt__timeline_end(&exporter->timeline);
	}
	if (exporter == NULL)
		return err;
	tdt__string_free(&exporter->annotations);
	tdt__string_free(&exporter->text);
	tdt__table_fini(&exporter->user_table);
	free(exporter->loss);
	free(exporter->task_track);
	free(exporter->thread_track);
	free(exporter);
	return err;
}
