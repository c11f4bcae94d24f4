// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading counters, misuse and panics. */

#include "reader/history.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "facts/past.h"
#include "facts/record.h"
#include "tree/stacks.h"
#include "tree/trace.h"

#define MOST_COUNTERS 4096
#define MOST_PAST 1024 /* notes of a kind */
#define NOTE_TRIES 10
#define PANIC_FILE_MAX 4096

void tdt__history_counters(const struct tdt__target *target, const struct tdt_registry *registry,
			   struct tdt_registry_counters *sum)
{
	struct tdt_registry_counters one;

	*sum = (struct tdt_registry_counters){ 0 };
	for (uint32_t i = 0; i < registry->n_counters && i < MOST_COUNTERS; i++) {
		if (!tdt__target_read(target, registry->counters + i * sizeof one, &one,
				      sizeof one))
			return;
		sum->spawned += one.spawned;
		sum->panicked += one.panicked;
		sum->polls += one.polls;
		sum->captures += one.captures;
		sum->dumps += one.dumps;
		sum->lost += one.lost;
	}
}

void tdt__history_counts(const struct tdt__tasks *tasks, struct tdt_counts *counts)
{
	const struct tdt_registry_counters *sum = &tasks->counters;
	uint64_t live;

	*counts = (struct tdt_counts){ .size = sizeof *counts,
				       .spawned = sum->spawned,
				       .panicked = sum->panicked,
				       .polls = sum->polls,
				       .captures = sum->captures,
				       .dumps = sum->dumps,
				       .lost_wakeups = tasks->losts.total };
	for (size_t i = 0; i < tasks->n; i++) {
		const struct tdt_task_info *info = &tasks->task[i].member.info;

		counts->polls += info->polls;
		tdt__count_state(counts, info->state, info->state_ns);
	}
	live = counts->waiting + counts->runnable + counts->running + tasks->records.being_made;
	counts->ended = counts->spawned > live ? counts->spawned - live : 0;
}

bool tdt__history_misuse(const struct tdt__tasks *tasks, struct tdt__seen_misuse *seen)
{
	struct tdt_misuse *misuse = &seen->misuse;

	if (tasks->registry.misuse == 0 ||
	    !tdt__target_read(tasks->target, tasks->registry.misuse, misuse, sizeof *misuse) ||
	    misuse->kind < TDT_MISUSE_ORDER || misuse->kind > TDT_MISUSE_TASK_LEAVE ||
	    !tdt__images_string(tasks->images, (uintptr_t)misuse->reason, seen->reason,
				sizeof seen->reason))
		return false;
	misuse->name[TDT_MISUSE_NAME_MAX] = '\0';
	misuse->reason = seen->reason;
	return true;
}

/* Read the note at `address` until it is whole.  False: there is none. */
static bool read_whole_note(const struct tdt__target *target, uint64_t address, void *note,
			    size_t size)
{
	const struct tdt_registry_holder *head = note; /* all notes begin with the same words */
	uint32_t before, after;

	for (int i = 0; i < NOTE_TRIES; i++) {
		struct tdt__memory_range range[] = {
			{ address, &before, sizeof before, false },
			{ address, note, size, false },
			{ address, &after, sizeof after, false },
		};

		if (tdt__target_read_ranges(target, range, 3) != 3 || head->number == 0)
			return false;
		if (before % 2 == 0 && before == head->seq && before == after)
			return true;
	}
	return false;
}

/* Read all panics, the last one first.  Returns how many there are. */
static size_t gather_panics(const struct tdt__tasks *tasks, struct tdt_registry_panic *panic)
{
	const struct tdt_registry *registry = &tasks->registry;
	size_t n = 0;

	for (uint32_t i = 0; i < registry->n_panics; i++)
		n += read_whole_note(tasks->target,
				     registry->panics + i * (uint64_t)registry->panic_size,
				     &panic[n], sizeof panic[n]);
	qsort(panic, n, sizeof *panic, tdt__by_note_number);
	return n;
}

/* The memory and the names that past events refer to, for their traces. */
struct past_reading {
	struct tdt__tree_reader *reader;
	struct tdt__findings *findings; /* whose arena has the names of files */
};

