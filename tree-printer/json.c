// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A trace as JSON, with all that is known of it: tdt-trace(5) has the schema.  Node by node, so that it takes no memory
 * but a list of them.  Nothing but ASCII comes out: it is the same in every locale, and harmless to a terminal.
 */

#include <config.h>

#include "printer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"

#define EXACT ((UINT64_C(1) << 53) - 1) /* the largest integer that readers with doubles keep */

void tdt__json_text(struct tdt__out *out, const char *text)
{
	tdt__out_add(out, text, strlen(text));
}

static void write_number(struct tdt__out *out, uint64_t value, unsigned int base)
{
	char digits[TDT__DIGITS];

	tdt__json_text(out, tdt__digits(digits, value, base));
}

void tdt__json_u64(struct tdt__out *out, uint64_t value)
{
	const char *quote = value <= EXACT ? "" : "\"";

	tdt__json_text(out, quote);
	write_number(out, value, 10);
	tdt__json_text(out, quote);
}

/* Half a character beyond the basic plane, or a whole one of those in it. */
static void write_unit(struct tdt__out *out, uint32_t unit)
{
	static const char digits[] = "0123456789ABCDEF";
	const char text[] = { '\\', 'u', digits[unit >> 12], digits[unit >> 8 & 15], digits[unit >> 4 & 15],
			      digits[unit & 15] };

	tdt__out_add(out, text, sizeof(text));
}

static void write_code(struct tdt__out *out, uint32_t code)
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *found = code != 0 && code < 0x80 ? strchr(escaped, (int)code) : NULL;

	if (found != NULL) {
		const char text[] = { '\\', letters[found - escaped] };

		tdt__out_add(out, text, sizeof(text));
	} else if (code < 0x10000) {
		write_unit(out, code);
	} else {
		write_unit(out, 0xd800 + ((code - 0x10000) >> 10));
		write_unit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
	}
}

