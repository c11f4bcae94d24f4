// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The summary of a recording as one JSON object, on one line.  tdt-trace(5) has the schema. */

#include <config.h>

#include "summaries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <tdt/recording.h>

#include "forms.h"
#include "schema.h"

#include "recording/read.h"

/* While a summary is written.  The first lack of memory is kept in `error`. */
struct summary_json {
	struct tdt__out *out;
	const struct tdt__summary_form *form;
	const struct tdt__summary *summary;
	const struct tdt__recorded_task *tasks;
	const struct tdt__recorded_thread *threads;
	int error;
	bool first; /* the next member is the first one of its object or array */
};

/* ---- Members ---- */

static void comma(struct summary_json *json)
{
	if (!json->first)
		tdt__json_text(json->out, ",");
	json->first = false;
}

static void json_key(struct summary_json *json, const char *key)
{
	comma(json);
	tdt__json_text(json->out, "\"");
	tdt__json_text(json->out, key);
	tdt__json_text(json->out, "\":");
}

static void open_with(struct summary_json *json, const char *bracket)
{
	tdt__json_text(json->out, bracket);
	json->first = true;
}

static void close_with(struct summary_json *json, const char *bracket)
{
	tdt__json_text(json->out, bracket);
	json->first = false;
}

static void json_number(struct summary_json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	tdt__json_u64(json->out, value);
}

/* A number that is left out if it is 0. */
static void known_number(struct summary_json *json, const char *key, uint64_t value)
{
	if (value != 0)
		json_number(json, key, value);
}

static void known_address(struct summary_json *json, const char *key, uint64_t value)
{
	char text[32];

	if (value == 0)
		return;
	json_key(json, key);
	snprintf(text, sizeof(text), "\"0x%" PRIx64 "\"", value);
	tdt__json_text(json->out, text);
}

/* A string that is left out if it is empty. */
static void known_string(struct summary_json *json, const char *key, const char *text)
{
	if (text[0] == '\0')
		return;
	json_key(json, key);
	if (tdt__json_string(json->out, text) != 0)
		json->error = -ENOMEM;
}

static void true_if(struct summary_json *json, const char *key, bool value)
{
	if (!value)
		return;
	json_key(json, key);
	tdt__json_text(json->out, "true");
}

static void task_member(struct summary_json *json, const char *key, uint32_t index)
{
	const struct tdt__recorded_task *task;

	if (index == TDT__NO_TASK)
		return;
	task = &json->tasks[index];
	json_key(json, key);
	open_with(json, "{");
	json_number(json, "id", task->id);
	known_string(json, "name", task->name);
	known_string(json, "file", task->file);
	known_number(json, "line", task->line);
	known_number(json, "column", task->column);
	close_with(json, "}");
}

static void stack_member(struct summary_json *json, uint32_t stack)
{
	const struct tdt_node *root = tdt__summary_root(json->form, stack);

	if (root == NULL)
		return;
	json_key(json, "nodes");
	if (tdt__json_nodes(json->out, root) != 0)
		json->error = -ENOMEM;
}

/* ---- Entries ---- */

static void panic_json(struct summary_json *json, const struct tdt__summary_panic *panic)
{
	task_member(json, "task", panic->task);
	json_number(json, "thread", panic->thread);
	json_number(json, "at_ns", panic->at);
}

static void poll_json(struct summary_json *json, const struct tdt__summary_poll *poll)
{
	static const char *const results[] = { "ready", "pending", "panicked" };

	task_member(json, "task", poll->task);
	json_number(json, "thread", poll->thread);
	if (poll->cpu != UINT16_MAX)
		json_number(json, "cpu", poll->cpu);
	json_number(json, "start_ns", poll->start);
	json_number(json, "ns", poll->ns);
	if (!poll->going_on && poll->result <= TDT_PANICKED)
		known_string(json, "result", results[poll->result]);
	true_if(json, "going_on", poll->going_on);
	known_number(json, "woken_by", poll->woken_by);
	stack_member(json, poll->stack);
}

/* The owner may be a task of which nothing but its id is known. */
static void owner_member(struct summary_json *json, const struct tdt__summary_wait *wait)
{
	task_member(json, "owner", wait->owner);
	if (wait->owner != TDT__NO_TASK || wait->what.owner == 0)
		return;
	json_key(json, "owner");
	open_with(json, "{");
	json_number(json, "id", wait->what.owner);
	close_with(json, "}");
}

static void wait_json(struct summary_json *json, const struct tdt__summary_wait *wait)
{
	enum tdt_wait_kind kind =
	    (unsigned int)wait->what.kind <= TDT_WAIT_OTHER ? wait->what.kind : TDT_WAIT_OTHER;

	task_member(json, "task", wait->task);
	json_number(json, "start_ns", wait->start);
	json_number(json, "ns", wait->ns);
	true_if(json, "going_on", wait->going_on);
	known_string(json, "kind", wait_words[kind]);
	known_address(json, "object", wait->what.object);
	known_string(json, "name", wait->what.name);
	owner_member(json, wait);
	json_number(json, "waits", wait->n);
	json_number(json, "total_ns", wait->total);
	stack_member(json, wait->stack);
}

static void starved_json(struct summary_json *json, const struct tdt__summary_starved *entry)
{
	task_member(json, "task", entry->task);
	json_number(json, "thread", entry->thread);
	json_number(json, "at_ns", entry->at);
	json_number(json, "ns", entry->ns);
	task_member(json, "behind", entry->behind);
	json_number(json, "times", entry->n);
	json_number(json, "total_ns", entry->total);
	json_number(json, "polls", entry->polls);
}

