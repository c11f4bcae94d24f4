// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writing pprof's form.  Texts, functions and locations are tables: each entry is written once, and
 * has a number.  A location is an address with its line, and with the lines of the functions that
 * were inlined there, the innermost first.
 */

#include "pprof.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include <zlib.h>

#include "base/texts.h"
#include "protobuf.h"
#include "symbolize/modules.h"

/* The numbers of the fields, by message. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
	TYPE_NAME = 1,
	TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_TEXT = 2,
	ENTRY_ID = 1, /* of a mapping, a location and a function */
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILE = 5,
	MAPPING_BUILD = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_INLINE_FRAMES = 10,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	LINE_NUMBER = 2,
	FUNCTION_NAME = 2,
	FUNCTION_SYMBOL = 3,
	FUNCTION_FILE = 4
};

struct writing {
	const struct tdt__pprof *profile;
	struct tdt__texts texts, functions, locations; /* of messages without their numbers */
	struct tdt__string out;
	bool failed;
};

static uint64_t find_bytes(struct writing *writing, struct tdt__texts *table, const char *bytes,
			   size_t n)
{
	uint32_t i = tdt__texts_number(table, bytes, n);

	writing->failed |= i == TDT__INDEX_NONE;
	return i != TDT__INDEX_NONE ? i : 0;
}

/* The number of a message, which is emptied.  Numbers of messages count from 1. */
static uint64_t find_message(struct writing *writing, struct tdt__texts *table,
			     struct tdt__string *message)
{
	uint64_t i = 0;

	writing->failed |= message->failed;
	if (!writing->failed)
		i = find_bytes(writing, table, message->bytes, message->n);
	tdt__string_free(message);
	return i + 1;
}

/* The number of a text, which may have any bytes. */
static uint64_t text_number(struct writing *writing, const char *text)
{
	struct tdt__string valid = { 0 };
	uint64_t i;

	tdt__string_escape(&valid, text, true, '\0');
	i = find_bytes(writing, &writing->texts, valid.bytes, valid.n);
	writing->failed |= valid.failed;
	tdt__string_free(&valid);
	return i;
}

/* What stands for a cut, or for a function without a name. */
static void name_frame(char *name, size_t size, const struct tdt_frame *frame)
{
	if (frame->kind == TDT_NODE_CUT)
		snprintf(name, size, "(frames are missing)");
	else if (frame->module_offset != 0)
		snprintf(name, size, "+0x%" PRIx64, frame->module_offset);
	else
		snprintf(name, size, "0x%" PRIx64, frame->pc);
}

static uint64_t function_number(struct writing *writing, const struct tdt_frame *frame)
{
	struct tdt__string message = { 0 };
	const char *name = frame->function;
	char number[40];

	if (name == NULL) {
		name_frame(number, sizeof number, frame);
		name = number;
	}
	tdt__proto_add_uint(&message, FUNCTION_NAME, text_number(writing, name));
	tdt__proto_add_uint(&message, FUNCTION_SYMBOL,
			    text_number(writing, frame->symbol != NULL ? frame->symbol : name));
	if (frame->file != NULL)
		tdt__proto_add_uint(&message, FUNCTION_FILE, text_number(writing, frame->file));
	return find_message(writing, &writing->functions, &message);
}

static void add_pprof_line(struct writing *writing, struct tdt__string *location,
		     const struct tdt_frame *frame)
{
	size_t start = location->n;

	tdt__proto_add_uint(location, LINE_FUNCTION, function_number(writing, frame));
	if (frame->line != 0)
		tdt__proto_add_uint(location, LINE_NUMBER, frame->line);
	tdt__proto_wrap(location, start, LOCATION_LINE);
}

/* The number of the module's mapping; 0: none. */
static uint64_t mapping_of(const struct writing *writing, uint64_t pc)
{
	const struct tdt__modules *modules = writing->profile->modules;
	const struct tdt__module *module = modules != NULL && pc != 0
						   ? tdt__modules_find(modules, (uintptr_t)pc - 1)
						   : NULL;

	return module != NULL ? (uint64_t)(module - modules->module) + 1 : 0;
}

/*
 * Add the location of the frames at `*node` with one address, unless none of them is shown.
 * `*node` becomes the next outer one.
 */
static void add_location(struct writing *writing, const struct tdt__pprof_sample *sample,
			 const struct tdt_node **node)
{
	const struct tdt_frame *frame = tdt_node_frame(*node);
	uint64_t pc = frame->pc, mapping = mapping_of(writing, pc);
	struct tdt__string location = { 0 };
	bool inlined = true, shown = false;

	if (mapping != 0)
		tdt__proto_add_uint(&location, LOCATION_MAPPING, mapping);
	if (pc != 0)
		tdt__proto_add_uint(&location, LOCATION_ADDRESS, pc);
	while (inlined && frame->kind != TDT_NODE_TASK) {
		if (sample->shown == NULL || sample->shown[tdt_node_id(*node)]) {
			add_pprof_line(writing, &location, frame);
			shown = true;
		}
		inlined = frame->inlined != 0;
		*node = tdt_node_parent(*node);
		frame = tdt_node_frame(*node);
	}
	if (shown)
		tdt__proto_add_uint(&writing->out, SAMPLE_LOCATION,
				    find_message(writing, &writing->locations, &location));
	tdt__string_free(&location);
}

static uint64_t find_instead(struct writing *writing, const char *text)
{
	const struct tdt_frame frame = { .kind = TDT_NODE_FRAME, .function = text };
	struct tdt__string location = { 0 };

	add_pprof_line(writing, &location, &frame);
	return find_message(writing, &writing->locations, &location);
}