static struct tdt__stacks *past_stacks(void *arg, const struct tdt_registry_tree *tree,
				       const struct tdt_registry_entry *entry, uint32_t room)
{
	const struct past_reading *reading = arg;
	struct tdt__read_tree read;

	return tdt__tree_take(reading->reader, tree, entry, room, &read) == 0 ? read.stacks : NULL;
}

/* The name of the file where the task was spawned. */
static const char *past_file(void *arg, uint64_t address)
{
	const struct past_reading *reading = arg;
	char text[PANIC_FILE_MAX], *copy;

	if (address == 0 || !tdt__images_string(reading->reader->tasks->images, address, text,
						sizeof text))
		return NULL;
	copy = tdt__arena_take(&reading->findings->arena, strlen(text) + 1);
	return copy != NULL ? strcpy(copy, text) : NULL;
}

static struct tdt__past_view view_of_past(struct past_reading *reading)
{
	return (struct tdt__past_view){ .arg = reading,
					.stacks = past_stacks,
					.file = past_file,
					.now = reading->reader->tasks->now };
}

void tdt__history_panics(struct tdt__tree_reader *reader, struct tdt__findings *findings)
{
	const struct tdt_registry *registry = &reader->tasks->registry;
	struct tdt_registry_panic *panic =
		registry->n_panics <= MOST_PAST && registry->panic_size >= sizeof *panic
			? malloc((registry->n_panics + 1) * sizeof *panic)
			: NULL;
	size_t n = panic != NULL ? gather_panics(reader->tasks, panic) : 0;
	struct past_reading reading = { reader, findings };
	const struct tdt__past_view view = view_of_past(&reading);
	struct tdt_counts counts;

	tdt__history_counts(reader->tasks, &counts);
	findings->public.panicked = counts.panicked;
	findings->public.held = counts.held;
	for (size_t i = 0; i < n; i++)
		tdt__findings_add_lone(findings, TDT__PANICKED, TDT_ANSWER_FRESH,
				       tdt__past_panic(&view, &panic[i]));
	free(panic);
}

void tdt__history_losts(const struct tdt__target *target, const struct tdt_registry *registry,
			uint64_t counted, uint64_t now, struct tdt__losts *losts)
{
	struct tdt_registry_lost one;
	size_t n = 0;

	*losts = (struct tdt__losts){ 0 };
	if (counted != 0 && registry->lost_size >= sizeof one && registry->n_lost <= MOST_PAST)
		losts->lost = calloc(registry->n_lost + 1, sizeof one);
	for (uint32_t i = 0; losts->lost != NULL && i < registry->n_lost; i++)
		n += read_whole_note(target, registry->lost + i * (uint64_t)registry->lost_size,
				     &losts->lost[n], sizeof one);
	tdt__losts_judge(losts, n, counted, now);
}

void tdt__history_lost(struct tdt__tree_reader *reader, struct tdt__findings *findings,
		       const struct tdt__task_choice *choice)
{
	const struct tdt__losts *losts = &reader->tasks->losts;
	struct past_reading reading = { reader, findings };
	const struct tdt__past_view view = view_of_past(&reading);

	for (size_t i = 0; i < losts->n; i++)
		if (tdt__is_chosen_id(choice, losts->lost[i].id))
			tdt__findings_add_lone(findings, TDT__LOST_WAKEUP, TDT_ANSWER_LAST,
					       tdt__past_lost(&view, losts, i));
}

bool tdt__history_ended(void *arg, uint64_t id, struct tdt_registry_holder *ended)
{
	const struct tdt__tasks *tasks = arg;
	const struct tdt_registry *registry = &tasks->registry;

	for (uint32_t i = 0; i < registry->n_holders && i < MOST_PAST; i++)
		if (read_whole_note(tasks->target,
				    registry->holders + i * (uint64_t)registry->holder_size,
				    ended, sizeof *ended) &&
		    ended->id == id)
			return true;
	return false;
}

void tdt__history_orphans(struct tdt__tree_reader *reader, struct tdt__findings *findings,
			  struct tdt__orphans *orphans)
{
	struct past_reading reading = { reader, findings };
	const struct tdt__past_view view = view_of_past(&reading);

	for (size_t i = 0; i < orphans->n; i++)
		tdt__findings_add_lone(findings, TDT__ORPHANED, TDT_ANSWER_FRESH,
				       tdt__past_orphan(&view, &orphans->lock[i]));
}
