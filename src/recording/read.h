/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Reading a recording of the flight recorder (tdt/layout/recording.h): from a block of bytes to
 * events in the order of time, with nanoseconds of CLOCK_MONOTONIC, and to the tables that events
 * refer to.
 *
 *	struct tdt__recording *recording;
 *	struct tdt__recording_cursor cursor;
 *	struct tdt__recorded_item item;
 *
 *	err = tdt__recording_open(&recording, block, size);
 *	...
 *	err = tdt__recording_begin(&cursor, recording);
 *	...
 *	while (tdt__recording_next(&cursor, &item))
 *		...
 *	tdt__recording_end(&cursor);
 *	tdt__recording_close(recording);
 *
 * The reader knows nothing of processes.  The block may contain anything: whatever the bytes are,
 * reading stays inside the block, ends, and takes time and memory in proportion to the block.
 * Opening sorts each ring by itself (4 to 8 bytes for each slot), and the cursor merges the rings.
 *
 * The block must not change while the recording is open, so the memory of a process that records
 * must be copied first (copy.h), and a file should be read and not mapped: somebody may truncate
 * it.
 *
 * Several threads may read one recording at a time, each with a cursor of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/context.h>
#include <tdt/layout/recording.h>
#include <tdt/tree.h>

#include "base/arena.h"
#include "base/array.h"

#define TDT__RECORDED_NONE UINT32_MAX

/* The most bytes of the payload of one event. */
#define TDT__PAYLOAD_MAX ((TDT_EVENT_SLOTS_MAX - 1) * TDT_EVENT_TEXT)

/* Strings in these structs are never NULL; "" is an unknown name.  They may hold any bytes. */

struct tdt__recorded_thread {
	uint32_t id; /* gettid(2); 0: events whose thread is unknown */
	bool worker;
	const char *name;
	/*
	 * The rings have all events of this thread from this time on, in nanoseconds; UINT64_MAX:
	 * there are only events that were remarkable.
	 */
	uint64_t whole_from;
	/* Private: up to then a ring that the thread still has, or has left, lost some; ticks. */
	uint64_t lost_until;
};

struct tdt__recorded_task {
	uint64_t id;
	uint64_t parent;	/* 0: none, or unknown */
	uint64_t poll_function; /* an address; 0: unknown */
	const char *name;
	const char *file; /* where the task was spawned */
	uint32_t line;
	uint32_t column;
	uint64_t spawned; /* the time of its last SPAWN, ns; 0: that is not in the rings */
	uint64_t ended;	  /* the time of its last END, ns; 0: the same.  A task that is spawned
			     later has the same id */
	bool identified;  /* by an event that is not only remarkable */
	bool blocking;	  /* it is a call that may block */
	struct tdt_trace_context context; /* the last one; if `valid` is 0, it has none, or it is
					     unknown */
	uint64_t context_since;		  /* private: ns */
};

struct tdt__recorded_module {
	uint64_t start; /* its code lies in [start, end) */
	uint64_t end;
	uint64_t bias; /* address in memory - address in the file's symbol table */
	const char *path;
	const char *build_id; /* in hexadecimal */
};

/* One ring that has events.  Its slots are numbered from 0, the oldest one that is left. */
struct tdt__recorded_ring {
	uint32_t kind;	 /* enum tdt_recording_ring_kind */
	uint32_t n;	 /* slots that are left */
	uint64_t first;	 /* slots that were overwritten, or left out of a snapshot */
	uint32_t thread; /* the number of the last thread that wrote to it */
	uint32_t first_thread; /* and of the thread of the oldest event that is left */
	uint64_t from;	 /* the time of the oldest event that is left, ns */
	/* Private. */
	const struct tdt_event *slot;
	uint32_t mask;
	uint32_t thread_before; /* the id of the thread at slot 0 */
	uint32_t thread_after;	/* the id of the thread behind the last slot */
	/*
	 * A poll or an idling that is still going on: the event with the number `n`, which is not
	 * in the ring.  The kind is TDT_EVENT_MORE if there is none.
	 */
	struct tdt_event current;
	uint32_t *entry; /* in the order of time */
	uint32_t n_entries;
};

