// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The summary of a recording as one JSON object, on one line.  tdt-trace(5) has the schema. */

#include "summaries.h"

#include <stdio.h>

#include <tdt/layout/recording.h>

#include "forms.h"
#include "schema.h"

#include "facts/wait.h"
#include "recording/read.h"

/* While a summary is written. */
struct summary_json {
	struct tdt__json *json;
	const struct tdt__summary_form *form;
	const struct tdt__recording *recording;
};

static void task_member(const struct summary_json *of, const char *key, uint32_t index)
{
	const struct tdt__recorded_task *task;

	if (index == TDT__NO_TASK)
		return;
	task = &of->recording->task[index];
	tdt__json_begin(of->json, key, '{');
	tdt__json_u64(of->json, "id", task->id);
	tdt__json_known_string(of->json, "name", task->name);
	tdt__json_known_string(of->json, "file", task->file);
	tdt__json_known_u64(of->json, "line", task->line);
	tdt__json_known_u64(of->json, "column", task->column);
	tdt__json_end(of->json, '}');
}

static void stack_member(const struct summary_json *of, uint32_t stack)
{
	const struct tdt_node *root = tdt__summary_root(of->form, stack);

	if (root != NULL)
		tdt__json_nodes(of->json, root);
}

static void panic_json(const struct summary_json *of, const struct tdt__summary_panic *panic)
{
	task_member(of, "task", panic->task);
	tdt__json_u64(of->json, "thread", panic->thread);
	tdt__json_u64(of->json, "at_ns", panic->at);
}

static void lost_json(const struct summary_json *of, const struct tdt__summary_lost *lost)
{
	task_member(of, "task", lost->task);
	tdt__json_u64(of->json, "ns", lost->ns);
	tdt__json_u64(of->json, "at_ns", lost->at);
}

static void poll_json(const struct summary_json *of, const struct tdt__summary_poll *poll)
{
	static const char *const results[] = { "ready", "pending", "panicked" };

	task_member(of, "task", poll->task);
	tdt__json_u64(of->json, "thread", poll->thread);
	if (poll->cpu != UINT16_MAX)
		tdt__json_u64(of->json, "cpu", poll->cpu);
	tdt__json_u64(of->json, "start_ns", poll->start);
	tdt__json_u64(of->json, "ns", poll->ns);
	if (!poll->going_on && poll->result <= TDT_PANICKED)
		tdt__json_string(of->json, "result", results[poll->result]);
	tdt__json_true(of->json, "going_on", poll->going_on);
	tdt__json_known_u64(of->json, "woken_by", poll->woken_by);
	stack_member(of, poll->stack);
}

/* The owner may be a task of which nothing but its id is known. */
static void owner_member(const struct summary_json *of, const struct tdt__summary_wait *wait)
{
	task_member(of, "owner", wait->owner);
	if (wait->owner != TDT__NO_TASK || wait->what.owner == 0)
		return;
	tdt__json_begin(of->json, "owner", '{');
	tdt__json_u64(of->json, "id", wait->what.owner);
	tdt__json_end(of->json, '}');
}

static void wait_json(const struct summary_json *of, const struct tdt__summary_wait *wait)
{
	task_member(of, "task", wait->task);
	tdt__json_u64(of->json, "start_ns", wait->start);
	tdt__json_u64(of->json, "ns", wait->ns);
	tdt__json_true(of->json, "going_on", wait->going_on);
	tdt__json_string(of->json, "kind", wait_words[tdt__wait_kind(wait->what.kind)]);
	if (wait->what.object != 0)
		tdt__json_address(of->json, "object", wait->what.object);
	tdt__json_known_string(of->json, "name", wait->what.name);
	owner_member(of, wait);
	tdt__json_true(of->json, "orphaned", wait->what.orphaned != 0);
	tdt__json_u64(of->json, "waits", wait->n);
	tdt__json_u64(of->json, "total_ns", wait->total);
	stack_member(of, wait->stack);
}

static void starved_json(const struct summary_json *of, const struct tdt__summary_starved *entry)
{
	task_member(of, "task", entry->task);
	tdt__json_u64(of->json, "thread", entry->thread);
	tdt__json_u64(of->json, "at_ns", entry->at);
	tdt__json_u64(of->json, "ns", entry->ns);
	task_member(of, "behind", entry->behind);
	tdt__json_u64(of->json, "times", entry->n);
	tdt__json_u64(of->json, "total_ns", entry->total);
	tdt__json_u64(of->json, "polls", entry->polls);
}

static void latency_json(const struct summary_json *of, const struct tdt__summary_latency *entry)
{
	task_member(of, "task", entry->task);
	tdt__json_true(of->json, "several", entry->several);
	tdt__json_u64(of->json, "polls", entry->n);
	tdt__json_u64(of->json, "median_ns", entry->median);
	tdt__json_u64(of->json, "p99_ns", entry->p99);
	tdt__json_u64(of->json, "most_ns", entry->most);
	task_member(of, "slowest", entry->slowest);
	tdt__json_u64(of->json, "at_ns", entry->at);
}

