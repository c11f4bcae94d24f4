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
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "base/array.h"
#include "base/text.h"
#include "base/text.h"
#include "packets.h"
#include "recording/recording.h"
#include "recording/timeline.h"
#include "words.h"

/* The clocks of the system are told again when CLOCK_BOOTTIME has moved by this, ns. */
#define BOOT_MOVED 1000000

enum export_counter {
	TDT__COUNT_WAITING,
	TDT__COUNT_RUNNABLE,
	TDT__COUNT_POLLING,
	TDT__COUNT_MIGRATIONS,
	TDT__COUNTERS
};

struct sampler {
	uint64_t every, next; /* ns */
	uint64_t track[TDT__COUNTERS];
	int64_t value[TDT__COUNTERS]; /* now; of migrations: since the last sample */
	int64_t told[TDT__COUNTERS];
};

/* What a task waited for last. */
struct waited {
	uint64_t object, owner;
	uint64_t hash; /* of the object's name */
	uint32_t kind;
	uint32_t waits;
	uint32_t sure, orphaned;
	uint32_t printed; /* the interned name that was made of it; 0: not yet */
};

struct task_track {
	uint64_t uuid;	/* 0: the trace does not have the track yet */
	uint32_t name;	/* interned; 0: not yet */
	uint32_t wakes; /* the same: the name of a wake-up, and of a spawn */
	uint32_t spawns;
	struct waited waited;
	bool open;	/* a phase is */
	uint64_t until; /* of its last phase that is over, ns */
};

/* A track of slices of the program's own. */
struct user_track {
	uint64_t parent; /* the key, with the name */
	uint32_t name;	 /* interned */
	uint32_t open;	 /* slices */
	uint64_t uuid;	 /* 0: the trace does not have the track yet */
};

/* The time before which events of a thread are lost. */
struct loss {
	uint64_t until; /* ns */
	uint64_t track;
};

struct exporter {
	struct tdt__packets packets;
	const struct tdt__recording *recording;
	struct tdt__timeline timeline;
	uint64_t process;	/* its track */
	uint64_t *thread_track; /* by the thread's number; 0: the trace does not have it yet */
	struct task_track *task_track;
	struct sampler sampler;
	uint64_t flows;	     /* what is added to the numbers of wake-ups */
	uint64_t boot_ahead; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC, as the trace has it */
	struct loss *loss;   /* in the order of time */
	size_t n_losses, next_loss;
	uint32_t parked, cpu;		/* interned names */
	uint32_t phase[2][TDT__PHASES]; /* the same: unsure, sure; 0: the phase is not drawn */
	struct tdt__string track;	/* the next descriptor, made field by field */
	struct tdt__string annotations; /* of the next event */
	struct tdt__string text;
	TDT__TABLE(struct user_track, user, n_users);
};

/* --- Tracks --- */

/* Fields of TrackDescriptor and what it contains. */
enum {
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	COUNTER_UNIT = 6,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5
};

static uint64_t export_process(struct exporter *exporter)
{
	const struct tdt_recording *header = &exporter->recording->header;
	struct tdt__string *track = &exporter->track;

	tdt__proto_add_uint(track, PROCESS_PID, header->pid);
	tdt__proto_add_escaped(track, PROCESS_NAME, header->program);
	tdt__proto_wrap(track, 0, TRACK_PROCESS);
	return tdt__packets_track(&exporter->packets, track);
}

static uint64_t export_thread(struct exporter *exporter, uint32_t number)
{
	const struct tdt_recording *header = &exporter->recording->header;
	const struct tdt__recorded_thread *thread = &exporter->recording->thread[number];
	struct tdt__string *track = &exporter->track;

	if (exporter->thread_track[number] != 0)
		return exporter->thread_track[number];
	tdt__proto_add_uint(track, THREAD_PID, header->pid);
	tdt__proto_add_uint(track, THREAD_TID, thread->id);
	if (thread->name[0] != '\0')
		tdt__proto_add_escaped(track, THREAD_NAME, thread->name);
	tdt__proto_wrap(track, 0, TRACK_THREAD);
	tdt__proto_add_uint(track, TRACK_PARENT, exporter->process);
	exporter->thread_track[number] = tdt__packets_track(&exporter->packets, track);
	return exporter->thread_track[number];
}

