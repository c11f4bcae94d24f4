// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From the steps of a recording's tasks to what they did when it ended: see last_states.h. */

#include <config.h>

#include "reader/last_states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/summary_groups.h"
#include "recording/timeline.h"
#include "tree/trace.h"

struct last_reading {
	struct tdt__last_states *states;
	const struct tdt__recorded_task *task;
	const struct tdt__recorded_thread *thread;
	struct tdt__last_polls *polls; /* of all tasks of the recording */
	uint64_t sure_from, listed, until;
};

/* --- Polls -------------------------------------------------------------------------- */

static bool has_leaf_stack(const struct tdt__recording *recording,
			   const struct tdt__recorded_item *begin)
{
	struct tdt__recorded_item part;

	for (uint32_t i = 0; i < begin->n_parts; i++) {
		tdt__recording_part(recording, begin, i, &part);
		if (part.event.kind == TDT_EVENT_STACK)
			return true;
	}
	return false;
}

static void note_last_poll(struct last_reading *reading, struct tdt__last_polls *polls,
			   const struct tdt__recorded_item *begin)
{
	polls->polls++;
	polls->last = *begin;
	if (polls->woken == 0)
		polls->woken_by = begin->event.c;
	if (!has_leaf_stack(reading->states->recording, begin))
		return;
	polls->with_stack = polls->polls;
	polls->stacked = *begin;
}

static bool shows_life(uint8_t kind)
{
	return kind == TDT_EVENT_POLL || kind == TDT_EVENT_WAKE || kind == TDT_EVENT_SPAWN ||
	       kind == TDT_EVENT_TASK;
}

static void note_item(struct last_reading *reading, const struct tdt__recorded_item *item)
{
	uint32_t number = tdt__recording_task(reading->states->recording, item->event.task);
	struct tdt__last_polls *polls;

	if (number == TDT__RECORDED_NONE)
		return;
	polls = &reading->polls[number];
	if (shows_life(item->event.kind))
		polls->seen = item->ns;
	if (item->event.kind == TDT_EVENT_TASK)
		polls->was_listed = true;
	if (item->event.kind == TDT_EVENT_POLL || item->event.kind == TDT_EVENT_WAKE)
		polls->moved = item->ns;
	if (item->event.kind == TDT_EVENT_POLL && item->kind == TDT__RECORDED_BEGIN) {
		note_last_poll(reading, polls, item);
	} else if (item->event.kind == TDT_EVENT_WAKE) {
		polls->woken = item->ns;
		polls->woken_by = item->event.c;
	} else if (item->event.kind == TDT_EVENT_STATE) {
		polls->listed = *item;
		polls->listed_polls = polls->polls;
	} else if (item->event.kind == TDT_EVENT_STACK) {
		polls->found = item->event.a;
		polls->found_at = item->ns;
	}
}

/* --- What a task waits for ---------------------------------------------------------- */

static enum tdt_wait_kind recorded_kind(uint8_t kind)
{
	return kind <= TDT_WAIT_OTHER ? (enum tdt_wait_kind)kind : TDT_WAIT_OTHER;
}

static void fill_wait(const struct tdt__recording *recording,
		      const struct tdt__recorded_item *part, struct tdt_wait *wait)
{
	const struct tdt_event *event = &part->event;
	char payload[TDT__PAYLOAD_MAX + 1];

	*wait = (struct tdt_wait){ .kind = recorded_kind(event->detail),
				   .object = event->c,
				   .owner = event->time };
	tdt__recording_payload(recording, part, payload);
	memcpy(wait->name, payload, strnlen(payload, TDT_WAIT_NAME_MAX));
}

