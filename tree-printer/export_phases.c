// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The phases of tasks in a Perfetto trace: what they wait for, and when they change; and the counters,
 * which are sampled, since a task changes its phase several times a poll.
 */

#include "exporter.h"

#include <inttypes.h>
#include <string.h>

#include "words.h"

/* Behind the name of a phase that began when events are missing. */
#define UNSURE " (unsure, since events are lost)"

static const struct tdt_print_options print_options = { .size = sizeof(print_options),
							.utf8 = TDT_PRINT_YES,
							.color = TDT_PRINT_NO };

/* The name of the task that a wait depends on; NULL: it has none, or it is unknown. */
static const char *owner_name(const struct tdt__exporter *exporter, uint64_t owner)
{
	uint32_t number =
	    owner == 0 ? TDT__RECORDED_NONE : tdt__recording_task(exporter->recording, owner);

	return number == TDT__RECORDED_NONE || exporter->task[number].name[0] == '\0'
		   ? NULL
		   : exporter->task[number].name;
}

static uint32_t print_wait(struct tdt__exporter *exporter, const struct tdt__recorded_waits *waits,
			   bool sure, uint64_t self)
{
	exporter->text.n = 0;
	exporter->text.options = &print_options;
	tdt__string_puts(&exporter->text, "waiting ");
	if (waits->n != 0)
		tdt__wait_for(&exporter->text, &waits->main, self,
			      owner_name(exporter, waits->main.owner));
	if (waits->n > 1)
		tdt__string_printf(&exporter->text, " and %" PRIu32 " more", waits->n - 1);
	if (waits->n == 0)
		exporter->text.n--; /* the space */
	if (!sure)
		tdt__string_puts(&exporter->text, UNSURE);
	return tdt__export_text(exporter);
}

/* The name of the phase of a task that waits.  Most tasks wait for the same again and again. */
static uint32_t name_wait(struct tdt__exporter *exporter, uint32_t number,
			  const struct tdt__timeline_task *task, bool sure)
{
	struct tdt__waited *last = &exporter->task_track[number].waited, waited;
	struct tdt__recorded_waits waits;

	tdt__recorded_waits(exporter->recording, &task->parts, &waits);
	tdt__timeline_renew(&exporter->timeline, number, task, &waits.main);
	memset(&waited, 0, sizeof(waited));
	waited.object = waits.main.object;
	waited.owner = waits.main.owner;
	waited.kind = waits.main.kind;
	waited.hash = tdt__hash_bytes(TDT__HASH_START, waits.main.name, strlen(waits.main.name));
	waited.waits = waits.n;
	waited.sure = sure;
	waited.printed = last->printed;
	if (last->printed == 0 || memcmp(last, &waited, sizeof(waited)) != 0)
		waited.printed = print_wait(exporter, &waits, sure, exporter->task[number].id);
	*last = waited;
	return waited.printed;
}

static void begin_slice(struct tdt__exporter *exporter, uint32_t number,
			const struct tdt__timeline_task *task,
			const struct tdt__timeline_phase *phase)
{
	struct tdt__task_track *track = &exporter->task_track[number];
	uint32_t name;

	if (track->open)
		return;
	name = phase->phase == TDT__WAITING ? name_wait(exporter, number, task, phase->sure)
					    : exporter->phase[phase->sure][phase->phase];
	if (name == 0)
		return;
	tdt__export_put(exporter, phase->since > track->until ? phase->since : track->until,
			TDT__PACKET_BEGIN, tdt__export_task(exporter, number), name);
	track->open = true;
}

static void end_slice(struct tdt__exporter *exporter, uint32_t number, uint64_t until)
{
	struct tdt__task_track *track = &exporter->task_track[number];

	if (!track->open)
		return;
	track->until = until > track->until ? until : track->until;
	tdt__export_put(exporter, track->until, TDT__PACKET_END, track->uuid, 0);
	track->open = false;
}

/* A lock may still be passed on, and what is not sure may still become so. */
static bool has_its_name(const struct tdt__exporter *exporter,
			 const struct tdt__timeline_task *task)
{
	struct tdt__recorded_waits waits;

	if (!task->sure || task->phase != TDT__WAITING)
		return task->sure;
	tdt__recorded_waits(exporter->recording, &task->parts, &waits);
	return waits.main.kind != TDT_WAIT_MUTEX;
}

/* A slice is begun when its name is known for good: at the latest when the phase is over. */
void tdt__export_phase(struct tdt__exporter *exporter, const struct tdt__step *step)
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

void tdt__export_last_phases(struct tdt__exporter *exporter)
{
	for (uint32_t i = 0; i < exporter->n_tasks; i++) {
		const struct tdt__timeline_task *task = &exporter->timeline.task[i];
		struct tdt__timeline_phase last = tdt__timeline_last(task);

		begin_slice(exporter, i, task, &last);
		if (last.until != 0)
			end_slice(exporter, i, last.until);
	}
}

