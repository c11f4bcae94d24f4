// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From the steps of a recording's tasks to what they did when it ended: see last_states.h. */

#include "reader/last_states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts/wait.h"
#include "recording/timeline.h"
#include "tree/waits.h"

struct last_reading {
	struct tdt__last_states *states;
	struct tdt__last_polls *polls; /* of all tasks of the recording; then of those that live */
	uint64_t listed, until;
};

/* --- Polls -------------------------------------------------------------------------- */

static bool has_leaf_stack(const struct tdt__recording *recording,
			   const struct tdt__recorded_item *begin)
{
	struct tdt__recorded_item part;

	for (uint32_t i = 0; i < begin->parts.n; i++) {
		tdt__recording_part(recording, &begin->parts, i, &part);
		if (part.event.kind == TDT_EVENT_STACK)
			return true;
	}
	return false;
}

static void note_last_poll(struct last_reading *reading, struct tdt__last_polls *polls,
			   const struct tdt__recorded_item *begin)
{
	polls->polls++;
	polls->begun = begin->ns;
	if (polls->woken == 0)
		polls->woken_by = begin->event.c;
	if (!has_leaf_stack(reading->states->recording, begin))
		return;
	polls->with_stack = polls->polls;
	polls->stacked = *begin;
	polls->stacked_more = polls->counted ? polls->more : UINT64_MAX;
}

/* A listing of the task: what it says was so at least then. */
static void note_listed(struct last_reading *reading, struct tdt__last_polls *polls,
			const struct tdt__recorded_item *item)
{
	struct tdt__listed_state listed;

	if (!tdt__recorded_listed(reading->states->recording, item, &listed))
		return;
	polls->more = listed.polls - polls->polls;
	polls->counted = true;
	polls->spawned = listed.spawned;
	if (item->event.c > polls->begun)
		polls->begun = item->event.c;
	if (listed.woken <= polls->woken)
		return;
	polls->woken = listed.woken;
	polls->woken_by = listed.woken_by;
}

static bool shows_life(uint8_t kind)
{
	return kind == TDT_EVENT_POLL || kind == TDT_EVENT_WAKE || kind == TDT_EVENT_SPAWN ||
	       kind == TDT_EVENT_TASK || kind == TDT_EVENT_RUN;
}

static void note_item(struct last_reading *reading, const struct tdt__recorded_item *item)
{
	uint32_t number = tdt__recording_task(reading->states->recording, item->event.task);
	struct tdt__last_polls *polls;

	if (number == TDT__RECORDED_NONE)
		return;
	polls = &reading->polls[number];
	if (item->event.kind == TDT_EVENT_SPAWN) /* what was before is of a task with the same id */
		*polls = (struct tdt__last_polls){ 0 };
	if (shows_life(item->event.kind))
		polls->seen = item->ns;
	if (item->event.kind == TDT_EVENT_TASK)
		polls->was_listed = true;
	if ((item->event.kind == TDT_EVENT_POLL && item->kind == TDT__RECORDED_BEGIN) ||
	    (item->event.kind == TDT_EVENT_RUN && item->event.detail != TDT_PENDING)) {
		note_last_poll(reading, polls, item);
	} else if (item->event.kind == TDT_EVENT_WAKE) {
		polls->woken = item->ns;
		polls->woken_by = item->event.c;
	} else if (item->event.kind == TDT_EVENT_STATE) {
		note_listed(reading, polls, item);
	} else if (item->event.kind == TDT_EVENT_STACK) {
		polls->found = item->event.a;
		polls->found_at = item->ns;
	}
}

/* --- What a task waits for ---------------------------------------------------------- */

/* Returns 0 or -ENOMEM. */
static int set_last_waits(struct tdt__last_states *states, struct tdt__seen_task *task,
			  const struct tdt__timeline *timeline, uint32_t number)
{
	const struct tdt__timeline_task *now = &timeline->task[number];
	const struct tdt__recorded_parts *parts = &now->parts;
	struct tdt_task_info *info = &task->member.info;
	size_t room = parts->n + (size_t)1;
	void *block = tdt__arena_take(&states->tasks.arena, room * TDT__LISTED_WAIT);
	const struct tdt_wait *const *list;
	struct tdt_wait *waits;

	if (block == NULL)
		return -ENOMEM;
	list = tdt__waits_in(block, room, &waits);
	for (uint32_t i = 0; i < parts->n; i++) {
		struct tdt_wait wait;

		if (!tdt__recorded_wait(states->recording, parts, i, &wait))
			continue;
		tdt__timeline_renew(timeline, number, now, &wait);
		tdt__add_wait(waits, &info->n_waits, &wait);
	}
	if (info->n_waits == 0)
		return 0;
	info->waits = list;
	task->wait = waits[0];
	return 0;
}

/* --- States ------------------------------------------------------------------------- */

static uint64_t before_end(const struct last_reading *reading, uint64_t then)
{
	return then != 0 && reading->until > then ? reading->until - then : 0;
}

/* The task has just been spawned, or it waits: before the first poll, a record says the same. */
static bool has_waited(const struct tdt__timeline_task *now)
{
	return now->phase == TDT__WAITING || now->phase == TDT__SPAWNED;
}

