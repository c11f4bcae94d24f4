// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A round of tdt top as JSON.  Its texts were made harmless for a terminal when they were read. */

#include "cli/top_screen.h"
#include "tree-printer/forms.h"
#include "tree-printer/schema.h"

static void round_members(struct tdt__json *json, const struct top_round *round)
{
	tdt__json_u64(json, "pid", round->pid);
	tdt__json_string(json, "library", round->library);
	tdt__json_u64(json, "tasks", round->tasks);
	tdt__json_u64(json, "waiting", round->counts.waiting);
	tdt__json_u64(json, "runnable", round->counts.runnable);
	tdt__json_u64(json, "polling", round->counts.running);
	tdt__json_u64(json, "longest_wait_ns", round->counts.longest_wait_ns);
	tdt__json_u64(json, "longest_poll_ns", round->counts.longest_poll_ns);
	tdt__json_u64(json, "spawned", round->counts.spawned);
	tdt__json_u64(json, "ended", round->counts.ended);
	tdt__json_u64(json, "panicked", round->counts.panicked);
	tdt__json_u64(json, "polls", round->counts.polls);
	tdt__json_known_u64(json, "held", round->counts.held);
	tdt__json_u64(json, "deadlocks", round->deadlocks);
	tdt__json_known_string(json, "misuse", round->misuse);
	tdt__json_known_string(json, "tree", round->tree);
}

static void top_task_members(struct tdt__json *json, const struct top_task *task)
{
	tdt__json_u64(json, "id", task->id);
	tdt__json_known_string(json, "name", task->name);
	tdt__json_string(json, "state", state_words[task->state]);
	tdt__json_u64(json, "state_ns", task->state_ns);
	tdt__json_known_u64(json, "age_ns", task->age_ns);
	tdt__json_u64(json, "polls", task->polls);
	tdt__json_known_u64(json, "parent", task->parent);
	tdt__json_known_u64(json, "owner", task->owner);
	tdt__json_true(json, "deadlock", task->deadlock != 0);
	tdt__json_known_string(json, "place", task->where);
}

static void top_place_members(struct tdt__json *json, const struct top_place *place)
{
	tdt__json_u64(json, "waiting", place->n);
	tdt__json_u64(json, "longest_ns", place->longest);
	tdt__json_string(json, "place", place->text);
}

static void top_thread_members(struct tdt__json *json, const struct top_thread *thread)
{
	tdt__json_u64(json, "thread", thread->id);
	tdt__json_known_string(json, "name", thread->name);
	tdt__json_bool(json, "worker", thread->worker != 0);
	tdt__json_true(json, "parked", thread->parked != 0);
	tdt__json_known_u64(json, "ns", thread->ns);
	tdt__json_known_u64(json, "cpu_ns", thread->cpu_ns);
	if (thread->polls)
		tdt__json_u64(json, "task", thread->task);
}

void top_json(struct tdt__out *out, const struct top_round *round)
{
	struct tdt__json json = tdt__json_document(out);

	tdt__json_begin(&json, "top", '{');
	round_members(&json, round);
	tdt__json_end(&json, '}');
	tdt__json_begin(&json, "rings", '[');
	for (uint64_t i = 0; i < round->n_rings; i++)
		tdt__json_string(&json, NULL, round->ring[i]);
	tdt__json_end(&json, ']');
	TDT__JSON_LIST(&json, "tasks", round->task, round->n_tasks, top_task_members, &json);
	TDT__JSON_LIST(&json, "places", round->place, round->n_places, top_place_members, &json);
	TDT__JSON_LIST(&json, "threads", round->thread, round->n_threads, top_thread_members,
		       &json);
	tdt__json_finish(&json);
}
