/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The words of the text forms.  words.c has the parts of sentences: counts, durations, what is said
 * of a task, what it waits for.  task_line.c makes the lines about one task of them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

#include "names.h"
#include "strings.h"

/*
 * Counts and durations as arguments of tdt__string_printf().  The texts last as long as the block
 * that they are in.
 */
#define TDT__WORDS_MAX 48
#define TDT__WORDS_ROOM ((char[TDT__WORDS_MAX]){ "" })
/* "10,000"; "1 task", "10,000 tasks" */
#define TDT__NUMBER(n) tdt__count_text(TDT__WORDS_ROOM, n, "")
#define TDT__COUNTED(n, noun) tdt__count_text(TDT__WORDS_ROOM, n, noun)
/* "1.204 s"; the same, or "-" if it is 0: unknown */
#define TDT__DURATION(ns) tdt__duration_text(TDT__WORDS_ROOM, ns)
#define TDT__DURATION_CELL(ns) ((ns) != 0 ? TDT__DURATION(ns) : "-")
/* "2026-11-22 03:12:44.120" or "03:12:44.120", of CLOCK_REALTIME */
#define TDT__WALL_CLOCK(real, dated) tdt__wall_clock_text(TDT__WORDS_ROOM, real, dated)

const char *tdt__count_text(char text[TDT__WORDS_MAX], uint64_t n, const char *noun);
const char *tdt__duration_text(char text[TDT__WORDS_MAX], uint64_t ns);
const char *tdt__wall_clock_text(char text[TDT__WORDS_MAX], uint64_t real, bool dated);

/* Added to a string: "1 leaf", and " (1 leaf)". */
void tdt__count_leaves(struct tdt__string *string, uint64_t n);
void tdt__leaves_aside(struct tdt__string *string, uint64_t n);

/* What several tasks have: from the least to the most. */
struct tdt__extent {
	uint64_t low, high;
};

/* " 1.204 s to 60.10 s"; one duration if both read the same; " up to 60.10 s" from 0 on. */
void tdt__duration_range(struct tdt__string *string, struct tdt__extent range);

/*
 * Task `i` of a group.  Fields that the caller's older header does not have are 0.  If the group's
 * trace has its names, the counts of leaves are those of the trace.
 */
struct tdt_task_info tdt__dump_task(const struct tdt_snapshot_group *group, size_t i);

/* `5 "a"`: the id and the name of a task.  The name is escaped; NULL: the task has none. */
void tdt__task_name(struct tdt__string *string, uint64_t id, const char *name);

/* The word for what a thread does.  A worker that neither idles nor polls is busy with itself. */
const char *tdt__thread_word(bool polls, bool parked, bool worker);

/* The line that says that each age is at least what is printed. */
#define TDT__AT_LEAST "all times are at least these, since a core file has no clock\n"

/* The line of the first misuse of the library. */
void tdt__misuse_line(struct tdt__string *string, const struct tdt_misuse *misuse);

/*
 * Parts of the line of one task, which the line of a group has, too.  Each begins with a space, or
 * with a comma and a space.  The state of a task in a deadlock, and of one that has kept a worker
 * for long, is red; that of one that has been runnable for long is yellow.
 */
void tdt__task_state(struct tdt__string *string, const struct tdt_task_info *info, bool deadlock);
/* The colour of that state (terminal.h).  NULL: nothing is suspicious. */
const char *tdt__task_color(const struct tdt_task_info *info, bool deadlock);
/*
 * How long the task has been in its state: " for 3 s" behind "running", but " 3 s" behind
 * "pending".  Adds nothing if that is unknown.
 */
void tdt__task_time(struct tdt__string *string, const struct tdt_task_info *info);
/* What a ring of waits is: "deadlock" (in red), or that it is unproven, or only a ring. */
void tdt__ring_kind(struct tdt__string *string, const struct tdt_snapshot_cycle *cycle);
/*
 * `deadlock: task 5 "a" waits for task 6, which waits for task 5 "a"`: the tasks until there are
 * `most` bytes.
 */
void tdt__ring_line(struct tdt__string *string, const struct tdt_snapshot_cycle *cycle,
		    size_t most);
/* The word between a state and a duration. */
const char *tdt__for(enum tdt_task_state state);
/* " on thread 4711": where the task runs. */
void tdt__task_thread(struct tdt__string *string, const struct tdt_task_info *info);
void tdt__task_syscall(struct tdt__string *string, const char *syscall);
/* "aborted by task 7"; `by` is 0 if no task did it. */
void tdt__aborted(struct tdt__string *string, uint64_t by);
/* Why there is no leaf, of a task that waits and whose tree has none. */
void tdt__no_leaves(struct tdt__string *string, const struct tdt_task_info *info);