/* What the leaves of the last poll have reported.  Returns 0 or -ENOMEM. */
static int set_last_waits(struct tdt__last_states *states, struct tdt__seen_task *task,
			  const struct tdt__recorded_item *begin)
{
	struct tdt_trace_info *info = &task->member.info;
	struct tdt_wait *waits = tdt__arena_take(&states->tasks.arena,
						 (begin->n_parts + (size_t)1) * sizeof *waits);
	struct tdt__recorded_item part;

	if (waits == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < begin->n_parts; i++) {
		tdt__recording_part(states->recording, begin, i, &part);
		if (part.event.kind != TDT_EVENT_WAIT)
			continue;
		fill_wait(states->recording, &part, &waits[info->n_waits]);
		/* A list has room for one wait: a lock says more than a timeout beside it. */
		if (info->n_waits == 0 || (!tdt__is_lock_wait(&task->wait) &&
					   tdt__is_lock_wait(&waits[info->n_waits])))
			task->wait = waits[info->n_waits];
		info->n_waits++;
	}
	info->waits = info->n_waits != 0 ? waits : NULL;
	return 0;
}

static uint64_t before_end(const struct last_reading *reading, uint64_t then)
{
	return then != 0 && reading->until > then ? reading->until - then : 0;
}

/* --- Listed states ------------------------------------------------------------------ */

/* The payload of a STATE. */
struct listed_state {
	uint64_t polls, spawned, woken, woken_by, object, owner;
};

/*
 * Whether the state in which the task was listed last is still the state at the end: the task has
 * not moved since, and no event since then can be missing.
 */
static bool is_listed_state(const struct last_reading *reading,
			    const struct tdt__last_polls *polls)
{
	return polls->listed.event.kind == TDT_EVENT_STATE &&
	       polls->listed.ns >= reading->sure_from && polls->moved < polls->listed.ns;
}

/* The last poll that is recorded may be an older one: then it has reported another wait. */
static void set_listed_wait(struct tdt__seen_task *task, const struct tdt_wait *wait)
{
	struct tdt_trace_info *info = &task->member.info;

	if (info->n_waits != 0 && tdt__same_wait(&task->wait, wait))
		return;
	task->wait = *wait;
	info->n_waits = 1;
	info->waits = &task->wait;
}

static void set_listed_state(const struct last_reading *reading, struct tdt__seen_task *task,
			     const struct tdt__last_polls *polls, const struct listed_state *listed)
{
	const struct tdt_event *event = &polls->listed.event;
	struct tdt_trace_info *info = &task->member.info;

	task->last = NULL;
	info->state = event->b != 0 ? TDT_TASK_RUNNABLE : TDT_TASK_WAITING;
	info->woken_ns = before_end(reading, listed->woken);
	info->woken_by = listed->woken_by;
	info->polled_ns = before_end(reading, event->c);
	info->state_ns = event->b != 0 ? info->woken_ns : info->polled_ns;
	set_listed_wait(task, &(struct tdt_wait){ .kind = recorded_kind(event->detail),
						  .object = listed->object,
						  .owner = listed->owner });
	if (event->a == 0 || event->b != 0)
		info->n_waits = 0;
}

/* What a listing of the task says, and its events do not. */
static void use_listed(const struct last_reading *reading, struct tdt__seen_task *task,
		       const struct tdt__last_polls *polls)
{
	struct tdt_trace_info *info = &task->member.info;
	char payload[TDT__PAYLOAD_MAX + 1];
	struct listed_state listed;

	if (polls->listed.event.kind != TDT_EVENT_STATE ||
	    tdt__recording_payload(reading->states->recording, &polls->listed, payload) <
		    sizeof listed)
		return;
	memcpy(&listed, payload, sizeof listed);
	info->polls = listed.polls + (polls->polls - polls->listed_polls);
	info->spawned_ns = before_end(reading, listed.spawned);
	if (info->state == TDT_TASK_UNKNOWN && is_listed_state(reading, polls))
		set_listed_state(reading, task, polls, &listed);
}

/* --- States ------------------------------------------------------------------------- */

/* The task has just been spawned, or it waits: before the first poll, a record says the same. */
static bool has_waited(const struct tdt__timeline_task *now)
{
	return now->phase == TDT__WAITING || now->phase == TDT__SPAWNED;
}

