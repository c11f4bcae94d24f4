/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The figures of one round of tdt top: what one look at the target found.  A round is plain data of
 * a fixed size, since a child process fills it in (top_look.h) in memory that it shares with this
 * one.  All texts are made harmless for a terminal by the child.  Truth values are 0 or 1, in a
 * type that may hold anything.
 *
 * top_round_take() checks the figures, and compares them with those of the round before.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/counters.h>
#include <tdt/tree.h>

#define TOP_TASKS 500
#define TOP_PLACES 500
#define TOP_THREADS 128
#define TOP_RINGS 6
#define TOP_TEXT 200
#define TOP_TREE 60000
#define TOP_BUCKETS 32

/* What is shown, and of which tasks. */
enum top_view { TOP_VIEW_TASKS, TOP_VIEW_PLACES, TOP_VIEW_THREADS, TOP_VIEW_TIMES, TOP_VIEWS };

/* By suspicion: polls that last come first, then runnable tasks, then waiting ones. */
enum top_sort {
	TOP_BY_SUSPICION,
	TOP_BY_FOR,
	TOP_BY_AGE,
	TOP_BY_POLLS,
	TOP_BY_NAME,
	TOP_BY_ID,
	TOP_SORTS
};

enum top_only { TOP_ALL, TOP_ONLY_WAITING, TOP_ONLY_RUNNABLE, TOP_ONLY_POLLING, TOP_ONLYS };

struct top_question {
	enum top_view view;
	enum top_sort sort;
	enum top_only only;
	bool reverse;
	bool requests;   /* the open task is requested to show where it waits */
	char filter[64]; /* a part of the name, or a pattern as "conn *"; "": all tasks */
	bool open;       /* the tree of one task is shown */
	uint64_t id;     /* of that task */
};

struct top_task {
	uint64_t id, parent;
	uint64_t owner;    /* the task that it waits for; 0: none, or unknown */
	uint64_t state_ns; /* how long it has been in its state */
	uint64_t age_ns;   /* since it was spawned; 0: unknown */
	uint64_t polls;
	double rate;       /* polls per second since the last round; negative: unknown */
	enum tdt_task_state state;
	uint8_t deadlock; /* or a futurelock, or it waits for an orphaned lock */
	char name[TOP_TEXT];
	char where[TOP_TEXT]; /* what it waits for, or the place where it waits or runs */
};

/* A place where tasks wait. */
struct top_place {
	uint64_t key;     /* the same in all rounds */
	uint64_t n;       /* how many tasks wait there */
	uint64_t longest; /* of them, how long one has waited, ns */
	int64_t more;     /* how many more than in the last round */
	char text[TOP_TEXT];
};

/* The text of the place of a tree, kept for the next round. */
struct top_name {
	uint64_t key; /* 0: not to be kept */
	char text[TOP_TEXT];
};

struct top_thread {
	uint32_t id;
	uint8_t worker, polls, parked;
	uint64_t ns;     /* how long it has been in that state; 0: unknown */
	uint64_t task;   /* that it polls */
	uint64_t cpu_ns; /* the CPU time of the thread until now; 0: unknown */
	double cpu;      /* the share of a CPU since the last round; negative: unknown */
	char name[TOP_TEXT];
	char task_name[TOP_TEXT];
};

/* How many durations there were: bucket i has those below 2^i microseconds. */
struct top_histogram {
	uint64_t n[TOP_BUCKETS];
	uint64_t total;
	uint64_t most; /* ns */
};

/* What a recording says of the last seconds. */
struct top_times {
	uint8_t there;
	uint8_t runs;       /* the recorder runs now */
	uint64_t window_ns; /* the figures are of so much time */
	struct top_histogram polls, latencies;
	char trouble[TOP_TEXT]; /* why there is none */
};

struct top_round {
	uint64_t when; /* of this process's CLOCK_MONOTONIC */
	uint32_t pid;
	uint32_t copies; /* of the library in the process; the first is shown */
	char state;      /* of the process, as /proc/PID/stat has it */
	int refused;     /* why stacks of running polls cannot be read: an errno; 0: they can */
	char library[TOP_TEXT];

	struct tdt_counts counts;
	uint64_t tasks;	    /* now */
	uint64_t with_tree; /* so many of them show where they wait or run */
	uint8_t has_rates; /* there was a round before */
	double spawn_rate, end_rate, poll_rate;

	uint64_t deadlocks; /* and futurelocks, and lost wake-ups */
	uint64_t n_rings;
	/* "deadlock: task 5 "a" waits for task 6..."; first those that are counted above. */
	char ring[TOP_RINGS][TOP_TEXT];
	char misuse[TOP_TEXT];          /* "": none */

	uint64_t n_matching; /* tasks that the filter lets through */
	uint64_t n_tasks, n_places, n_threads, n_known;
	struct top_task task[TOP_TASKS]; /* the first of those, in their order */
	uint64_t places;                 /* how many places there are in all */
	struct top_place place[TOP_PLACES]; /* those with the most tasks */
	struct top_thread thread[TOP_THREADS]; /* workers first */
	uint64_t workers, workers_polling;
	struct top_times times;

	/* Of the open task. */
	uint8_t is_there;
	uint64_t holder; /* the task that it waits for; 0: none */
	uint64_t tree_size;
	char tree[TOP_TREE]; /* lines, as tdt bt prints them */

	struct top_name known[TOP_PLACES];
};

/*
 * Take a round that a child has filled in: make sure that it can be shown, whatever it says, and
 * compare it with the round before (NULL: there was none).
 */
void top_round_take(struct top_round *round, const struct top_round *last);

/* Add a duration. */
void top_histogram_add(struct top_histogram *histogram, uint64_t ns);

/* The upper end of bucket `i`, in nanoseconds; UINT64_MAX: of the last one. */
uint64_t top_bucket_ns(unsigned i);

/* A value that `share` (0 to 1) of the durations are below, as precise as the buckets; 0: none. */
uint64_t top_histogram_share(const struct top_histogram *histogram, double share);

struct tdt__string;

/* Move the text to a field of a round, cut to its size, and empty it. */
void top_keep_text(char to[TOP_TEXT], struct tdt__string *string);
