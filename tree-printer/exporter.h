/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What the files of the Perfetto exporter share.  perfetto.c goes through the items of a recording;
 * the others know one part of the trace each:
 *
 *	export_tracks.c     the tracks, the names of tasks, and how an event is written
 *	export_phases.c     the phases of tasks, what they wait for, and how many tasks are in each
 *	packets.h           the bytes
 *
 * No call reports an error: the first one is kept with the packets.
 */

#include "packets.h"
#include "recording/timeline.h"

enum tdt__export_counter {
	TDT__COUNT_WAITING,
	TDT__COUNT_RUNNABLE,
	TDT__COUNT_POLLING,
	TDT__COUNT_MIGRATIONS,
	TDT__COUNTERS
};

struct tdt__sampler {
	uint64_t every, next; /* ns */
	uint64_t track[TDT__COUNTERS];
	int64_t value[TDT__COUNTERS]; /* now; of migrations: since the last sample */
	int64_t told[TDT__COUNTERS];
};

/* What a task waited for last. */
struct tdt__waited {
	uint64_t object, owner;
	uint64_t hash; /* of the object's name */
	uint32_t kind;
	uint32_t waits;
	uint32_t sure;
	uint32_t printed; /* the interned name that was made of it; 0: not yet */
};

struct tdt__task_track {
	uint64_t uuid;	/* 0: the trace does not have the track yet */
	uint32_t name;	/* interned; 0: not yet */
	uint32_t wakes; /* the same: the name of a wake-up, and of a spawn */
	uint32_t spawns;
	struct tdt__waited waited;
	bool open;	/* a phase is */
	uint64_t until; /* of its last phase that is over, ns */
};

/* A track of slices of the program's own. */
struct tdt__user_track {
	uint64_t parent;
	uint32_t name; /* interned */
	uint32_t open; /* slices */
	uint64_t uuid;
};

/* The time before which events of a thread are lost. */
struct tdt__loss {
	uint64_t until; /* ns */
	uint64_t track;
};

struct tdt__exporter {
	struct tdt__packets packets;
	const struct tdt__recording *recording;
	struct tdt__timeline timeline;
	const struct tdt__recorded_task *task;
	const struct tdt__recorded_thread *thread;
	uint64_t process;	/* its track */
	uint64_t *thread_track; /* by the thread's number; 0: the trace does not have it yet */
	struct tdt__task_track *task_track;
	size_t n_tasks, n_threads;
	struct tdt__sampler sampler;
	uint64_t flows;		/* what is added to the numbers of wake-ups */
	uint64_t boot_ahead;	/* CLOCK_BOOTTIME less CLOCK_MONOTONIC, as the trace has it */
	struct tdt__loss *loss; /* in the order of time */
	size_t n_losses, next_loss;
	uint32_t parked, cpu;		/* interned names */
	uint32_t phase[2][TDT__PHASES]; /* the same: unsure, sure; 0: the phase is not drawn */
	struct tdt__string annotations; /* of the next event */
	struct tdt__string text;
	TDT__TABLE(struct tdt__user_track, user, n_users);
};

/* Tell the tracks of the process, of a thread and of a task, by their numbers. */
uint64_t tdt__export_process(struct tdt__exporter *exporter);
uint64_t tdt__export_thread(struct tdt__exporter *exporter, uint32_t number);
/* If the track is new, the annotations of the next event say what the task is. */
uint64_t tdt__export_task(struct tdt__exporter *exporter, uint32_t number);
/* A track below another one, with a name of `n` bytes of UTF-8. */
uint64_t tdt__export_track(struct tdt__exporter *exporter, uint64_t parent, const char *name,
			   size_t n);

/* The interned name of a task behind `start`; it is kept in `*name`, which is 0 at first. */
uint32_t tdt__export_task_name(struct tdt__exporter *exporter, uint32_t number, const char *start,
			       uint32_t *name);
/* The number of `text`. */
uint32_t tdt__export_text(struct tdt__exporter *exporter);

/* Write an event with the annotations that were added. */
void tdt__export_event(struct tdt__exporter *exporter, uint64_t ns, struct tdt__packet_event event);
/* Write one that has only a type, a track and an interned name (0: none). */
void tdt__export_put(struct tdt__exporter *exporter, uint64_t ns, enum tdt__packet_type type,
		     uint64_t track, uint32_t name);
/* Write an event without a duration. */
void tdt__export_mark(struct tdt__exporter *exporter, uint64_t ns, uint64_t track,
		      const char *name);
void tdt__export_annotate(struct tdt__exporter *exporter, const char *name, uint64_t value);
void tdt__export_cpu(struct tdt__exporter *exporter, const struct tdt_event *event);

void tdt__export_phase_names(struct tdt__exporter *exporter);
/* Write what the step changes, and the phases that go on when there are no more steps. */
void tdt__export_phase(struct tdt__exporter *exporter, const struct tdt__step *step);
void tdt__export_last_phases(struct tdt__exporter *exporter);

void tdt__export_counters(struct tdt__exporter *exporter);
/* Write the samples that are due up to `ns`. */
void tdt__export_samples(struct tdt__exporter *exporter, uint64_t ns);
void tdt__export_count(struct tdt__exporter *exporter, const struct tdt__step *step);