/* A track below another one, with a name of `n` bytes of UTF-8. */
static uint64_t export_track(struct exporter *exporter, uint64_t parent, const char *name, size_t n)
{
	tdt__proto_add_bytes(&exporter->track, TRACK_NAME, name, n);
	tdt__proto_add_uint(&exporter->track, TRACK_PARENT, parent);
	return tdt__packets_track(&exporter->packets, &exporter->track);
}

/*
 * The name of a task's poll function, or of the function that it began with; "task" if that is
 * unknown, or the library's own, which all tasks of callbacks have.
 */
static void add_function(struct exporter *exporter, const struct tdt__recorded_task *task)
{
	struct tdt_frame frames[TDT__PERFETTO_INLINED_MAX];
	size_t n = 0;

	/* The address is that of the function's first instruction, not a return address. */
	if (task->poll_function != 0)
		n = tdt__packets_frames(&exporter->packets, task->poll_function + 1, frames);
	if (n != 0 && frames[n - 1].function != NULL &&
	    !tdt__starts_with(frames[n - 1].function, "tdt__"))
		tdt__string_escape(&exporter->text, frames[n - 1].function, true, '\0');
	else
		tdt__string_puts(&exporter->text, "task");
}

/* Make `text` the start, and then "conn 7", as the task is called everywhere in the trace. */
static void print_task(struct exporter *exporter, uint32_t number, const char *start)
{
	const struct tdt__recorded_task *task = &exporter->recording->task[number];

	exporter->text.n = 0;
	tdt__string_puts(&exporter->text, start);
	if (task->name[0] != '\0')
		tdt__string_escape(&exporter->text, task->name, true, '\0');
	else
		add_function(exporter, task);
	tdt__string_printf(&exporter->text, " %" PRIu64, task->id);
}

static uint32_t event_name(struct exporter *exporter, const char *words)
{
	return tdt__packets_name(&exporter->packets, TDT__EVENT_NAMES, words);
}

static uint32_t export_text(struct exporter *exporter)
{
	if (exporter->text.failed) {
		tdt__packets_fail(&exporter->packets);
		return 0;
	}
	return tdt__packets_intern(&exporter->packets, TDT__EVENT_NAMES, exporter->text.bytes,
				   exporter->text.n);
}

/* The interned name of a task behind `start`; it is kept in `*name`, which is 0 at first. */
static uint32_t export_task_name(struct exporter *exporter, uint32_t number, const char *start,
				 uint32_t *name)
{
	if (*name == 0) {
		print_task(exporter, number, start);
		*name = export_text(exporter);
	}
	return *name;
}

/* The annotations of the first event on a task's track: what the task is. */
static void annotate_identity(struct exporter *exporter, const struct tdt__recorded_task *task)
{
	struct tdt__packets *packets = &exporter->packets;
	struct tdt__string *to = &exporter->annotations;

	tdt__packets_annotate(packets, to, "task", task->id);
	if (task->parent != 0)
		tdt__packets_annotate(packets, to, "parent", task->parent);
	if (task->file[0] != '\0') {
		tdt__packets_annotate_text(packets, to, "spawned in", task->file);
		tdt__packets_annotate(packets, to, "line", task->line);
	}
	exporter->text.n = 0;
	add_function(exporter,
		     &(struct tdt__recorded_task){ .poll_function = task->poll_function });
	tdt__string_add(&exporter->text, "", 1);
	if (!exporter->text.failed && strcmp(exporter->text.bytes, "task") != 0)
		tdt__packets_annotate_text(packets, to,
					   task->has_entry ? "began with" : "poll function",
					   exporter->text.bytes);
}

