// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A trace as JSON, with all that is known about it; tdt-trace(5) has the schema.  It is written
 * node by node, so that memory for one node is enough.  The output is ASCII only, so it is the same
 * in every locale, and harmless to a terminal.
 */

#include <config.h>

#include "forms.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "operation.h"
#include "schema.h"
#include "view.h"

#define EXACT ((UINT64_C(1) << 53) - 1) /* the largest integer that readers keep in a double */

/* An object that is being filled.  The first failure sets `failed`. */
struct object {
	json_t *json;
	bool failed;
};

static void set_member(struct object *object, const char *key, json_t *value)
{
	if (json_object_set_new_nocheck(object->json, key, value) != 0)
		object->failed = true;
}

/* A value up to EXACT becomes a number, a greater one a string of digits. */
static void set_u64(struct object *object, const char *key, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	set_member(object, key,
		   value <= EXACT ? json_integer((json_int_t)value) : json_string_nocheck(digits));
}

/* 0 means unknown, and is left out. */
static void set_known(struct object *object, const char *key, uint32_t value)
{
	if (value != 0)
		set_member(object, key, json_integer(value));
}

static void set_known_u64(struct object *object, const char *key, uint64_t value)
{
	if (value != 0)
		set_u64(object, key, value);
}

static void set_address(struct object *object, const char *key, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "0x%" PRIx64, value);
	set_member(object, key, json_string_nocheck(digits));
}

/* Bytes that are not UTF-8 become U+FFFD, the replacement character.  NULL: no memory. */
static json_t *new_string(const char *text)
{
	struct tdt__string valid = { 0 };
	json_t *string;
	uint32_t code;
	size_t n;

	for (; *text != '\0'; text += n) {
		n = tdt__utf8_decode(text, &code);
		if (n != 0) {
			tdt__string_add(&valid, text, n);
		} else {
			tdt__string_puts(&valid, "\xef\xbf\xbd");
			n = 1;
		}
	}
	tdt__string_add(&valid, "", 1);
	string = valid.failed ? NULL : json_string_nocheck(valid.bytes);
	tdt__string_free(&valid);
	return string;
}

static void set_string(struct object *object, const char *key, const char *text)
{
	if (text != NULL)
		set_member(object, key, new_string(text));
}

static int write_bytes(const char *bytes, size_t n, void *out)
{
	tdt__out_add(out, bytes, n);
	return 0;
}

void tdt__json_text(struct tdt__out *out, const char *text)
{
	tdt__out_add(out, text, strlen(text));
}

/* Write the object, and free it. */
static int finish_object(struct tdt__out *out, struct object *object)
{
	int err = object->failed ? -1
				 : json_dump_callback(object->json, write_bytes, out,
						      JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(object->json);
	return err == 0 ? 0 : -ENOMEM; /* the other errors of jansson cannot occur here */
}

void tdt__json_u64(struct tdt__out *out, uint64_t value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), value <= EXACT ? "%" PRIu64 : "\"%" PRIu64 "\"", value);
	tdt__json_text(out, digits);
}

int tdt__json_string(struct tdt__out *out, const char *text)
{
	json_t *string = new_string(text);
	int err = string == NULL ? -1
				 : json_dump_callback(string, write_bytes, out,
						      JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

	json_decref(string);
	return err == 0 ? 0 : -ENOMEM;
}

static void set_waits(struct object *task, const struct tdt_trace_info *info)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < info->n_waits && array != NULL && !task->failed; i++) {
		const struct tdt_wait *wait = &info->waits[i];
		struct object object = { .json = json_object() };
		enum tdt_wait_kind kind =
		    (unsigned int)wait->kind <= TDT_WAIT_OTHER ? wait->kind : TDT_WAIT_OTHER;

		set_member(&object, "kind", json_string_nocheck(wait_words[kind]));
		if (wait->object != 0)
			set_address(&object, "object", wait->object);
		set_known_u64(&object, "owner", wait->owner);
		if (info->owner_names != NULL)
			set_string(&object, "owner_name", info->owner_names[i]);
		if (wait->name[0] != '\0')
			set_string(&object, "name", wait->name);
		set_known_u64(&object, "handed_ns", wait->handed_ns);
		set_known(&object, "futurelock", wait->futurelock);
		if (json_array_append_new(array, object.json) != 0 || object.failed)
			task->failed = true;
	}
	set_member(task, "waits", array);
}