/* A time of several clocks, ns. */
struct tdt__recorded_clock {
	uint64_t ticks;
	uint64_t monotonic;
	uint64_t boot;
	uint64_t real;
	double scale; /* private: nanoseconds in a tick, up to the next time */
};

/* An open recording, which is only read.  The tables have no order, unless they say so. */
struct tdt__recording {
	struct tdt_recording header; /* of the block.  `program` and `library` end with NUL */
	/* The times of the oldest event, and of the newest one or the snapshot if later, ns. */
	uint64_t from, until;
	/*
	 * From this time on no event is missing: none of any thread was overwritten, and none found
	 * no ring, ns.  Before it, tasks may have been polled and woken that look idle.
	 * UINT64_MAX: events are missing, and nobody knows when.
	 */
	uint64_t sure_from;
	struct tdt__recorded_ring *ring;
	size_t n_rings;
	TDT__TABLE(struct tdt__recorded_thread, thread, n_threads);
	TDT__TABLE(struct tdt__recorded_task, task, n_tasks);
	struct tdt__recorded_module *module;
	size_t n_modules;
	struct tdt__recorded_clock *clock; /* in the order of time */
	size_t n_clocks;

	/* Private. */
	const char *block;
	uint64_t size; /* of the block, as far as it is used */
	struct tdt__pause *pause;	/* in the order of time */
	size_t n_pauses, pauses_room, modules_room;
	TDT__TABLE(uint64_t, lock, n_locks); /* the addresses of those that were handed to tasks */
	struct tdt__arena arena;	     /* for the strings: each text is there once */
	TDT__TABLE(const char *, string, n_strings);
};

/* What an item is.  A POLL and a PARK give two items, all other events one. */
enum tdt__recorded_kind {
	TDT__RECORDED_EVENT = 0, /* an event that has no duration */
	TDT__RECORDED_BEGIN = 1, /* the poll or the idling begins */
	TDT__RECORDED_END = 2	 /* it ends */
};

/* The WAIT and STACK events of a poll. */
struct tdt__recorded_parts {
	uint32_t n;
	/* Private. */
	uint32_t ring;
	uint32_t entry;
};

/*
 * What the cursor returns.  WAIT events, and STACK events without a time, are not returned by
 * themselves: they are parts of the BEGIN of their poll (tdt__recording_part()).
 */
struct tdt__recorded_item {
	enum tdt__recorded_kind kind;
	struct tdt_event event; /* as it was written: `time` is in ticks */
	uint64_t ns;		/* when; never less than that of the item before */
	uint64_t begin;		/* of a POLL or PARK, ns */
	uint64_t end;		/* the same; UINT64_MAX: it was still going on, and there is no
				   item for its end */
	uint32_t thread;	/* the number of the thread on which it was */
	bool remarkable;	/* it is from a ring of remarkable events: what was around it is
				   not in the recording */
	struct tdt__recorded_parts parts; /* of the BEGIN of a poll; of a STATE, itself */
	/* Private. */
	uint32_t slot;
};

/* Private. */
struct tdt__recording_cursor {
	const struct tdt__recording *recording;
	struct tdt__recording_head *head; /* a heap: the next item of each ring */
	size_t n;
	uint64_t last;
};

/*
 * Open the recording in `block`, of `size` bytes, which must be aligned to 8 bytes, and must stay
 * as it is until the recording is closed.  Returns 0, -EINVAL (not a recording), -ENOTSUP (of
 * another version, or of another byte order) or -ENOMEM.
 */
int tdt__recording_open(struct tdt__recording **recording, const void *block, size_t size);
void tdt__recording_close(struct tdt__recording *recording); /* NULL does nothing */

/* From this time on no event is missing, nor was the recorder stopped, ns. */
uint64_t tdt__recording_whole_from(const struct tdt__recording *recording);

/* How much of the time from `from` to `until` the recorder ran, as far as it says so, ns. */
uint64_t tdt__recording_time(const struct tdt__recording *recording, uint64_t from, uint64_t until);

/*
 * Each traced task that lived at this time has a TASK event since, ns.  So a task that has an
 * earlier TASK event, and no event since, had ended.  (Tasks that a runtime only reports have no
 * TASK events.)  0: no such time is known.
 */