void tdt__export_phase_names(struct tdt__exporter *exporter)
{
	static const char *const names[TDT__PHASES] = {
		[TDT__SPAWNED] = "spawned",
		[TDT__WAITING] = "waiting",
		[TDT__RUNNABLE] = "runnable",
	};
	struct tdt__packets *packets = &exporter->packets;

	exporter->phase[0][TDT__POLLING] = tdt__packets_name(packets, TDT__EVENT_NAMES, "polling");
	exporter->phase[1][TDT__POLLING] = exporter->phase[0][TDT__POLLING];
	for (int i = 0; i < TDT__PHASES; i++) {
		if (names[i] == NULL)
			continue;
		exporter->phase[1][i] = tdt__packets_name(packets, TDT__EVENT_NAMES, names[i]);
		exporter->text.n = 0;
		tdt__string_printf(&exporter->text, "%s%s", names[i], UNSURE);
		exporter->phase[0][i] = tdt__export_text(exporter);
	}
}

/* Fields of TrackDescriptor and CounterDescriptor. */
enum { TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_COUNTER = 8, COUNTER_UNIT = 6 };

/* Counters are written so many times in a trace, but not more often than every millisecond. */
#define SAMPLES 1000
#define SAMPLE_LEAST UINT64_C(1000000)

static const int counter_of[TDT__PHASES] = {
	[TDT__UNKNOWN] = TDT__COUNTERS,	     [TDT__SPAWNED] = TDT__COUNTERS,
	[TDT__WAITING] = TDT__COUNT_WAITING, [TDT__RUNNABLE] = TDT__COUNT_RUNNABLE,
	[TDT__POLLING] = TDT__COUNT_POLLING, [TDT__ENDED] = TDT__COUNTERS,
};

static uint64_t tell_counter(struct tdt__exporter *exporter, const char *name, const char *unit)
{
	struct tdt__string track = { 0 }, counter = { 0 };
	uint64_t uuid;

	tdt__proto_add_text(&counter, COUNTER_UNIT, unit);
	tdt__proto_add_text(&track, TRACK_NAME, name);
	tdt__proto_add_uint(&track, TRACK_PARENT, exporter->process);
	tdt__proto_add_message(&track, TRACK_COUNTER, &counter);
	uuid = tdt__packets_track(&exporter->packets, &track);
	tdt__string_free(&track);
	tdt__string_free(&counter);
	return uuid;
}

void tdt__export_counters(struct tdt__exporter *exporter)
{
	static const char *const names[TDT__COUNTERS] = { "waiting tasks", "runnable tasks",
							  "polling tasks", "migrations" };
	struct tdt__sampler *sampler = &exporter->sampler;
	uint64_t from = tdt__recording_from(exporter->recording);

	sampler->every = (tdt__recording_until(exporter->recording) - from) / SAMPLES;
	if (sampler->every < SAMPLE_LEAST)
		sampler->every = SAMPLE_LEAST;
	sampler->next = from + sampler->every;
	for (int i = 0; i < TDT__COUNTERS; i++)
		sampler->track[i] =
		    tell_counter(exporter, names[i], i == TDT__COUNT_MIGRATIONS ? "1/s" : "tasks");
}

/* Tell the counters that have changed.  Returns whether there were any. */
static bool sample(struct tdt__exporter *exporter, uint64_t ns)
{
	struct tdt__sampler *sampler = &exporter->sampler;
	int64_t migrations = sampler->value[TDT__COUNT_MIGRATIONS];
	bool changed = false;

	sampler->value[TDT__COUNT_MIGRATIONS] =
	    (int64_t)((double)migrations * 1e9 / (double)sampler->every + 0.5);
	for (int i = 0; i < TDT__COUNTERS; i++) {
		if (sampler->value[i] == sampler->told[i])
			continue;
		tdt__export_event(exporter, ns,
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
void tdt__export_samples(struct tdt__exporter *exporter, uint64_t ns)
{
	struct tdt__sampler *sampler = &exporter->sampler;

	while (sampler->next <= ns) {
		bool changed = sample(exporter, sampler->next);

		if (sampler->next > UINT64_MAX - sampler->every)
			return; /* only a damaged recording has such times */
		sampler->next += sampler->every;
		if (!changed && sampler->next <= ns)
			sampler->next += (ns - sampler->next) / sampler->every * sampler->every;
	}
}

void tdt__export_count(struct tdt__exporter *exporter, const struct tdt__step *step)
{
	struct tdt__sampler *sampler = &exporter->sampler;
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
