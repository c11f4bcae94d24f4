// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The page of tdt report.  It holds the documents as they are, and behind each dump a document with
 * its lines: what tdt bt prints above the groups, the line and the tree of each, folded and in
 * full.  They are made of the dump as it stands in the page, as tdt print would read it; so what
 * was replaced or left out in the one is so in the other.  report.js only formats.
 *
 * Texts may be hostile.  They are in the page as JSON alone, in which < is escaped; the script puts
 * them into text nodes; and a policy of the page lets nothing run or load but what has the nonce.
 */

#include "cli/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/read_json.h"
#include "cli/read_parts.h"
#include "cli/report.inc"
#include "facts/record.h"
#include "tree-printer/dumps.h"
#include "tree-printer/forms.h"
#include "tree-printer/words.h"

/*
 * So that the page stays below 15 MB, with what report_timeline.c has: a task takes some 600 bytes,
 * a node of a tree some 250.
 */
#define TASKS_MAX 20000
#define TASKS_MAX_WITH_TIMELINE 10000
#define NODES_MAX 10000

/* --- What is left out --------------------------------------------------------------- */

/* The room that the page has left, and the number of what it had none for. */
struct room {
	size_t tasks, nodes;
	size_t left_tasks, left_trees;
};

/* Whether there is room for the tree, which takes it. */
static bool takes_nodes(struct room *room, const json_t *group)
{
	size_t n = json_array_size(json_object_get(group, "nodes"));

	if (n > room->nodes) {
		room->left_trees++;
		return false;
	}
	room->nodes -= n;
	return true;
}

/* Groups of one task each, which have a tree. */
static void bound_singles(struct room *room, json_t *groups)
{
	size_t n = 0, all = json_array_size(groups);

	while (n < all && takes_nodes(room, json_array_get(groups, n)))
		n++;
	if (n < all)
		room->left_trees += all - n - 1; /* and the one that was counted */
	while (all > n)
		json_array_remove(groups, --all);
}

/* A deadlock stays whole. */
static void bound_group(struct room *room, json_t *group)
{
	json_t *tasks = json_object_get(group, "tasks");
	bool whole = json_object_get(group, "deadlock") != NULL;

	while (!whole && json_array_size(tasks) > room->tasks) {
		json_array_remove(tasks, json_array_size(tasks) - 1);
		room->left_tasks++;
	}
	room->tasks -= json_array_size(tasks) < room->tasks ? json_array_size(tasks) : room->tasks;
	if (json_array_size(tasks) == 0 || whole || takes_nodes(room, group))
		return;
	json_object_del(group, "nodes");
	json_object_set_new(group, "answer", json_string("none"));
}

/* Without tasks there is no group, and no ring. */
static void bound_dump(struct room *room, json_t *dump)
{
	static const char *const singles[] = { "lost_wakeups", "orphans", "panics", "before" };
	json_t *groups = json_object_get(dump, "groups");
	size_t n = json_array_size(groups);

	for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++)
		bound_singles(room, json_object_get(dump, singles[i]));
	for (size_t i = 0; i < n; i++)
		bound_group(room, json_array_get(groups, i));
	if (room->left_tasks == 0)
		return;
	while (n > 0 &&
	       json_array_size(json_object_get(json_array_get(groups, n - 1), "tasks")) == 0)
		json_array_remove(groups, --n);
	json_array_clear(json_object_get(dump, "rings"));
	json_array_clear(json_object_get(dump, "unproven"));
}

static void say_left_out(const struct room *room, json_t *facts)
{
	json_t *report = json_object_get(facts, "report"), *left_out = json_array();

	if (room->left_tasks != 0)
		json_array_append_new(left_out,
				      json_sprintf("%s, and rings of waits that are no deadlocks",
						   TDT__COUNTED(room->left_tasks, "task")));
	if (room->left_trees != 0)
		json_array_append_new(left_out,
				      json_sprintf("the tree of %s",
						   TDT__COUNTED(room->left_trees, "group")));
	if (json_array_size(left_out) != 0)
		json_object_set(report, "left_out", left_out);
	json_decref(left_out);
}

/* --- Documents ------------------------------------------------------------------------ */

#define DOCUMENT "<script type=\"application/json\">\n"