static void busy_json(const struct summary_json *of, const struct tdt__summary_busy *entry)
{
	unsigned share = (unsigned)(tdt__summary_share(entry->share) * 10000 + 0.5);
	char text[32];

	task_member(of, "task", entry->task);
	tdt__json_u64(of->json, "polls", entry->polls);
	tdt__json_u64(of->json, "ns", entry->ns);
	snprintf(text, sizeof(text), "%u.%04u", share / 10000, share % 10000);
	tdt__json_raw(of->json, "share", text); /* no locale changes its point */
}

static void worker_json(const struct summary_json *of, const struct tdt__summary_worker *worker)
{
	tdt__json_u64(of->json, "thread", worker->thread);
	tdt__json_known_string(of->json, "name", worker->name);
	tdt__json_u64(of->json, "start_ns", worker->start);
	tdt__json_u64(of->json, "recorded_ns", worker->recorded);
	tdt__json_u64(of->json, "polls", worker->polls);
	tdt__json_u64(of->json, "polling_ns", worker->polling);
	tdt__json_u64(of->json, "parked_ns", worker->parked);
	task_member(of, "polls_now", worker->task);
	if (worker->task != TDT__NO_TASK)
		tdt__json_u64(of->json, "since_ns", worker->since);
}

static void ring_json(const struct summary_json *of, const struct tdt__recorded_ring *ring)
{
	static const char *const kinds[] = { "unknown", "polls", "others", "remarkable",
					     "service" };

	tdt__json_u64(of->json, "thread", of->recording->thread[ring->thread].id);
	tdt__json_known_string(of->json, "name", of->recording->thread[ring->thread].name);
	tdt__json_string(of->json, "kind", kinds[ring->kind <= TDT_RING_SERVICE ? ring->kind : 0]);
	tdt__json_u64(of->json, "start_ns", ring->from);
	tdt__json_u64(of->json, "slots", ring->n);
	tdt__json_u64(of->json, "lost", ring->first);
}

static void delay_json(const struct summary_json *of, const struct tdt__summary_delay *delay)
{
	task_member(of, "task", delay->task);
	tdt__json_known_u64(of->json, "thread", delay->thread);
	tdt__json_u64(of->json, "at_ns", delay->at);
	tdt__json_u64(of->json, "ns", delay->ns);
	tdt__json_true(of->json, "going_on", delay->going_on);
}

#define JSON_LIST(of, key, list, entry_json)                                                       \
	TDT__JSON_LIST((of)->json, key, (list).entry, (list).n, entry_json, of)

static void head_json(const struct summary_json *of)
{
	const struct tdt__summary *summary = of->form->summary;
	const struct tdt_recording *header = &summary->recording->header;

	tdt__json_known_string(of->json, "program", header->program);
	tdt__json_u64(of->json, "pid", header->pid);
	tdt__json_known_string(of->json, "library", header->library);
	tdt__json_true(of->json, "stopped", header->recording == 0);
	tdt__json_u64(of->json, "start_ns", summary->start);
	tdt__json_u64(of->json, "whole_ns", summary->whole);
	tdt__json_u64(of->json, "end_ns", summary->end);
	tdt__json_u64(of->json, "end_real_ns", summary->end + summary->real);
	tdt__json_u64(of->json, "tasks", summary->tasks);
	tdt__json_u64(of->json, "polls", summary->polls);
	tdt__json_u64(of->json, "wakes", summary->wakes);
	tdt__json_u64(of->json, "spawned", summary->spawned);
	tdt__json_u64(of->json, "ended", summary->ended);
	tdt__json_u64(of->json, "panicked", summary->panicked);
	tdt__json_u64(of->json, "missed", header->missed);
	tdt__json_u64(of->json, "missed_polls", header->missed_polls);
	tdt__json_u64(of->json, "lost_stacks", tdt__recording_stacks_lost(summary->recording));
	tdt__json_u64(of->json, "long_poll_ns", header->long_poll);
	tdt__json_u64(of->json, "long_wait_ns", header->long_wait);
}

static void lists_json(const struct summary_json *of)
{
	const struct tdt__summary *summary = of->form->summary;
	struct {
		const struct tdt__recorded_ring *entry;
		size_t n;
	} rings = { summary->recording->ring, summary->recording->n_rings };

	JSON_LIST(of, "panics", summary->panics, panic_json);
	JSON_LIST(of, "lost_wakeups", summary->lost_wakeups, lost_json);
	JSON_LIST(of, "slow_polls", summary->slow, poll_json);
	JSON_LIST(of, "locks", summary->locks, wait_json);
	JSON_LIST(of, "starved", summary->starved, starved_json);
	JSON_LIST(of, "delays", summary->delays, delay_json);
	JSON_LIST(of, "waits", summary->waits, wait_json);
	JSON_LIST(of, "latency", summary->latency, latency_json);
	JSON_LIST(of, "busy", summary->busy, busy_json);
	JSON_LIST(of, "threads", summary->workers, worker_json);
	JSON_LIST(of, "rings", rings, ring_json);
}

void tdt__summary_json(struct tdt__out *out, const struct tdt__summary_form *form)
{
	struct tdt__json json = tdt__json_document(out);
	struct summary_json all = { .json = &json,
				    .form = form,
				    .recording = form->summary->recording };

	tdt__json_begin(&json, "summary", '{');
	head_json(&all);
	tdt__json_end(&json, '}');
	lists_json(&all);
	tdt__json_finish(&json);
}