/*
 * Where a tree comes from.  For a single trace, all of it is 0, which means TDT_ANSWER_FRESH; if
 * the trace is old, `info` has its age.
 */
struct tdt__task_kind {
	enum tdt_answer answer;
	bool outside;  /* the snapshot was read from outside the process */
	bool recorded; /* it was made of a recording */
	bool unseen;   /* tasks whose last tree is of their last poll were not requested */
	bool deadlock; /* the task is in a deadlock */
};
static inline struct tdt__task_kind tdt__kind_in(const struct tdt_snapshot *snapshot,
						 enum tdt_answer answer, bool deadlock)
{
	return (struct tdt__task_kind){ .answer = answer,
					.outside = snapshot->outside != 0,
					.recorded = snapshot->recorded != 0,
					.unseen = snapshot->unseen != 0,
					.deadlock = deadlock };
}

/* Whether the tree was there, so that the task was not requested. */
static inline bool tdt__is_seen(const struct tdt_task_info *info, struct tdt__task_kind kind)
{
	return kind.unseen && kind.answer == TDT_ANSWER_LAST &&
	       info->state == TDT_TASK_WAITING && info->polls_since == 0;
}

/*
 * How old the tree is: ", watched 1 s to 2 s ago, 0 polls since", ", recorded 3.000 ms before the
 * end, 2 polls before the last", or ", as seen 1 s and 3 polls ago".
 */
void tdt__tree_age(struct tdt__string *string, struct tdt__extent age_ns,
		   struct tdt__extent polls_since, struct tdt__task_kind kind, bool seen);

/* What the tree is. */
void tdt__task_answer(struct tdt__string *string, const struct tdt_task_info *info,
		      struct tdt__task_kind kind);
void tdt__task_place(struct tdt__string *string, const struct tdt_task_info *info);
/* "spawned at demo/echo.c:12:3"; what is 0 is left out. */
void tdt__spawn_place(struct tdt__string *string, const char *file, uint32_t line, uint32_t column);
void tdt__task_parent(struct tdt__string *string, const struct tdt_task_info *info);
/* The trace that the task belongs to, and if `span` is true, the application's span. */
void tdt__task_context(struct tdt__string *string, const struct tdt_task_info *info, bool span);

/* "a mutex", of the kinds of objects that tasks share, and differ in their addresses; else NULL. */
const char *tdt__shared_object(enum tdt_wait_kind kind);

/*
 * Whether `wait` says more than the tree does: which task is waited for, or which one of several
 * mutexes or the like.
 */
bool tdt__wait_is_news(const struct tdt_wait *wait);

/*
 * "for a mutex (0x10) held by task 9 "a"".  Task `self` waits; if it waits for itself, it reads so.
 * `owner` is the owner's name; NULL: it has none, or it is unknown.
 */
void tdt__wait_for(struct tdt__string *string, const struct tdt_wait *wait, uint64_t self,
		   const char *owner);
/* The same without "for". */
void tdt__waited_for(struct tdt__string *string, const struct tdt_wait *wait, uint64_t self,
		     const char *owner);

/* "a mutex "accounts" (0x10)", if `what` is "a mutex". */
void tdt__wait_object(struct tdt__string *string, const char *what, const struct tdt_wait *wait);

enum {
	TDT__WAITS_SHOWN = 8 /* lines about waits; further waits are only counted */
};

/*
 * The lines above the tree of a task: its own; the next one of these; and what it waits for.
 * Owners whose names are not in `info` are looked up in `names` (NULL: none).
 */
void tdt__task_lines(struct tdt__string *string, const struct tdt_task_info *info,
		     struct tdt__task_kind kind, const struct tdt__names *names);

/* The line which warns that some of the leaves may be over.  May add nothing. */
void tdt__unsure_line(struct tdt__string *string, const struct tdt_task_info *info);

/* `busy loop: task 6 "x"`: the beginning of a line about what is wrong. */
void tdt__headline(struct tdt__string *string, const char *what, uint64_t id, const char *name);

/*
 * `busy loop: task 6 "x" woke itself 406,000 times in 0.1 s`: the line about a task with
 * `busy_polls`.
 */
void tdt__busy_line(struct tdt__string *string, const struct tdt_task_info *info);

/*
 * The line of a lost wake-up.  `took_ns`: the requests of this answer were made so long ago; 0: it
 * made none.
 */
void tdt__lost_line(struct tdt__string *string, const struct tdt_task_info *info, uint64_t took_ns,
		    const struct tdt__names *names);