/* If the track is new, the annotations of the next event say what the task is. */
static uint64_t export_task(struct exporter *exporter, uint32_t number)
{
	struct task_track *track = &exporter->task_track[number];

	if (track->uuid == 0) {
		print_task(exporter, number, "");
		track->uuid = export_track(exporter, exporter->process, exporter->text.bytes,
					   exporter->text.n);
		annotate_identity(exporter, &exporter->recording->task[number]);
	}
	return track->uuid;
}

static void export_event(struct exporter *exporter, uint64_t ns, struct tdt__packet_event event)
{
	if (exporter->annotations.n != 0 || exporter->annotations.failed)
		event.annotations = &exporter->annotations;
	tdt__packets_event(&exporter->packets, ns, &event);
	exporter->annotations.n = 0;
}

/* Write an event that has only a type, a track and an interned name (0: none). */
static void export_put(struct exporter *exporter, uint64_t ns, enum tdt__packet_type type,
		       uint64_t track, uint32_t name)
{
	export_event(exporter, ns,
		     (struct tdt__packet_event){ .type = type, .track = track, .name = name });
}

static void export_mark(struct exporter *exporter, uint64_t ns, uint64_t track, const char *name)
{
	export_put(exporter, ns, TDT__PACKET_INSTANT, track, event_name(exporter, name));
}

static void export_annotate(struct exporter *exporter, const char *name, uint64_t value)
{
	tdt__packets_annotate(&exporter->packets, &exporter->annotations, name, value);
}

static void export_cpu(struct exporter *exporter, const struct tdt_event *event)
{
	if (event->b != UINT16_MAX)
		tdt__packets_annotate_named(&exporter->annotations, exporter->cpu, event->b);
}

/* --- Phases --- */

/* Behind the name of a phase that began when events are missing. */
#define UNSURE " (unsure, since events are lost)"

static const struct tdt_print_options print_options = { .size = sizeof(print_options),
							.utf8 = TDT_PRINT_YES,
							.color = TDT_PRINT_NO };

static uint32_t print_wait(struct exporter *exporter, const struct tdt__recorded_waits *waits,
			   bool sure, uint64_t self)
{
	exporter->text.n = 0;
	exporter->text.options = &print_options;
	tdt__string_puts(&exporter->text, "waiting ");
	if (waits->n != 0)
		tdt__wait_for(
		    &exporter->text, &waits->main, self,
		    tdt__recording_task_name(exporter->recording, waits->main.owner));
	if (waits->n > 1)
		tdt__string_printf(&exporter->text, " and %" PRIu32 " more", waits->n - 1);
	if (waits->n == 0)
		exporter->text.n--; /* the space */
	if (!sure)
		tdt__string_puts(&exporter->text, UNSURE);
	return export_text(exporter);
}

/* The name of the phase of a task that waits.  Most tasks wait for the same again and again. */
static uint32_t name_wait(struct exporter *exporter, uint32_t number,
			  const struct tdt__timeline_task *task, bool sure)
{
	struct waited *last = &exporter->task_track[number].waited, waited;
	struct tdt__recorded_waits waits;

	tdt__recorded_waits(exporter->recording, &task->parts, &waits);
	tdt__timeline_renew(&exporter->timeline, number, task, &waits.main);
	memset(&waited, 0, sizeof(waited));
	waited.object = waits.main.object;
	waited.owner = waits.main.owner;
	waited.kind = waits.main.kind;
	waited.orphaned = waits.main.orphaned;
	waited.hash = tdt__hash_bytes(TDT__HASH_START, waits.main.name, strlen(waits.main.name));
	waited.waits = waits.n;
	waited.sure = sure;
	waited.printed = last->printed;
	if (last->printed == 0 || memcmp(last, &waited, sizeof(waited)) != 0)
		waited.printed =
		    print_wait(exporter, &waits, sure, exporter->recording->task[number].id);
	*last = waited;
	return waited.printed;
}

