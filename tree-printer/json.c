// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A trace as JSON, with all that is known about it; tdt-trace(5) has the schema. */

#include "forms.h"

#include <errno.h>
#include <stdlib.h>

#include "facts/traceparent.h"
#include "facts/wait.h"
#include "operation.h"
#include "schema.h"
#include "view.h"

struct tdt__json tdt__json_document(struct tdt__out *out)
{
	struct tdt__json json = { .out = out };

	tdt__json_begin(&json, NULL, '{');
	tdt__json_u64(&json, "tdt", SCHEMA);
	return json;
}

void tdt__json_finish(struct tdt__json *json)
{
	tdt__json_end(json, '}');
	tdt__out_add(json->out, "\n", 1);
}

static void wait_members(struct tdt__json *json, const struct tdt_wait *const *of)
{
	const struct tdt_wait *wait = *of;

	tdt__json_string(json, "kind", wait_words[tdt__wait_kind(wait->kind)]);
	if (wait->object != 0)
		tdt__json_address(json, "object", wait->object);
	tdt__json_known_u64(json, "owner", wait->owner);
	tdt__json_string(json, "owner_name", wait->owner_name);
	tdt__json_known_string(json, "name", wait->name);
	tdt__json_known_u64(json, "handed_ns", wait->handed_ns);
	tdt__json_known_u64(json, "futurelock", wait->futurelock);
	tdt__json_known_u64(json, "orphaned", wait->orphaned);
}

void tdt__json_task_members(struct tdt__json *json, const struct tdt_task_info *info)
{
	char traceparent[TDT__TRACEPARENT_SIZE];

	tdt__json_u64(json, "id", info->id);
	tdt__json_string(json, "name", info->name);
	tdt__json_string(json, "file", info->file);
	tdt__json_known_u64(json, "line", info->line);
	tdt__json_known_u64(json, "column", info->column);
	tdt__json_string(json, "state", state_words[info->state]);
	tdt__json_u64(json, "state_ns", info->state_ns);
	tdt__json_u64(json, "polls", info->polls);
	tdt__json_u64(json, "leaves", info->leaves);
	if (info->leaves != 0 && info->leaves_known != TDT_LEAVES_ALL)
		tdt__json_string(json, "leaves_known", known_words[info->leaves_known]);
	tdt__json_known_u64(json, "leaves_unsure", info->leaves_unsure);
	tdt__json_u64(json, "leaves_elsewhere", info->leaves_elsewhere);
	tdt__json_u64(json, "leaves_lost", info->leaves_lost);
	tdt__json_known_u64(json, "parent", info->parent);
	tdt__json_known_u64(json, "spawned_ns", info->spawned_ns);
	tdt__json_known_u64(json, "polled_ns", info->polled_ns);
	tdt__json_known_u64(json, "requested", info->requested);
	tdt__json_known_u64(json, "woken_ns", info->woken_ns);
	tdt__json_known_u64(json, "woken_by", info->woken_by);
	tdt__json_known_u64(json, "age_ns", info->age_ns);
	tdt__json_known_u64(json, "polls_since", info->polls_since);
	tdt__json_known_u64(json, "thread", info->thread);
	tdt__json_string(json, "syscall", info->syscall);
	tdt__json_known_u64(json, "unknown_stack", info->unknown_stack);
	tdt__json_known_u64(json, "asked", info->asked);
	tdt__json_known_u64(json, "moved", info->moved);
	tdt__json_known_u64(json, "busy_polls", info->busy_polls);
	tdt__json_known_u64(json, "busy_ns", info->busy_ns);
	tdt__json_known_u64(json, "lost_times", info->lost_times);
	tdt__json_known_u64(json, "untraced", info->untraced);
	tdt__json_known_u64(json, "child", info->child);
	tdt__json_known_u64(json, "aborted", info->aborted);
	tdt__json_known_u64(json, "blocking", info->blocking);
	if (info->context.valid == 1) {
		tdt__traceparent(traceparent, &info->context);
		tdt__json_string(json, "traceparent", traceparent);
	}
	if (info->n_waits != 0 && info->waits != NULL)
		TDT__JSON_LIST(json, "waits", info->waits, info->n_waits, wait_members, json);
}