static void latency_json(struct summary_json *json, const struct tdt__summary_latency *entry)
{
	task_member(json, "task", entry->task);
	true_if(json, "several", entry->several);
	json_number(json, "polls", entry->n);
	json_number(json, "median_ns", entry->median);
	json_number(json, "p99_ns", entry->p99);
	json_number(json, "most_ns", entry->most);
	task_member(json, "slowest", entry->slowest);
	json_number(json, "at_ns", entry->at);
}

static void busy_json(struct summary_json *json, const struct tdt__summary_busy *entry)
{
	unsigned share = (unsigned)(tdt__summary_share(entry->share) * 10000 + 0.5);
	char text[32];

	task_member(json, "task", entry->task);
	json_number(json, "polls", entry->polls);
	json_number(json, "ns", entry->ns);
	json_key(json, "cpus");
	snprintf(text, sizeof(text), "%u.%04u", share / 10000, share % 10000);
	tdt__json_text(json->out, text);
}

static void worker_json(struct summary_json *json, const struct tdt__summary_worker *worker)
{
	json_number(json, "thread", worker->thread);
	known_string(json, "name", worker->name);
	json_number(json, "start_ns", worker->start);
	json_number(json, "end_ns", worker->end);
	json_number(json, "polls", worker->polls);
	json_number(json, "polling_ns", worker->polling);
	json_number(json, "parked_ns", worker->parked);
	task_member(json, "polls_now", worker->task);
	if (worker->task != TDT__NO_TASK)
		json_number(json, "since_ns", worker->since);
}

static void ring_json(struct summary_json *json, const struct tdt__recorded_ring *ring)
{
	static const char *const kinds[] = { "unknown", "polls", "others", "remarkable",
					     "service" };

	json_number(json, "thread", json->threads[ring->thread].id);
	known_string(json, "name", json->threads[ring->thread].name);
	known_string(json, "kind", kinds[ring->kind <= TDT_RING_SERVICE ? ring->kind : 0]);
	json_number(json, "start_ns", ring->from);
	json_number(json, "slots", ring->slots);
	json_number(json, "lost", ring->lost);
}

static void delay_json(struct summary_json *json, const struct tdt__summary_delay *delay)
{
	task_member(json, "task", delay->task);
	known_number(json, "thread", delay->thread);
	json_number(json, "at_ns", delay->at);
	json_number(json, "ns", delay->ns);
	true_if(json, "going_on", delay->going_on);
}

/* ---- The whole ---- */

#define JSON_LIST(json, key, list, entry_json)					\
	do {									\
		json_key(json, key);						\
		open_with(json, "[");						\
		for (size_t i = 0; i < (list).n && (json)->out->error == 0; i++) { \
			comma(json);						\
			open_with(json, "{");					\
			entry_json(json, &(list).entry[i]);			\
			close_with(json, "}");					\
		}								\
		close_with(json, "]");						\
	} while (0)

static void head_json(struct summary_json *json)
{
	const struct tdt__summary *summary = json->summary;
	const struct tdt_recording *header = tdt__recording_header(summary->recording);

	known_string(json, "program", header->program);
	json_number(json, "pid", header->pid);
	known_string(json, "library", header->library);
	true_if(json, "stopped", header->recording == 0);
	json_number(json, "start_ns", summary->start);
	json_number(json, "whole_ns", summary->whole);
	json_number(json, "end_ns", summary->end);
	json_number(json, "end_real_ns", summary->end + summary->real);
	json_number(json, "tasks", summary->tasks);
	json_number(json, "polls", summary->polls);
	json_number(json, "wakes", summary->wakes);
	json_number(json, "spawned", summary->spawned);
	json_number(json, "ended", summary->ended);
	json_number(json, "panicked", summary->panicked);
	json_number(json, "missed", header->missed);
	json_number(json, "missed_polls", header->missed_polls);
	json_number(json, "long_poll_ns", header->long_poll);
	json_number(json, "long_wait_ns", header->long_wait);
}

static void lists_json(struct summary_json *json)
{
	const struct tdt__summary *summary = json->summary;
	struct {
		const struct tdt__recorded_ring *entry;
		size_t n;
	} rings;

	rings.entry = tdt__recording_rings(summary->recording, &rings.n);
	JSON_LIST(json, "panics", summary->panics, panic_json);
	JSON_LIST(json, "slow_polls", summary->slow, poll_json);
	JSON_LIST(json, "locks", summary->locks, wait_json);
	JSON_LIST(json, "starved", summary->starved, starved_json);
	JSON_LIST(json, "delays", summary->delays, delay_json);
	JSON_LIST(json, "waits", summary->waits, wait_json);
	JSON_LIST(json, "latency", summary->latency, latency_json);
	JSON_LIST(json, "busy", summary->busy, busy_json);
	JSON_LIST(json, "threads", summary->workers, worker_json);
	JSON_LIST(json, "rings", rings, ring_json);
}

int tdt__summary_json(struct tdt__out *out, const struct tdt__summary_form *form)
{
	struct summary_json json = {
		.out = out, .form = form, .summary = form->summary, .first = true
	};
	size_t n;

	json.tasks = tdt__recording_tasks(form->summary->recording, &n);
	json.threads = tdt__recording_threads(form->summary->recording, &n);

	tdt__json_text(out, "{");
	json_number(&json, "tdt", SCHEMA);
	json_key(&json, "summary");
	open_with(&json, "{");
	head_json(&json);
	close_with(&json, "}");
	lists_json(&json);
	if (json.error == 0) /* output that is cut short must not look complete */
		tdt__json_text(out, "}\n");
	return json.error;
}