static void begin_slice(struct exporter *exporter, uint32_t number,
			const struct tdt__timeline_task *task,
			const struct tdt__timeline_phase *phase)
{
	struct task_track *track = &exporter->task_track[number];
	uint32_t name;

	if (track->open)
		return;
	name = phase->phase == TDT__WAITING ? name_wait(exporter, number, task, phase->sure)
					    : exporter->phase[phase->sure][phase->phase];
	if (name == 0)
		return;
	export_put(exporter, phase->since > track->until ? phase->since : track->until,
		   TDT__PACKET_BEGIN, export_task(exporter, number), name);
	track->open = true;
}

static void end_slice(struct exporter *exporter, uint32_t number, uint64_t until)
{
	struct task_track *track = &exporter->task_track[number];

	if (!track->open)
		return;
	track->until = until > track->until ? until : track->until;
	export_put(exporter, track->until, TDT__PACKET_END, track->uuid, 0);
	track->open = false;
}

/* A lock may still be passed on, and what is not sure may still become so. */
static bool has_its_name(const struct exporter *exporter, const struct tdt__timeline_task *task)
{
	struct tdt__recorded_waits waits;

	if (!task->sure || task->phase != TDT__WAITING)
		return task->sure;
	tdt__recorded_waits(exporter->recording, &task->parts, &waits);
	return waits.main.kind != TDT_WAIT_MUTEX;
}

/* A slice is begun when its name is known for good: at the latest when the phase is over. */
static void export_phase(struct exporter *exporter, const struct tdt__step *step)
{
	struct tdt__timeline_phase phase;

	if (tdt__step_ends_phase(step, &phase)) {
		begin_slice(exporter, step->task, &step->before, &phase);
		end_slice(exporter, step->task, phase.until);
	}
	if (step->task == TDT__RECORDED_NONE || exporter->task_track[step->task].open ||
	    !has_its_name(exporter, step->after))
		return;
	phase = tdt__timeline_last(step->after);
	begin_slice(exporter, step->task, step->after, &phase);
}

static void export_last_phases(struct exporter *exporter)
{
	for (uint32_t i = 0; i < exporter->recording->n_tasks; i++) {
		const struct tdt__timeline_task *task = &exporter->timeline.task[i];
		struct tdt__timeline_phase last = tdt__timeline_last(task);

		begin_slice(exporter, i, task, &last);
		if (last.until != 0)
			end_slice(exporter, i, last.until);
	}
}

static void export_phase_names(struct exporter *exporter)
{
	exporter->phase[0][TDT__POLLING] = event_name(exporter, tdt__phase_words[TDT__POLLING]);
	exporter->phase[1][TDT__POLLING] = exporter->phase[0][TDT__POLLING];
	for (int i = 0; i < TDT__PHASES; i++) {
		if (tdt__phase_words[i] == NULL || i == TDT__POLLING)
			continue;
		exporter->phase[1][i] = event_name(exporter, tdt__phase_words[i]);
		exporter->text.n = 0;
		tdt__string_printf(&exporter->text, "%s%s", tdt__phase_words[i], UNSURE);
		exporter->phase[0][i] = export_text(exporter);
	}
}

/* Counters are written so many times in a trace, but not more often than every millisecond. */
#define SAMPLES 1000
#define SAMPLE_LEAST UINT64_C(1000000)

static const int counter_of[TDT__PHASES] = {
	[TDT__UNKNOWN] = TDT__COUNTERS,	     [TDT__SPAWNED] = TDT__COUNTERS,
	[TDT__WAITING] = TDT__COUNT_WAITING, [TDT__RUNNABLE] = TDT__COUNT_RUNNABLE,
	[TDT__POLLING] = TDT__COUNT_POLLING, [TDT__ENDED] = TDT__COUNTERS,
};

static uint64_t tell_counter(struct exporter *exporter, const char *name, const char *unit)
{
	tdt__proto_add_text(&exporter->track, COUNTER_UNIT, unit);
	tdt__proto_wrap(&exporter->track, 0, TRACK_COUNTER);
	return export_track(exporter, exporter->process, name, strlen(name));
}