static void add_labels(struct writing *writing, const struct tdt__pprof_sample *sample)
{
	for (int i = 0; i < TDT__PPROF_LABELS; i++) {
		size_t start = writing->out.n;

		if (sample->label[i] == NULL)
			continue;
		tdt__proto_add_uint(&writing->out, LABEL_KEY,
				    text_number(writing, writing->profile->label[i]));
		tdt__proto_add_uint(&writing->out, LABEL_TEXT,
				    text_number(writing, sample->label[i]));
		tdt__proto_wrap(&writing->out, start, SAMPLE_LABEL);
	}
}

static void add_sample(struct writing *writing, const struct tdt__pprof_sample *sample)
{
	const struct tdt_node *node = sample->leaf;
	size_t start = writing->out.n;

	if (node == NULL)
		tdt__proto_add_uint(&writing->out, SAMPLE_LOCATION,
				    find_instead(writing, sample->instead));
	while (node != NULL && tdt_node_frame(node)->kind != TDT_NODE_TASK)
		add_location(writing, sample, &node);
	for (int i = 0; i < TDT__PPROF_VALUES; i++)
		tdt__proto_add_uint(&writing->out, SAMPLE_VALUE, (uint64_t)sample->value[i]);
	add_labels(writing, sample);
	tdt__proto_wrap(&writing->out, start, PROFILE_SAMPLE);
}

static void add_type(struct writing *writing, unsigned field, const char *name, const char *unit)
{
	size_t start = writing->out.n;

	tdt__proto_add_uint(&writing->out, TYPE_NAME, text_number(writing, name));
	tdt__proto_add_uint(&writing->out, TYPE_UNIT, text_number(writing, unit));
	tdt__proto_wrap(&writing->out, start, field);
}

static void add_mapping(struct writing *writing, uint64_t number,
			const struct tdt__module *module)
{
	struct tdt__string *out = &writing->out;
	size_t start = out->n;

	tdt__proto_add_uint(out, ENTRY_ID, number);
	tdt__proto_add_uint(out, MAPPING_START, module->start);
	tdt__proto_add_uint(out, MAPPING_LIMIT, module->end);
	if (module->path != NULL)
		tdt__proto_add_uint(out, MAPPING_FILE, text_number(writing, module->path));
	if (module->build_id[0] != '\0')
		tdt__proto_add_uint(out, MAPPING_BUILD, text_number(writing, module->build_id));
	/* Readers must not look for names again: functions, files, lines, inlined functions. */
	for (unsigned has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINE_FRAMES; has++)
		tdt__proto_add_uint(out, has, 1);
	tdt__proto_wrap(out, start, PROFILE_MAPPING);
}

static void add_table(struct writing *writing, unsigned field, const struct tdt__texts *table)
{
	for (size_t i = 0; i < table->n; i++) {
		size_t start = writing->out.n;

		tdt__proto_add_uint(&writing->out, ENTRY_ID, i + 1);
		tdt__string_add(&writing->out, table->text[i].bytes, table->text[i].n);
		tdt__proto_wrap(&writing->out, start, field);
	}
}

static void add_texts(struct writing *writing)
{
	const struct tdt__texts *texts = &writing->texts;

	for (size_t i = 0; i < texts->n; i++)
		tdt__proto_add_bytes(&writing->out, PROFILE_STRING, texts->text[i].bytes,
				     texts->text[i].n);
}

static void make_message(struct writing *writing)
{
	const struct tdt__pprof *profile = writing->profile;
	const struct tdt__modules *modules = profile->modules;

	find_bytes(writing, &writing->texts, "", 0); /* text 0 must be empty */
	for (int i = 0; i < TDT__PPROF_VALUES; i++)
		add_type(writing, PROFILE_SAMPLE_TYPE, profile->type[i], profile->unit[i]);
	for (size_t i = 0; i < profile->n; i++)
		add_sample(writing, &profile->sample[i]);
	for (size_t i = 0; modules != NULL && i < modules->n; i++)
		add_mapping(writing, i + 1, &modules->module[i]);
	add_table(writing, PROFILE_LOCATION, &writing->locations);
	add_table(writing, PROFILE_FUNCTION, &writing->functions);
	tdt__proto_add_uint(&writing->out, PROFILE_TIME, profile->real);
	tdt__proto_add_uint(&writing->out, PROFILE_DURATION, profile->duration);
	add_type(writing, PROFILE_PERIOD_TYPE, "looks", "nanoseconds");
	tdt__proto_add_uint(&writing->out, PROFILE_PERIOD, profile->period);
	tdt__proto_add_uint(&writing->out, PROFILE_COMMENT, text_number(writing, profile->comment));
	tdt__proto_add_uint(&writing->out, PROFILE_DEFAULT_TYPE,
			    text_number(writing, profile->type[0]));
	add_texts(writing);
}

static int write_gzip(const struct tdt__string *message, FILE *out)
{
	int copy = fflush(out) == 0 ? dup(fileno(out)) : -1;
	gzFile file = copy >= 0 ? gzdopen(copy, "w") : NULL;
	size_t written;

	if (file == NULL && copy >= 0)
		close(copy);
	if (file == NULL)
		return copy >= 0 ? -ENOMEM : -errno;
	written = gzfwrite(message->bytes, 1, message->n, file);
	return gzclose(file) == Z_OK && written == message->n ? 0 : -EIO;
}

int tdt__pprof_write(const struct tdt__pprof *profile, FILE *out)
{
	struct writing writing = { .profile = profile };
	int error = -ENOMEM;

	make_message(&writing);
	if (!writing.failed && !writing.out.failed)
		error = write_gzip(&writing.out, out);
	tdt__string_free(&writing.out);
	tdt__texts_fini(&writing.texts);
	tdt__texts_fini(&writing.functions);
	tdt__texts_fini(&writing.locations);
	return error;
}
