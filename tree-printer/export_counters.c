// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The counters of a Perfetto trace.  They are sampled, since a task changes its phase several times
 * a poll.
 */

#include "exporter.h"

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