/* Write a part of a document, in which no markup begins. */
static int put_without_markup(void *out, const char *bytes, size_t n)
{
	const char *markup;

	for (; (markup = memchr(bytes, '<', n)) != NULL; bytes = markup + 1) {
		fwrite(bytes, 1, (size_t)(markup - bytes), out);
		fputs("\\u003c", out);
		n -= (size_t)(markup + 1 - bytes);
	}
	fwrite(bytes, 1, n, out);
	return 0;
}

static int put_dumped(const char *bytes, size_t n, void *out)
{
	return put_without_markup(out, bytes, n);
}

/* --- Lines -------------------------------------------------------------------------- */

struct lines {
	struct tdt__json json;
	struct tdt__dump dump;
	struct tdt__frames folded, full;
	struct tdt__string text;
};

/* Write the text that was made, and empty it. */
static void put_text(struct lines *lines, const char *key)
{
	tdt__string_add(&lines->text, "", 1);
	if (lines->text.failed)
		tdt__out_fail(lines->json.out, -ENOMEM);
	else
		tdt__json_string(&lines->json, key, lines->text.bytes);
	lines->text.n = 0;
}

static int add_to_text(void *text, const char *bytes, size_t n)
{
	tdt__string_add(text, bytes, n);
	return 0;
}

static void put_top(struct lines *lines)
{
	struct tdt__out out = { .write = add_to_text, .arg = &lines->text };

	tdt__dump_heading(&out, &lines->dump);
	if (tdt__out_end(&out) != 0)
		lines->text.failed = true;
	put_text(lines, "heading");
}

/* The wait of a task, in the words of tdt ps. */
static void put_waits(struct lines *lines, const struct tdt_task_info *info)
{
	const struct tdt_wait *wait = info->n_waits != 0 ? info->waits[0] : NULL;

	if (wait != NULL)
		tdt__waited_for(&lines->text, wait, info->id,
				tdt__names_owner(lines->dump.names, wait));
	else if (tdt__has_no_tree(info))
		tdt__string_puts(&lines->text, TDT__NO_TREE);
	if (info->n_waits > 1)
		tdt__string_printf(&lines->text, " and %" PRIu32 " more", info->n_waits - 1);
	put_text(lines, NULL);
}

static void put_lines_of_group(struct lines *lines, const struct tdt_snapshot_group *group,
			       bool deadlock)
{
	const struct tdt_node *root = group->trace != NULL ? tdt_trace_root(group->trace) : NULL;

	tdt__json_begin(&lines->json, NULL, '{');
	tdt__dump_group_head(&lines->text, group, deadlock, &lines->dump);
	put_text(lines, "head");
	if (root != NULL) {
		tdt__json_tree(&lines->json, "tree", root, &lines->folded);
		tdt__json_tree(&lines->json, "full", root, &lines->full);
	}
	tdt__json_begin(&lines->json, "waits", '[');
	for (size_t i = 0; i < group->n; i++) {
		const struct tdt_task_info info = tdt__dump_task(group, i);

		put_waits(lines, &info);
	}
	tdt__json_end(&lines->json, ']');
	tdt__json_end(&lines->json, '}');
}

static void put_lines_of_groups(struct lines *lines, const char *key,
				const struct tdt_snapshot_group *const *groups, size_t n,
				size_t deadlocked)
{
	tdt__json_begin(&lines->json, key, '[');
	for (size_t i = 0; i < n; i++)
		put_lines_of_group(lines, groups[i], i < deadlocked);
	tdt__json_end(&lines->json, ']');
}

/* Write the lines of a dump as a document.  Returns 0 or a negative errno. */
static int put_dump_lines(FILE *out, const struct tdt_snapshot *snapshot)
{
	const struct tdt_print_options folded = { .size = sizeof folded,
						  .utf8 = TDT_PRINT_YES,
						  .color = TDT_PRINT_NO },
				       full = { .size = sizeof full,
						.utf8 = TDT_PRINT_YES,
						.color = TDT_PRINT_NO,
						.full = 1,
						.plumbing = 1 };
	struct tdt__out to = { .write = put_without_markup, .arg = out };
	struct tdt__names *names = tdt__names_new(snapshot);
	struct lines lines = {
		.json = tdt__json_document(&to),
		.dump = { .snapshot = snapshot, .names = names, .options = &folded, .max_ids = 8 },
		.folded.string.options = &folded,
		.full.string.options = &full,
		.text.options = &folded,
	};
	size_t deadlocked = 0;

	for (size_t i = 0; i < snapshot->n_cycles; i++)
		deadlocked += snapshot->cycles[i]->n_groups;
	put_top(&lines);
	put_lines_of_groups(&lines, "lines", snapshot->groups, snapshot->n_groups, deadlocked);
	put_lines_of_groups(&lines, "before", snapshot->before, snapshot->n_before, 0);
	put_lines_of_groups(&lines, "panics", snapshot->panics, snapshot->n_panics, 0);
	tdt__json_finish(&lines.json);
	tdt__frames_fini(&lines.folded);
	tdt__frames_fini(&lines.full);
	tdt__string_free(&lines.text);
	tdt__names_free(names);
	return names != NULL ? tdt__out_end(&to) : -ENOMEM;
}