void tdt__json_task(struct tdt__json *json, const char *key, const struct tdt_task_info *info)
{
	tdt__json_begin(json, key, '{');
	tdt__json_task_members(json, info);
	tdt__json_end(json, '}');
}

void tdt__json_misuse(struct tdt__json *json, const struct tdt_misuse *misuse)
{
	if (misuse == NULL)
		return;
	tdt__json_begin(json, "misuse", '{');
	tdt__json_string(json, "kind", misuse_words[misuse->kind]);
	tdt__json_known_u64(json, "task", misuse->task);
	tdt__json_known_string(json, "name", misuse->name);
	tdt__json_string(json, "reason", misuse->reason);
	tdt__json_end(json, '}');
}

void tdt__json_process(struct tdt__json *json, const struct tdt_snapshot_process *process)
{
	tdt__json_begin(json, "process", '{');
	tdt__json_u64(json, "pid", process->pid);
	tdt__json_address(json, "registry", process->registry);
	tdt__json_u64(json, "start_real_ns", process->start_real_ns);
	tdt__json_u64(json, "now_ns", process->now_ns);
	tdt__json_end(json, '}');
}

static void print_also(struct tdt__json *json, const char *const *also)
{
	tdt__json_begin(json, "also", '[');
	for (; *also != NULL; also++)
		tdt__json_string(json, NULL, *also);
	tdt__json_end(json, ']');
}

static void print_frame(struct tdt__json *json, const struct tdt_frame *frame)
{
	tdt__json_address(json, "pc", frame->pc);
	tdt__json_string(json, "function", frame->function);
	tdt__json_string(json, "file", frame->file);
	tdt__json_string(json, "directory", frame->directory);
	tdt__json_known_u64(json, "line", frame->line);
	tdt__json_known_u64(json, "column", frame->column);
	tdt__json_string(json, "module", frame->module);
	if (frame->module != NULL || frame->module_offset != 0)
		tdt__json_address(json, "module_offset", frame->module_offset);
	tdt__json_string(json, "symbol", frame->symbol);
	if (frame->symbol != NULL || frame->symbol_offset != 0)
		tdt__json_address(json, "symbol_offset", frame->symbol_offset);
	tdt__json_string(json, "build_id", frame->build_id);
	if (frame->also != NULL)
		print_also(json, frame->also);
	tdt__json_string(json, "missing", frame->missing);
	tdt__json_true(json, "inlined", frame->inlined);
	tdt__json_true(json, "guessed", frame->guessed);
	tdt__json_true(json, "unnamed", frame->unnamed);
	tdt__json_true(json, "hides_futures",
		       frame->function != NULL && tdt__hides_futures(frame->function));
}

void tdt__json_node_members(struct tdt__json *json, const struct tdt_node *node)
{
	const struct tdt_frame *frame = tdt_node_frame(node);
	const struct tdt_node *parent = tdt_node_parent(node);

	tdt__json_u64(json, "id", tdt_node_id(node));
	if (parent != NULL)
		tdt__json_u64(json, "parent", tdt_node_id(parent));
	tdt__json_string(json, "kind", kind_words[frame->kind]);
	if (frame->kind == TDT_NODE_CUT)
		tdt__json_string(json, "cut", cut_words[frame->cut]);
	if (frame->kind == TDT_NODE_FRAME)
		print_frame(json, frame);
	tdt__json_known_u64(json, "leaves", tdt_node_leaves(node));
}

static void node_members(struct tdt__json *json, const struct tdt_node *const *node)
{
	tdt__json_node_members(json, *node);
}

void tdt__json_nodes(struct tdt__json *json, const struct tdt_node *root)
{
	uint32_t n;
	const struct tdt_node **nodes = tdt__nodes_by_id(root, &n);

	if (nodes == NULL) {
		tdt__out_fail(json->out, -ENOMEM);
		return;
	}
	TDT__JSON_LIST(json, "nodes", nodes, n, node_members, json);
	free(nodes);
}

void tdt__print_json(struct tdt__out *out, const struct tdt_trace *trace,
		     const struct tdt_node *root)
{
	struct tdt__json json = tdt__json_document(out);

	tdt__json_task(&json, "task", tdt_trace_info(trace));
	tdt__json_nodes(&json, root);
	tdt__json_finish(&json);
}