/* How many characters stand there that are written as they are. */
static size_t plain(const char *text)
{
	size_t n = 0;

	while ((unsigned char)text[n] >= 0x20 && (unsigned char)text[n] < 0x80 && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

/* Bytes that are no UTF-8 become U+FFFD, the replacement character. */
static void write_string(struct tdt__out *out, const char *text)
{
	uint32_t code;
	size_t n;

	tdt__out_add(out, "\"", 1);
	for (; *text != '\0'; text += n) {
		n = plain(text);
		if (n != 0) {
			tdt__out_add(out, text, n);
			continue;
		}
		n = tdt__utf8_decode(text, &code);
		write_code(out, n != 0 ? code : 0xfffd);
		if (n == 0)
			n = 1;
	}
	tdt__out_add(out, "\"", 1);
}

/* An object that is being written.  None is empty. */
struct object {
	struct tdt__out *out;
	bool begun;
};

static void key(struct object *object, const char *name)
{
	tdt__json_text(object->out, object->begun ? ",\"" : "{\"");
	object->begun = true;
	tdt__json_text(object->out, name);
	tdt__json_text(object->out, "\":");
}

static void finish(struct object *object)
{
	tdt__json_text(object->out, "}");
}

/* Up to EXACT a number, else a string of digits. */
static void set_u64(struct object *object, const char *name, uint64_t value)
{
	key(object, name);
	tdt__json_u64(object->out, value);
}

/* 0 is unknown, and left out. */
static void set_known(struct object *object, const char *name, uint64_t value)
{
	if (value != 0)
		set_u64(object, name, value);
}

static void set_address(struct object *object, const char *name, uint64_t value)
{
	key(object, name);
	tdt__json_text(object->out, "\"0x");
	write_number(object->out, value, 16);
	tdt__json_text(object->out, "\"");
}

static void set_string(struct object *object, const char *name, const char *text)
{
	if (text == NULL)
		return;
	key(object, name);
	write_string(object->out, text);
}

static void set_true(struct object *object, const char *name, bool value)
{
	if (!value)
		return;
	key(object, name);
	tdt__json_text(object->out, "true");
}

static void set_waits(struct object *task, const struct tdt_trace_info *info)
{
	key(task, "waits");
	tdt__json_text(task->out, "[");
	for (uint32_t i = 0; i < info->n_waits; i++) {
		const struct tdt_wait *wait = &info->waits[i];
		struct object object = { .out = task->out };
		enum tdt_wait_kind kind = (unsigned int)wait->kind <= TDT_WAIT_OTHER ? wait->kind : TDT_WAIT_OTHER;

		if (i > 0)
			tdt__json_text(task->out, ",");
		set_string(&object, "kind", wait_words[kind]);
		if (wait->object != 0)
			set_address(&object, "object", wait->object);
		set_known(&object, "owner", wait->owner);
		finish(&object);
	}
	tdt__json_text(task->out, "]");
}

void tdt__json_task(struct tdt__out *out, const struct tdt_trace_info *info)
{
	struct object task = { .out = out };

	set_u64(&task, "id", info->id);
	set_string(&task, "name", info->name);
	set_string(&task, "file", info->file);
	set_known(&task, "line", info->line);
	set_known(&task, "column", info->column);
	set_string(&task, "state", state_words[info->state]);
	set_u64(&task, "state_ns", info->state_ns);
	set_u64(&task, "polls", info->polls);
	set_u64(&task, "leaves", info->leaves);
	set_u64(&task, "leaves_elsewhere", info->leaves_elsewhere);
	set_u64(&task, "leaves_lost", info->leaves_lost);
	set_known(&task, "parent", info->parent);
	set_known(&task, "woken_ns", info->woken_ns);
	set_known(&task, "woken_by", info->woken_by);
	set_known(&task, "age_ns", info->age_ns);
	set_known(&task, "polls_since", info->polls_since);
	set_known(&task, "thread", info->thread);
	set_string(&task, "syscall", info->syscall);
	if (info->n_waits != 0 && info->waits != NULL)
		set_waits(&task, info);
	finish(&task);
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
	set_true(node, "inlined", frame->inlined);
	set_true(node, "guessed", frame->guessed);
}

static void print_node(struct tdt__out *out, const struct tdt_node *node)
{
	const struct tdt_frame *frame = tdt_node_frame(node);
	const struct tdt_node *parent = tdt_node_parent(node);
	struct object object = { .out = out };

	set_u64(&object, "id", tdt_node_id(node));
	if (parent != NULL)
		set_u64(&object, "parent", tdt_node_id(parent));
	set_string(&object, "kind", kind_words[frame->kind]);
	if (frame->kind == TDT_NODE_CUT)
		set_string(&object, "cut", cut_words[frame->cut]);
	if (frame->kind == TDT_NODE_FRAME)
		set_frame(&object, frame);
	set_known(&object, "leaves", tdt_node_leaves(node));
	finish(&object);
}

int tdt__json_nodes(struct tdt__out *out, const struct tdt_node *root)
{
	uint32_t n;
	const struct tdt_node **nodes = tdt__nodes_by_id(root, &n);

	if (nodes == NULL)
		return -ENOMEM;
	tdt__json_text(out, "[");
	for (uint32_t i = 0; i < n && out->error == 0; i++) {
		if (i > 0)
			tdt__json_text(out, ",");
		print_node(out, nodes[i]);
	}
	tdt__json_text(out, "]");
	free(nodes);
	return 0;
}

int tdt__print_json(struct tdt__out *out, const struct tdt_trace *trace, const struct tdt_node *root)
{
	int err;

	tdt__json_text(out, "{\"tdt\":");
	tdt__json_u64(out, SCHEMA);
	tdt__json_text(out, ",\"task\":");
	tdt__json_task(out, tdt_trace_info(trace));
	tdt__json_text(out, ",\"nodes\":");
	err = tdt__json_nodes(out, root);
	if (err == 0) /* what is cut short must not look whole */
		tdt__json_text(out, "}\n");
	return err;
}