static void set_last_state(const struct last_reading *reading, struct tdt__seen_task *task,
			   const struct tdt__timeline_task *now)
{
	struct tdt_trace_info *info = &task->member.info;

	info->state = TDT_TASK_UNKNOWN;
	if (now->phase == TDT__POLLING) {
		info->state = TDT_TASK_RUNNING;
		info->thread = reading->thread[now->thread].id;
	} else if (now->phase != TDT__UNKNOWN && now->since < reading->sure_from) {
		task->last = has_waited(now) ? "waiting" : "runnable";
	} else if (now->phase == TDT__RUNNABLE) {
		info->state = TDT_TASK_RUNNABLE;
	} else if (has_waited(now)) {
		info->state = TDT_TASK_WAITING;
	}
	if (info->state != TDT_TASK_UNKNOWN)
		info->state_ns = before_end(reading, now->since);
}

static const char *known_text(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

static int set_last_task(struct last_reading *reading, struct tdt__seen_task *task,
			 uint32_t number, const struct tdt__timeline_task *now)
{
	const struct tdt__recorded_task *recorded = &reading->task[number];
	const struct tdt__last_polls *polls = &reading->polls[number];
	int error = 0;

	*task = (struct tdt__seen_task){ .member.group = TDT__LEFT_OUT };
	task->member.info = (struct tdt_trace_info){
		.size = sizeof task->member.info,
		.id = recorded->id,
		.name = known_text(recorded->name),
		.file = known_text(recorded->file),
		.line = recorded->line,
		.column = recorded->column,
		.polls = polls->polls,
		.parent = recorded->parent,
		.woken_ns = before_end(reading, polls->woken),
		.woken_by = polls->woken_by,
		.spawned_ns = before_end(reading, recorded->spawned),
		.polled_ns = before_end(reading, polls->polls != 0 ? polls->last.begin
								   : recorded->spawned),
	};
	set_last_state(reading, task, now);
	if (polls->polls != 0 && has_waited(now))
		error = set_last_waits(reading->states, task, &polls->last);
	if (error == 0)
		use_listed(reading, task, polls);
	return error;
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
	const struct tdt__recorded_task *task = &reading->task[number];
	const struct tdt__last_polls *polls = &reading->polls[number];

	if (now->phase == TDT__POLLING)
		return true;
	if (now->phase == TDT__ENDED || task->end_seen ||
	    (is_traced(task, polls) && polls->seen < reading->listed))
		return false;
	return now->phase != TDT__UNKNOWN || task->poll_function != 0 || task->name[0] != '\0' ||
	       task->file[0] != '\0';
}

static int set_last_tasks(struct last_reading *reading, const struct tdt__timeline *timeline)
{
	struct tdt__last_states *states = reading->states;
	int error = 0;

	for (uint32_t i = 0; i < timeline->n_tasks && error == 0; i++) {
		const struct tdt__timeline_task *now = &timeline->task[i];

		if (!may_live(reading, i, now))
			continue;
		error = set_last_task(reading, &states->tasks.task[states->tasks.n], i, now);
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
	const struct tdt_recording *header = tdt__recording_header(recording);

	tasks->now = tdt__recording_until(recording);
	tasks->registry.pid = header->pid;
	tasks->registry.start_real = header->start_real;
	memcpy(tasks->registry.library, header->library, sizeof header->library);
}

int tdt__last_states_read(struct tdt__last_states *states, const struct tdt__recording *recording)
{
	struct last_reading reading = { .states = states,
					.sure_from = tdt__recording_sure_from(recording),
					.listed = tdt__recording_listed(recording),
					.until = tdt__recording_until(recording) };
	size_t n;
	int error = -ENOMEM;

	*states = (struct tdt__last_states){ .recording = recording };
	set_recorded_process(&states->tasks, recording);
	reading.thread = tdt__recording_threads(recording, &n);
	reading.task = tdt__recording_tasks(recording, &n);
	reading.polls = calloc(n + 1, sizeof *reading.polls);
	states->polls = calloc(n + 1, sizeof *states->polls);
	states->tasks.task = calloc(n + 1, sizeof states->tasks.task[0]);
	if (reading.polls != NULL && states->polls != NULL && states->tasks.task != NULL)
		error = read_last_steps(&reading);
	free(reading.polls);
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