static int put_document(FILE *out, json_t *document)
{
	struct reader reader = { .file = NULL };
	struct dump *dump;
	int error;

	fputs(DOCUMENT, out);
	if (json_dump_callback(document, put_dumped, out,
			       JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12)) != 0)
		return -ENOMEM;
	fputs("\n</script>\n", out);
	if (json_object_get(document, "dump") == NULL)
		return 0;
	if (reader_dump(&reader, document, &dump) != 1)
		return -ENOMEM; /* it is our own, so nothing else is wrong */
	fputs(DOCUMENT, out);
	error = put_dump_lines(out, dump_snapshot(dump));
	fputs("</script>\n", out);
	dump_free(dump);
	return error;
}

static void put_parts(FILE *out, const char *const *part)
{
	for (; *part != NULL; part++)
		fputs(*part, out);
}

/* Only what has the number may run, and nothing is loaded. */
static int put_page(FILE *out, const json_t *documents)
{
	uint64_t nonce[2];
	char text[40];
	int error = 0;

	if (getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
		return -errno;
	snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, nonce[0], nonce[1]);
	fprintf(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src 'nonce-%s'; style-src 'nonce-%s'; base-uri 'none'; "
		"form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n"
		"<title>tdt report</title>\n<style nonce=\"%s\">\n",
		text, text, text);
	put_parts(out, report_css);
	fputs("</style>\n", out);
	put_parts(out, report_html);
	for (size_t i = 0; i < json_array_size(documents) && error == 0; i++)
		error = put_document(out, json_array_get(documents, i));
	fprintf(out, "<script nonce=\"%s\">\n", text);
	put_parts(out, report_js);
	fputs("</script>\n", out);
	if (error == 0 && fflush(out) != 0)
		return -errno;
	return error == 0 && ferror(out) ? -EIO : error;
}

/* A child that failed may have left a part of a document, which is left out. */
static json_t *read_documents(const char *text, size_t n)
{
	json_t *documents = json_array();

	for (size_t at = 0, length; at < n; at += length + 1) {
		const char *end = memchr(text + at, '\n', n - at);

		length = end != NULL ? (size_t)(end - text) - at : n - at;
		json_array_append_new(documents, json_loadb(text + at, length, 0, NULL));
	}
	return documents;
}

/* Replace and leave out what the page does not show.  Returns 0 or a negative errno. */
static int prepare_documents(json_t *documents, bool redact, const char *ended)
{
	struct room room = { .tasks = TASKS_MAX, .nodes = NODES_MAX };
	json_t *facts = NULL;
	bool dumped = false;

	if (redact && !redact_documents(documents))
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(documents); i++) {
		json_t *document = json_array_get(documents, i);

		if (json_object_get(document, "report") != NULL)
			facts = document;
		if (json_object_get(document, "timeline") != NULL)
			room.tasks = TASKS_MAX_WITH_TIMELINE;
		if (json_object_get(document, "dump") == NULL)
			continue;
		dumped = true;
		bound_dump(&room, document);
	}
	if (facts != NULL && redact)
		json_object_set_new(json_object_get(facts, "report"), "redacted", json_true());
	if (facts != NULL && ended != NULL)
		json_object_set_new(json_object_get(facts, "report"), "ended", json_string(ended));
	if (facts != NULL)
		say_left_out(&room, facts);
	return dumped ? 0 : -ENODATA;
}

int report_page(FILE *out, const char *text, size_t n, bool redact, const char *ended)
{
	json_t *documents;
	int error;

	reader_json_begin();
	documents = read_documents(text, n);
	error = prepare_documents(documents, redact, ended);
	if (error == 0)
		error = put_page(out, documents);
	json_decref(documents);
	return reader_json_failed() ? -ENOMEM : error;
}