static void export_counters(struct exporter *exporter)
{
	static const char *const names[TDT__COUNTERS] = { "waiting tasks", "runnable tasks",
							  "polling tasks", "migrations" };
	struct sampler *sampler = &exporter->sampler;
	uint64_t from = exporter->recording->from;

	sampler->every = (exporter->recording->until - from) / SAMPLES;
	if (sampler->every < SAMPLE_LEAST)
		sampler->every = SAMPLE_LEAST;
	sampler->next = from + sampler->every;
	for (int i = 0; i < TDT__COUNTERS; i++)
		sampler->track[i] =
		    tell_counter(exporter, names[i], i == TDT__COUNT_MIGRATIONS ? "1/s" : "tasks");
}

/* Tell the counters that have changed.  Returns whether there were any. */
static bool sample(struct exporter *exporter, uint64_t ns)
{
	struct sampler *sampler = &exporter->sampler;
	int64_t migrations = sampler->value[TDT__COUNT_MIGRATIONS];
	bool changed = false;

	sampler->value[TDT__COUNT_MIGRATIONS] =
	    (int64_t)((double)migrations * 1e9 / (double)sampler->every + 0.5);
	for (int i = 0; i < TDT__COUNTERS; i++) {
		if (sampler->value[i] == sampler->told[i])
			continue;
		export_event(exporter, ns,
			     (struct tdt__packet_event){ .type = TDT__PACKET_COUNTER,
							 .track = sampler->track[i],
							 .value = sampler->value[i] });
		sampler->told[i] = sampler->value[i];
		changed = true;
	}
	sampler->value[TDT__COUNT_MIGRATIONS] = 0;
	return changed;
}

/* Write the samples that are due before `ns`.  While nothing changes, there are none. */
static void export_samples(struct exporter *exporter, uint64_t ns)
{
	struct sampler *sampler = &exporter->sampler;

	while (sampler->next <= ns) {
		bool changed = sample(exporter, sampler->next);

		if (sampler->next > UINT64_MAX - sampler->every)
			return; /* only a damaged recording has such times */
		sampler->next += sampler->every;
		if (!changed && sampler->next <= ns)
			sampler->next += (ns - sampler->next) / sampler->every * sampler->every;
	}
}

static void export_count(struct exporter *exporter, const struct tdt__step *step)
{
	struct sampler *sampler = &exporter->sampler;
	int before, after;

	if (step->task == TDT__RECORDED_NONE)
		return;
	before = counter_of[step->before.phase];
	after = counter_of[step->after->phase];
	if (before != TDT__COUNTERS)
		sampler->value[before]--;
	if (after != TDT__COUNTERS)
		sampler->value[after]++;
	sampler->value[TDT__COUNT_MIGRATIONS] += step->migrated;
}

/* --- What is not in the recording: slices up to the oldest events, and marks --- */

static void begin_loss(struct exporter *exporter, const struct tdt__recorded_ring *ring)
{
	struct loss loss = { .until = ring->from };

	if (ring->first == 0 || (ring->kind != TDT_RING_POLLS && ring->kind != TDT_RING_OTHERS) ||
	    ring->n == 0)
		return;
	loss.track = export_thread(exporter, ring->first_thread);
	export_put(exporter, exporter->recording->from, TDT__PACKET_BEGIN, loss.track,
		   event_name(exporter, "events are lost"));
	exporter->loss[exporter->n_losses++] = loss;
}

static void begin_losses(struct exporter *exporter)
{
	const struct tdt__recorded_ring *rings = exporter->recording->ring;
	size_t n = exporter->recording->n_rings;

	exporter->loss = calloc(n + 1, sizeof(*exporter->loss));
	if (exporter->loss == NULL) {
		tdt__packets_fail(&exporter->packets);
		return;
	}
	for (size_t i = 0; i < n; i++)
		begin_loss(exporter, &rings[i]);
	tdt__array_sort(exporter->loss, exporter->n_losses, sizeof(*exporter->loss));
}