int tdt__json_task(struct tdt__out *out, const struct tdt_trace_info *info)
{
	struct object task = { .json = json_object() };

	set_u64(&task, "id", info->id);
	set_string(&task, "name", info->name);
	set_string(&task, "file", info->file);
	set_known(&task, "line", info->line);
	set_known(&task, "column", info->column);
	set_member(&task, "state", json_string_nocheck(state_words[info->state]));
	set_u64(&task, "state_ns", info->state_ns);
	set_u64(&task, "polls", info->polls);
	set_member(&task, "leaves", json_integer(info->leaves));
	set_known(&task, "leaves_unsure", info->leaves_unsure);
	set_member(&task, "leaves_elsewhere", json_integer(info->leaves_elsewhere));
	set_member(&task, "leaves_lost", json_integer(info->leaves_lost));
	set_known_u64(&task, "parent", info->parent);
	set_known_u64(&task, "spawned_ns", info->spawned_ns);
	set_known_u64(&task, "polled_ns", info->polled_ns);
	set_known(&task, "requested", info->requested);
	set_known_u64(&task, "woken_ns", info->woken_ns);
	set_known_u64(&task, "woken_by", info->woken_by);
	set_known_u64(&task, "age_ns", info->age_ns);
	set_known_u64(&task, "polls_since", info->polls_since);
	set_known(&task, "thread", info->thread);
	set_string(&task, "syscall", info->syscall);
	set_known(&task, "unknown_stack", info->unknown_stack);
	set_known(&task, "asked", info->asked);
	if (info->n_waits != 0 && info->waits != NULL)
		set_waits(&task, info);
	return finish_object(out, &task);
}

int tdt__json_misuse(struct tdt__out *out, const struct tdt_misuse *misuse)
{
	struct object object = { .json = json_object() };

	if (object.json == NULL)
		return -ENOMEM;
	set_string(&object, "kind", misuse_words[misuse->kind]);
	set_known_u64(&object, "task", misuse->task);
	set_string(&object, "name", misuse->name[0] != '\0' ? misuse->name : NULL);
	set_string(&object, "reason", misuse->reason);
	return finish_object(out, &object);
}

int tdt__json_process(struct tdt__out *out, const struct tdt_snapshot_process *process)
{
	struct object object = { .json = json_object() };

	set_member(&object, "pid", json_integer(process->pid));
	set_address(&object, "registry", process->registry);
	set_u64(&object, "start_real_ns", process->start_real_ns);
	set_u64(&object, "now_ns", process->now_ns);
	return finish_object(out, &object);
}

static void set_also(struct object *node, const char *const *also)
{
	json_t *array = json_array();

	for (; *also != NULL && array != NULL; also++)
		if (json_array_append_new(array, new_string(*also)) != 0)
			node->failed = true;
	set_member(node, "also", array);
}

static void set_frame(struct object *node, const struct tdt_frame *frame)
{
	set_address(node, "pc", frame->pc);
	set_string(node, "function", frame->function);
	set_string(node, "file", frame->file);
	set_string(node, "directory", frame->directory);
	set_known(node, "line", frame->line);
	set_known(node, "column", frame->column);
	set_string(node, "module", frame->module);
	if (frame->module != NULL || frame->module_offset != 0)
		set_address(node, "module_offset", frame->module_offset);
	set_string(node, "symbol", frame->symbol);
	if (frame->symbol != NULL || frame->symbol_offset != 0)
		set_address(node, "symbol_offset", frame->symbol_offset);
	set_string(node, "build_id", frame->build_id);
	if (frame->also != NULL)
		set_also(node, frame->also);
	if (frame->inlined)
		set_member(node, "inlined", json_true());
	if (frame->guessed)
		set_member(node, "guessed", json_true());
	if (frame->unnamed)
		set_member(node, "unnamed", json_true());
	if (frame->function != NULL && tdt__hides_futures(frame->function))
		set_member(node, "hides_futures", json_true());
}

static int print_node(struct tdt__out *out, const struct tdt_node *node)
{
	const struct tdt_frame *frame = tdt_node_frame(node);
	const struct tdt_node *parent = tdt_node_parent(node);
	struct object object = { .json = json_object() };

	set_member(&object, "id", json_integer(tdt_node_id(node)));
	if (parent != NULL)
		set_member(&object, "parent", json_integer(tdt_node_id(parent)));
	set_member(&object, "kind", json_string_nocheck(kind_words[frame->kind]));
	if (frame->kind == TDT_NODE_CUT)
		set_member(&object, "cut", json_string_nocheck(cut_words[frame->cut]));
	if (frame->kind == TDT_NODE_FRAME)
		set_frame(&object, frame);
	set_known(&object, "leaves", tdt_node_leaves(node));
	return finish_object(out, &object);
}

int tdt__json_nodes(struct tdt__out *out, const struct tdt_node *root)
{
	uint32_t n;
	const struct tdt_node **nodes = tdt__nodes_by_id(root, &n);
	int err = 0;

	if (nodes == NULL)
		return -ENOMEM;
	tdt__json_text(out, "[");
	for (uint32_t i = 0; i < n && err == 0 && out->error == 0; i++) {
		if (i > 0)
			tdt__json_text(out, ",");
		err = print_node(out, nodes[i]);
	}
	if (err == 0) /* output that is cut short must not look complete */
		tdt__json_text(out, "]");
	free(nodes);
	return err;
}

int tdt__print_json(struct tdt__out *out, const struct tdt_trace *trace,
		    const struct tdt_node *root)
{
	char head[32];
	int err;

	snprintf(head, sizeof(head), "{\"tdt\":%d,\"task\":", SCHEMA);
	tdt__json_text(out, head);
	err = tdt__json_task(out, tdt_trace_info(trace));
	if (err == 0)
		tdt__json_text(out, ",\"nodes\":");
	if (err == 0)
		err = tdt__json_nodes(out, root);
	if (err == 0)
		tdt__json_text(out, "}\n");
	return err;
}
