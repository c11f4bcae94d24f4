// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The reader of recordings, and all that is made of what it accepts: a copy, a Perfetto trace,
 * spans, the summary, durations, and a dump of the last states.  A copy must be a recording, a
 * trace must be of whole packets, and spans of whole messages; the summary and the dump must be
 * JSON, or text that harms no terminal, and the durations of two spans must be those of the whole.
 */

#include <config.h>

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "fuzz.h"
#include "reader/last_dump.h"
#include "recording/copy.h"
#include "recording/durations.h"
#include "recording/module_table.h"
#include "recording/read.h"
#include "recording/summary.h"
#include "symbolize/modules.h"
#include "tree-printer/otlp.h"
#include "tree-printer/perfetto.h"
#include "tree-printer/summaries.h"

struct block {
	const uint8_t *bytes;
	size_t size;
};

static int read_bytes(void *data, uint64_t address, void *to, size_t n)
{
	const struct block *block = data;

	if (address > block->size || n > block->size - address)
		return -EFAULT;
	memcpy(to, block->bytes + address, n);
	return 0;
}

/* Read all items and what belongs to them.  Their times never go back. */
static void read_items(const struct tdt__recording *recording)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	uint64_t last = 0;

	CLAIM(tdt__recording_begin(&cursor, recording) == 0);
	while (tdt__recording_next(&cursor, &item)) {
		char payload[TDT__PAYLOAD_MAX + 1];
		struct tdt__recorded_argument argument;
		struct tdt__recorded_user user;
		size_t n = tdt__recording_payload(recording, &item, payload);

		CLAIM(item.ns >= last && n <= TDT__PAYLOAD_MAX && payload[n] == '\0');
		last = item.ns;
		if (tdt__recorded_user(&user, &item.event, payload, n))
			while (tdt__recorded_user_next(&user, &argument))
				CLAIM(user.at <= user.end);
	}
	tdt__recording_end(&cursor);
}

/* The packets of a trace: a tag, the length as a varint, and so many bytes. */
static void claim_packets(const unsigned char *at, size_t n)
{
	const unsigned char *end = at + n;

	while (at < end) {
		uint64_t length = 0;

		CLAIM(*at++ == 0x0a);
		for (unsigned shift = 0;; shift += 7) {
			CLAIM(at < end && shift < 63);
			length |= (uint64_t)(*at & 0x7f) << shift;
			if (*at++ < 0x80)
				break;
		}
		CLAIM(length <= (uint64_t)(end - at));
		at += length;
	}
}

static void write_trace(const struct tdt__recording *recording)
{
	char *bytes = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&bytes, &n);

	CLAIM(out != NULL);
	CLAIM(tdt__perfetto_write(recording, NULL, out) == 0);
	CLAIM(fclose(out) == 0);
	claim_packets((const unsigned char *)bytes, n);
	free(bytes);
}

static int claim_message(void *arg, const void *message, size_t n, uint64_t spans)
{
	(void)arg;
	(void)spans;
	claim_packets(message, n);
	return 0;
}

static void write_spans(const struct tdt__recording *recording)
{
	struct tdt__otlp_counts counts;

	CLAIM(tdt__otlp_write(recording, 0, claim_message, NULL, &counts) == 0);
}

/* The summary in a form.  Modules may name any file, so no names are looked up. */
static char *print_summary(const struct tdt__summary *summary, enum tdt_print_format format)
{
	const struct tdt_print_options options = {
		.size = sizeof options, .format = format, .utf8 = TDT_PRINT_NO
	};
	struct tdt__modules *none = tdt__modules_new(0);
	char *bytes = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&bytes, &n);

	CLAIM(out != NULL && none != NULL);
	CLAIM(tdt__summary_print(summary, out, &options, true, none, 0) == 0);
	CLAIM(fclose(out) == 0 && strlen(bytes) == n);
	tdt__modules_unref(none);
	return bytes;
}

/* Claim that text harms no terminal and JSON is JSON, and free both. */
static void claim_forms(char *text, char *json)
{
	json_t *parsed = json_loads(json, 0, NULL);

	for (const char *at = text; *at != '\0'; at++)
		CLAIM(*at == '\n' || (*at >= ' ' && *at <= '~'));
	CLAIM(parsed != NULL);
	json_decref(parsed);
	free(json);
	free(text);
}