static void set_last_state(const struct last_reading *reading, struct tdt__seen_task *task,
			   const struct tdt__timeline_task *now)
{
	static const char *const last[TDT__PHASES] = { [TDT__SPAWNED] = "waiting",
						       [TDT__WAITING] = "waiting",
						       [TDT__RUNNABLE] = "runnable",
						       [TDT__POLLING] = "polling" };
	struct tdt_task_info *info = &task->member.info;

	info->state = TDT_TASK_UNKNOWN;
	if (!now->sure) {
		task->last = last[now->phase];
		return;
	}
	if (now->phase == TDT__POLLING)
		info->state = TDT_TASK_RUNNING;
	else if (now->phase == TDT__RUNNABLE)
		info->state = TDT_TASK_RUNNABLE;
	else if (has_waited(now))
		info->state = TDT_TASK_WAITING;
	if (info->state == TDT_TASK_RUNNING && now->thread != TDT__RECORDED_NONE)
		info->thread = reading->states->recording->thread[now->thread].id;
	info->state_ns = before_end(reading, now->since);
}

static const char *known_text(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

static int set_last_task(struct last_reading *reading, struct tdt__seen_task *task,
			 const struct tdt__timeline *timeline, uint32_t number)
{
	const struct tdt__timeline_task *now = &timeline->task[number];
	const struct tdt__recorded_task *recorded = &reading->states->recording->task[number];
	const struct tdt__last_polls *polls = &reading->polls[number];
	uint64_t spawned = recorded->spawned != 0 ? recorded->spawned : polls->spawned;

	*task = (struct tdt__seen_task){ .member.group = TDT__LEFT_OUT };
	task->member.info = (struct tdt_task_info){
		.size = sizeof task->member.info,
		.id = recorded->id,
		.name = known_text(recorded->name),
		.file = known_text(recorded->file),
		.line = recorded->line,
		.column = recorded->column,
		.polls = polls->polls + polls->more,
		.parent = recorded->parent,
		.woken_ns = before_end(reading, polls->woken),
		.woken_by = polls->woken_by,
		.spawned_ns = before_end(reading, spawned),
		.polled_ns = before_end(reading, polls->begun != 0 ? polls->begun : spawned),
		.context = recorded->context,
		.blocking = recorded->blocking,
	};
	set_last_state(reading, task, now);
	return has_waited(now) ? set_last_waits(reading->states, task, timeline, number) : 0;
}

/* Of a task that its runtime only reports, no poll function is known, and no listing has it. */
static bool is_traced(const struct tdt__recorded_task *task, const struct tdt__last_polls *polls)
{
	return task->poll_function != 0 || polls->was_listed;
}

/*
 * Whether the task may have lived at the end.  It had ended before if a listing of all live tasks
 * lacks it.  A task of which only a ring of remarkable events tells may have ended long before,
 * too: a live one has its identity in the recording.
 */
static bool may_live(const struct last_reading *reading, uint32_t number,
		     const struct tdt__timeline_task *now)
{
	const struct tdt__recorded_task *task = &reading->states->recording->task[number];
	const struct tdt__last_polls *polls = &reading->polls[number];

	if (now->phase == TDT__POLLING && now->sure)
		return true;
	if (now->phase == TDT__ENDED || task->ended > task->spawned ||
	    (is_traced(task, polls) && polls->seen < reading->listed))
		return false;
	return now->phase != TDT__UNKNOWN || task->identified;
}

static int set_last_tasks(struct last_reading *reading, const struct tdt__timeline *timeline)
{
	struct tdt__last_states *states = reading->states;
	int error = 0;

	for (uint32_t i = 0; i < timeline->n_tasks && error == 0; i++) {
		if (!may_live(reading, i, &timeline->task[i]))
			continue;
		error = set_last_task(reading, &states->tasks.task[states->tasks.n], timeline, i);
		states->polls[states->tasks.n++] = reading->polls[i];
	}
	return error;
}

/* --- The recording ------------------------------------------------------------------ */

static int read_last_steps(struct last_reading *reading)
{
	struct tdt__timeline timeline;
	struct tdt__step step;
	int error;

	if (tdt__timeline_begin(&timeline, reading->states->recording) != 0)
		return -ENOMEM;
	while (tdt__timeline_next(&timeline, &step))
		note_item(reading, &step.item);
	error = set_last_tasks(reading, &timeline);
	tdt__timeline_end(&timeline);
	return error;
}

static void set_recorded_process(struct tdt__tasks *tasks, const struct tdt__recording *recording)
{
	const struct tdt_recording *header = &recording->header;

	tasks->now = recording->until;
	tasks->registry.pid = header->pid;
	tasks->registry.start_real = header->start_real;
	memcpy(tasks->registry.library, header->library, sizeof header->library);
}

int tdt__last_states_read(struct tdt__last_states *states, const struct tdt__recording *recording)
{
	struct last_reading reading = { .states = states,
					.listed = tdt__recording_listed(recording),
					.until = recording->until };
	size_t n = recording->n_tasks;
	int error = -ENOMEM;

	*states = (struct tdt__last_states){ .recording = recording };
	set_recorded_process(&states->tasks, recording);
	states->polls = reading.polls = calloc(n + 1, sizeof *reading.polls);
	states->tasks.task = calloc(n + 1, sizeof states->tasks.task[0]);
	if (reading.polls != NULL && states->tasks.task != NULL)
		error = read_last_steps(&reading);
	if (error != 0)
		tdt__last_states_fini(states);
	return error;
}

void tdt__last_states_fini(struct tdt__last_states *states)
{
	tdt__tasks_fini(&states->tasks);
	free(states->polls);
	*states = (struct tdt__last_states){ 0 };
}