uint64_t tdt__recording_listed(const struct tdt__recording *recording);

/* Convert ticks to nanoseconds of CLOCK_MONOTONIC. */
uint64_t tdt__recording_ns(const struct tdt__recording *recording, uint64_t ticks);

/* The time of CLOCK_REALTIME at `ns` of CLOCK_MONOTONIC, as it was set then. */
uint64_t tdt__recording_wall(const struct tdt__recording *recording, uint64_t ns);

/* CLOCK_REALTIME - CLOCK_MONOTONIC, modulo 2^64, at the last time that both were recorded. */
uint64_t tdt__recording_real(const struct tdt__recording *recording);

/*
 * The number of a task in the table of tasks; TDT__RECORDED_NONE: no event names it.  All tasks
 * that were polled or woken are in the table, if only by their ids.
 */
uint32_t tdt__recording_task(const struct tdt__recording *recording, uint64_t id);

/* The name of the task with this id.  NULL: it has none, or it is unknown. */
const char *tdt__recording_task_name(const struct tdt__recording *recording, uint64_t id);

/*
 * The return addresses of a stack, the innermost first, and why they end there.  Returns how many
 * there are; 0: there is no such stack.
 */
size_t tdt__recording_stack(const struct tdt__recording *recording, uint32_t number,
			    const uint64_t **pcs, enum tdt_cut *cut);

/* How many stacks were not recorded, because the table of stacks was full. */
uint32_t tdt__recording_stacks_lost(const struct tdt__recording *recording);

/* Return the items of all rings in the order of time.  Returns 0 or -ENOMEM. */
int tdt__recording_begin(struct tdt__recording_cursor *cursor,
			 const struct tdt__recording *recording);
/* False: there are no more. */
bool tdt__recording_next(struct tdt__recording_cursor *cursor, struct tdt__recorded_item *item);
void tdt__recording_end(struct tdt__recording_cursor *cursor);

/* Part `i`.  Only `event` and the payload are set. */
void tdt__recording_part(const struct tdt__recording *recording,
			 const struct tdt__recorded_parts *parts, uint32_t i,
			 struct tdt__recorded_item *part);

/* Copy the payload of an item's event, and a NUL behind it.  Returns its length. */
size_t tdt__recording_payload(const struct tdt__recording *recording,
			      const struct tdt__recorded_item *item,
			      char payload[TDT__PAYLOAD_MAX + 1]);

/*
 * What context the item's task has from the item on, until another item says otherwise: of a
 * CONTEXT, and of a SPAWN, TASK or END, whose task has had it already since its previous such item
 * or CONTEXT, if that is missing.  If it has none, `valid` is 0.  False: the item does not say.
 */
bool tdt__recorded_context(const struct tdt__recording *recording,
			   const struct tdt__recorded_item *item,
			   struct tdt_trace_context *context);

/* The payload of a STATE. */
struct tdt__listed_state {
	uint64_t polls, spawned, woken, woken_by, object, owner;
	uint64_t orphaned; /* not in recordings of earlier libraries */
};

/* Read the payload of a STATE.  False: it is damaged. */
bool tdt__recorded_listed(const struct tdt__recording *recording,
			  const struct tdt__recorded_item *item, struct tdt__listed_state *listed);

/* The provider, the name and the arguments of a USER event. */
struct tdt__recorded_user {
	const char *provider;
	const char *name;
	/* Private. */
	const char *at, *end;
	unsigned left;
};

struct tdt__recorded_argument {
	enum tdt_user_type type;
	union {
		int64_t i;
		uint64_t u;
		double d;
		const char *text; /* in the payload */
	};
};

/*
 * Read the payload of a USER event, which has `n` bytes and a NUL behind them.  The result points
 * into it.  False: the payload is damaged.
 */
bool tdt__recorded_user(struct tdt__recorded_user *user, const struct tdt_event *event,
			const char *payload, size_t n);
/* Read the next argument.  False: there are no more, or the rest is damaged or was cut. */
bool tdt__recorded_user_next(struct tdt__recorded_user *user,
			     struct tdt__recorded_argument *argument);
