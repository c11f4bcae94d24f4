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
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "exporter.h"

/* The clocks of the system are told again when CLOCK_BOOTTIME has moved by this, ns. */
#define BOOT_MOVED 1000000

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
		tdt__export_user(exporter, item);
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
		tdt__export_losses_until(exporter, step.item.ns);
		tdt__export_samples(exporter, step.item.ns);
		put_step(exporter, &step);
		tdt__export_phase(exporter, &step);
		tdt__export_count(exporter, &step);
	}
	tdt__export_last_phases(exporter);
	tdt__export_samples(exporter,
			    exporter->recording->until + exporter->sampler.every);
}

static void write_packets(struct tdt__exporter *exporter)
{
	const struct tdt__recorded_clock *clock = exporter->recording->clock;
	uint64_t from = exporter->recording->from;

	exporter->boot_ahead = clock->boot - clock->monotonic;
	tdt__packets_clocks(&exporter->packets, from, clock->boot + (from - clock->monotonic),
			    clock->real + (from - clock->monotonic));
	exporter->process = tdt__export_process(exporter);
	exporter->cpu = tdt__packets_name(&exporter->packets, TDT__ANNOTATION_NAMES, "cpu");
	exporter->parked = tdt__packets_name(&exporter->packets, TDT__EVENT_NAMES, "parked");
	tdt__export_phase_names(exporter);
	tdt__export_counters(exporter);
	tdt__export_losses(exporter);
	put_all_steps(exporter);
}

static int prepare_export(struct tdt__exporter *exporter, const struct tdt__recording *recording)
{
	exporter->recording = recording;
	exporter->task = recording->task;
	exporter->n_tasks = recording->n_tasks;
	exporter->thread = recording->thread;
	exporter->n_threads = recording->n_threads;
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
	const struct tdt_recording *header = &exporter->recording->header;
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