static void export_losses(struct exporter *exporter)
{
	const struct tdt_recording *header = &exporter->recording->header;
	uint64_t from = exporter->recording->from;
	uint32_t stacks = tdt__recording_stacks_lost(exporter->recording);

	if (header->missed != 0) {
		export_annotate(exporter, "events", header->missed);
		export_annotate(exporter, "polls", header->missed_polls);
		export_mark(exporter, from, exporter->process,
			    "events were not recorded: there was no ring for their thread");
	}
	if (stacks != 0) {
		export_annotate(exporter, "stacks", stacks);
		export_mark(exporter, from, exporter->process,
			    "stacks were not recorded: their table was full, or no capture "
			    "was left");
	}
	begin_losses(exporter);
}

/* The times up to `ns` from which on nothing is lost. */
static void export_losses_until(struct exporter *exporter, uint64_t ns)
{
	while (exporter->next_loss < exporter->n_losses &&
	       exporter->loss[exporter->next_loss].until <= ns) {
		const struct loss *loss = &exporter->loss[exporter->next_loss++];

		export_put(exporter, loss->until, TDT__PACKET_END, loss->track, 0);
	}
}

/* --- The program's own events: marks and slices on the tracks of tasks --- */

/* The arguments of an end have names of their own: a slice has those of its beginning, too. */
static void annotate_arguments(struct exporter *exporter, struct tdt__recorded_user *user,
			       bool ends)
{
	struct tdt__recorded_argument argument;
	char name[32];

	for (unsigned i = 1; tdt__recorded_user_next(user, &argument); i++) {
		snprintf(name, sizeof(name), ends ? "argument %u of the end" : "argument %u", i);
		tdt__packets_annotate_value(&exporter->packets, &exporter->annotations, name,
					    &argument);
	}
}

/* The track of the slices of this name (valid UTF-8) on a track.  NULL: no memory. */
static struct user_track *user_track(struct exporter *exporter, uint64_t parent, const char *text,
				     size_t n)
{
	const struct user_track new = {
		.parent = parent,
		.name = tdt__packets_intern(&exporter->packets, TDT__EVENT_NAMES, text, n),
	};
	uint32_t i = tdt__table_note(&exporter->user_table, &new,
				     offsetof(struct user_track, open), sizeof new);

	if (i == TDT__INDEX_NONE) {
		tdt__packets_fail(&exporter->packets);
		return NULL;
	}
	if (exporter->user[i].uuid == 0)
		exporter->user[i].uuid = export_track(exporter, parent, text, n);
	return &exporter->user[i];
}

/* An end without a beginning is a mark: the beginning was overwritten. */
static void put_slice(struct exporter *exporter, uint64_t ns, uint64_t parent, bool begins)
{
	struct user_track *track =
	    user_track(exporter, parent, exporter->text.bytes, exporter->text.n);
	enum tdt__packet_type type;

	if (track == NULL)
		return;
	type = begins		  ? TDT__PACKET_BEGIN
	       : track->open != 0 ? TDT__PACKET_END
				  : TDT__PACKET_INSTANT;
	track->open += begins ? 1u : 0u;
	track->open -= type == TDT__PACKET_END ? 1u : 0u;
	export_put(exporter, ns, type, track->uuid, type == TDT__PACKET_END ? 0 : track->name);
}

static bool cut_end(struct tdt__string *text, const char *end)
{
	size_t n = strlen(end);

	if (text->failed || text->n <= n || memcmp(text->bytes + text->n - n, end, n) != 0)
		return false;
	text->n -= n;
	return true;
}

static void export_user(struct exporter *exporter, const struct tdt__recorded_item *item)
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
		    ? export_thread(exporter, item->thread)
		    : export_task(exporter, task);
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
		export_put(exporter, item->ns, TDT__PACKET_INSTANT, track, export_text(exporter));
}

/* --- The items, by kind --- */

/*
 * Set `*stack` to that of the next leaf of a poll, from part `*i` on, which becomes the part behind
 * it.  False: there are no more.
 */