static void sum_up(const struct tdt__recording *recording)
{
	const struct tdt__summary_limits limits = { .rows = 5 };
	struct tdt__summary *summary = tdt__summary_new(recording, &limits);
	struct tdt__modules *modules = tdt__recorded_module_table(recording);
	char *text, *json;

	CLAIM(summary != NULL && modules != NULL);
	text = print_summary(summary, TDT_PRINT_TEXT);
	json = print_summary(summary, TDT_PRINT_JSON);
	claim_forms(text, json);
	tdt__modules_unref(modules);
	tdt__summary_free(summary);
}

static char *print_dump(const struct tdt_snapshot *snapshot, enum tdt_print_format format)
{
	const struct tdt_print_options print = {
		.size = sizeof print, .format = format, .utf8 = TDT_PRINT_NO
	};
	const struct tdt_dump_options options = { .size = sizeof options, .print = &print };
	char *bytes = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&bytes, &n);

	CLAIM(out != NULL);
	CLAIM(tdt_snapshot_print(snapshot, out, &options) == 0);
	CLAIM(fclose(out) == 0 && strlen(bytes) == n);
	return bytes;
}

/* No task is in a state since a time when events are missing, unless it was being polled. */
static void claim_states(const struct tdt__last_states *states)
{
	uint64_t from = states->recording->sure_from, now = states->tasks.now;

	for (size_t i = 0; i < states->tasks.n; i++) {
		const struct tdt_task_info *info = &states->tasks.task[i].member.info;

		CLAIM(info->state == TDT_TASK_UNKNOWN || info->state == TDT_TASK_RUNNING ||
		      now - info->state_ns >= from || info->state_ns == 0);
	}
}

static void dump_last(const struct tdt__recording *recording)
{
	const struct tdt__task_choice all = { .n_ids = 0 };
	struct tdt__modules *none = tdt__modules_new(0);
	struct tdt__last_states states;
	struct tdt__findings *findings;

	CLAIM(none != NULL && tdt__last_states_read(&states, recording) == 0);
	claim_states(&states);
	findings = tdt__last_dump(&states, &all, none);
	CLAIM(findings != NULL);
	claim_forms(print_dump(&findings->public, TDT_PRINT_TEXT),
		    print_dump(&findings->public, TDT_PRINT_JSON));
	tdt__findings_free(findings);
	tdt__last_states_fini(&states);
	tdt__modules_unref(none);
}

/* A tdt__waited_fn. */
static void add_wait(void *arg, const struct tdt__recorded_task *task, enum tdt_wait_kind kind,
		     uint64_t ns)
{
	CLAIM(task->name != NULL && task->file != NULL && kind <= TDT_WAIT_NOTIFICATION);
	tdt__durations_add(arg, ns);
}

static void count_span(const struct tdt__recording *recording, uint64_t from, uint64_t until,
		       struct tdt__durations all[3])
{
	const struct tdt__recorded_span span = { from, until };
	const struct tdt__recorded_durations to = { &all[0], &all[1], add_wait, &all[2] };

	CLAIM(tdt__durations_count(recording, &span, &to) == 0);
}

static void count_durations(const struct tdt__recording *recording)
{
	uint64_t from = recording->from, until = recording->until,
		 middle = from + (until - from) / 2;
	struct tdt__durations whole[3] = { 0 }, halves[3] = { 0 };

	count_span(recording, 0, UINT64_MAX, whole);
	count_span(recording, 0, middle, halves);
	count_span(recording, middle, UINT64_MAX, halves);
	CLAIM(memcmp(whole, halves, sizeof whole) == 0);
}

static void read_block(const void *bytes, size_t size, bool must)
{
	struct tdt__recording *recording;
	int err = tdt__recording_open(&recording, bytes, size);

	CLAIM(err == 0 || (!must && (err == -EINVAL || err == -ENOTSUP)));
	if (err != 0)
		return;
	read_items(recording);
	write_trace(recording);
	write_spans(recording);
	sum_up(recording);
	count_durations(recording);
	dump_last(recording);
	tdt__recording_close(recording);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct block block = { data, size };
	const struct tdt__recording_source source = {
		.read = read_bytes, .data = &block, .bytes = size, .now = 1, .since = size & 1
	};
	uint64_t *aligned = malloc(size + 8);
	size_t copy_size;
	void *copy;

	CLAIM(aligned != NULL);
	memcpy(aligned, data, size);
	read_block(aligned, size, false);
	free(aligned);
	if (tdt__recording_copy(&source, &copy, &copy_size) != 0)
		return 0;
	read_block(copy, copy_size, true);
	free(copy);
	return 0;
}