static bool next_stack(struct exporter *exporter, const struct tdt__recorded_item *begin,
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
static void put_instant(struct exporter *exporter, uint64_t ns, uint64_t track, uint32_t name,
			uint32_t callstack)
{
	export_event(exporter, ns,
		     (struct tdt__packet_event){ .type = TDT__PACKET_INSTANT,
						 .track = track,
						 .name = name,
						 .callstack = callstack });
}

/* For each further leaf there is a mark with its stack. */
static void put_poll_begin(struct exporter *exporter, const struct tdt__step *step)
{
	struct task_track *track = &exporter->task_track[step->task];
	uint64_t thread = export_thread(exporter, step->item.thread);
	uint32_t i = 0, stack = 0;

	next_stack(exporter, &step->item, &i, &stack);
	export_event(exporter, step->item.ns,
		     (struct tdt__packet_event){
			 .type = TDT__PACKET_BEGIN,
			 .track = thread,
			 .name = export_task_name(exporter, step->task, "", &track->name),
			 .callstack = stack,
			 .flow_end = step->wake != 0 ? exporter->flows + step->wake : 0 });
	while (next_stack(exporter, &step->item, &i, &stack))
		put_instant(exporter, step->item.ns, thread, event_name(exporter, "another leaf"),
			    stack);
}

static void put_poll_end(struct exporter *exporter, const struct tdt__step *step)
{
	export_cpu(exporter, &step->item.event);
	if ((step->item.event.detail & 3) == TDT_PANICKED)
		tdt__packets_annotate_text(&exporter->packets, &exporter->annotations, "result",
					   "panicked");
	export_put(exporter, step->item.ns, TDT__PACKET_END,
		   export_thread(exporter, step->item.thread), 0);
}

/* What a thread did to a task: it woke it, and a flow leads to the poll; or it spawned it. */
static void put_deed(struct exporter *exporter, const struct tdt__step *step, const char *verb,
		     uint32_t *name)
{
	export_event(exporter, step->item.ns,
		     (struct tdt__packet_event){
			 .type = TDT__PACKET_INSTANT,
			 .track = export_thread(exporter, step->item.thread),
			 .name = export_task_name(exporter, step->task, verb, name),
			 .flow = step->wake != 0 ? exporter->flows + step->wake : 0 });
}

static void put_end(struct exporter *exporter, const struct tdt__step *step)
{
	const struct tdt_event *event = &step->item.event;
	uint8_t outcome = event->detail & 3;
	bool aborted = (event->detail & TDT_EVENT_END_ABORTED) != 0;

	if (aborted)
		export_annotate(exporter, "by task", event->a | (uint64_t)event->b << 32);
	export_mark(exporter, step->item.ns, export_task(exporter, step->task),
		    outcome == TDT_PANICKED  ? "panicked"
		    : aborted		     ? "aborted"
		    : outcome == TDT_PENDING ? "dropped"
					     : "ready");
}

static void put_park(struct exporter *exporter, const struct tdt__recorded_item *item)
{
	bool begins = item->kind == TDT__RECORDED_BEGIN;

	if (!begins)
		export_cpu(exporter, &item->event);
	export_put(exporter, item->ns, begins ? TDT__PACKET_BEGIN : TDT__PACKET_END,
		   export_thread(exporter, item->thread), begins ? exporter->parked : 0);
}

/* The stack of a poll that was found going on. */
static void put_stack(struct exporter *exporter, const struct tdt__recorded_item *item)
{
	uint32_t task = tdt__recording_task(exporter->recording, item->event.task);
	uint32_t callstack =
	    tdt__packets_stack(&exporter->packets, exporter->recording, item->event.a);

	if (task == TDT__RECORDED_NONE || callstack == 0)
		return;
	put_instant(exporter, item->ns, export_task(exporter, task),
		    event_name(exporter, "is being polled for long"), callstack);
}

/* What the recorder says of a wait of the task, which lasted `c` nanoseconds. */
static void put_remark(struct exporter *exporter, const struct tdt__recorded_item *item,
		       const char *words)
{
	uint32_t task = tdt__recording_task(exporter->recording, item->event.task);

	if (task == TDT__RECORDED_NONE)
		return;
	export_annotate(exporter, "ns", item->event.c);
	export_mark(exporter, item->ns, export_task(exporter, task), words);
}

/* --- The whole --- */

/* The recorder was started or stopped; a step of a task says that it is not known since then. */
static void put_mark(struct exporter *exporter, const struct tdt__step *step, const char *words)
{
	if (step->task == TDT__RECORDED_NONE)
		export_mark(exporter, step->item.ns, exporter->process, words);
}

/* Tell the clocks again, if the machine was suspended. */
static void put_clock(struct exporter *exporter, const struct tdt__recorded_item *item)
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

static void put_step(struct exporter *exporter, const struct tdt__step *step)
{
	const struct tdt__recorded_item *item = &step->item;

	switch (item->event.kind) {
	case TDT_EVENT_POLL:
		if (item->kind == TDT__RECORDED_BEGIN)
			put_poll_begin(exporter, step);
		else
			put_poll_end(exporter, step);
		break;
	case TDT_EVENT_WAKE:
		put_deed(exporter, step, "wakes ", &exporter->task_track[step->task].wakes);
		break;
	case TDT_EVENT_SPAWN:
		put_deed(exporter, step, "spawns ", &exporter->task_track[step->task].spawns);
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

static void put_all_steps(struct exporter *exporter)
{
	struct tdt__step step;

	while (exporter->packets.error == 0 && tdt__timeline_next(&exporter->timeline, &step)) {
		export_losses_until(exporter, step.item.ns);
		export_samples(exporter, step.item.ns);
		put_step(exporter, &step);
		export_phase(exporter, &step);
		export_count(exporter, &step);
	}
	export_last_phases(exporter);
	export_samples(exporter,
		       exporter->recording->until + exporter->sampler.every);
}

static int write_packets(struct exporter *exporter)
{
	const struct tdt__recorded_clock *clock = exporter->recording->clock;
	uint64_t from = exporter->recording->from;

	exporter->boot_ahead = clock->boot - clock->monotonic;
	tdt__packets_clocks(&exporter->packets, from, clock->boot + (from - clock->monotonic),
			    clock->real + (from - clock->monotonic));
	exporter->process = export_process(exporter);
	exporter->cpu = tdt__packets_name(&exporter->packets, TDT__ANNOTATION_NAMES, "cpu");
	exporter->parked = event_name(exporter, "parked");
	export_phase_names(exporter);
	export_counters(exporter);
	export_losses(exporter);
	put_all_steps(exporter);
	if (exporter->text.failed)
		tdt__packets_fail(&exporter->packets);
	return tdt__packets_end(&exporter->packets);
}

static int prepare_export(struct exporter *exporter, const struct tdt__recording *recording)
{
	exporter->recording = recording;
	exporter->task_track = calloc(recording->n_tasks + 1, sizeof(*exporter->task_track));
	exporter->thread_track = calloc(recording->n_threads + 1, sizeof(*exporter->thread_track));
	if (exporter->task_track == NULL || exporter->thread_track == NULL)
		return -ENOMEM;
	return tdt__timeline_begin(&exporter->timeline, recording);
}

int tdt__perfetto_write(const struct tdt__recording *recording,
			const struct tdt__perfetto_options *options, FILE *out)
{
	static const struct tdt__perfetto_options none;
	struct exporter *exporter = calloc(1, sizeof(*exporter));
	const struct tdt_recording *header = &recording->header;
	uint64_t number =
	    tdt__mix(tdt__mix(tdt__mix(0, header->pid), header->start), header->start_real);
	int err = exporter == NULL ? -ENOMEM : prepare_export(exporter, recording);

	if (exporter == NULL)
		return err;
	if (err == 0) {
		exporter->flows = number << 32;
		err = tdt__packets_begin(&exporter->packets, options == NULL ? &none : options, out,
					 number);
		if (err == 0)
			err = write_packets(exporter);
		tdt__timeline_end(&exporter->timeline);
	}
	tdt__string_free(&exporter->track);
	tdt__string_free(&exporter->annotations);
	tdt__string_free(&exporter->text);
	tdt__table_fini(&exporter->user_table);
	free(exporter->loss);
	free(exporter->task_track);
	free(exporter->thread_track);
	free(exporter);
	return err;
}
