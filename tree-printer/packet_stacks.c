// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The stacks of a Perfetto trace.  A callstack is a list of frames, the outermost first; a frame
 * has a function, a place and a mapping, which is a file that was mapped.
 */

#include "packets.h"

#include <ctype.h>
#include <inttypes.h>

/* The numbers of the fields, by message; iid is the first one of each. */
enum {
	IID = 1,
	FRAME_FUNCTION = 2,
	FRAME_MAPPING = 3,
	FRAME_ADDRESS = 4, /* in the mapping */
	FRAME_SOURCE = 5,
	FRAME_LINE = 6,
	CALLSTACK_FRAME = 2,
	MAPPING_BUILD_ID = 2,
	MAPPING_PATH = 7
};

/*
 * The number of a message that is known by its own bytes: if those are new, the message is told,
 * with its number.  `message` is emptied.
 */
static uint32_t intern_message(struct tdt__packets *packets, enum tdt__interned field,
			       struct tdt__string *message)
{
	size_t before = packets->texts[field].n, told = packets->interned.n;
	uint32_t iid;

	if (message->failed) {
		tdt__packets_fail(packets);
		return 0;
	}
	iid = tdt__packets_intern(packets, field, message->bytes, message->n);
	if (iid > before) {
		/* It was told as a text, but it is a message. */
		packets->interned.n = told;
		tdt__proto_add_uint(message, IID, iid);
		tdt__proto_add_message(&packets->interned, field, message);
	}
	message->n = 0;
	return iid;
}

/* The number of a build-id, which Perfetto has as bytes. */
static uint32_t intern_build_id(struct tdt__packets *packets, const char *text)
{
	unsigned char bytes[64];
	size_t n = 0;

	while (n < sizeof(bytes) && isxdigit((unsigned char)text[2 * n]) &&
	       isxdigit((unsigned char)text[2 * n + 1])) {
		sscanf(text + 2 * n, "%2hhx", &bytes[n]);
		n++;
	}
	return tdt__packets_intern(packets, TDT__BUILD_IDS, (const char *)bytes, n);
}

/* Frames of unknown modules have one mapping, which has no path. */
static uint32_t mapping(struct tdt__packets *packets, const struct tdt_frame *frame)
{
	struct tdt__string message = { 0 };
	uint32_t iid;

	if (frame->build_id != NULL && frame->build_id[0] != '\0')
		tdt__proto_add_uint(&message, MAPPING_BUILD_ID,
				    intern_build_id(packets, frame->build_id));
	if (frame->module != NULL)
		tdt__proto_add_uint(&message, MAPPING_PATH,
				    tdt__packets_name(packets, TDT__MAPPING_PATHS, frame->module));
	iid = intern_message(packets, TDT__MAPPINGS, &message);
	tdt__string_free(&message);
	return iid;
}

static uint32_t function(struct tdt__packets *packets, const struct tdt_frame *frame, uint64_t pc)
{
	char address[32];

	if (frame->function != NULL)
		return tdt__packets_name(packets, TDT__FUNCTION_NAMES, frame->function);
	if (frame->symbol != NULL)
		return tdt__packets_name(packets, TDT__FUNCTION_NAMES, frame->symbol);
	snprintf(address, sizeof(address), "0x%" PRIx64, pc);
	return tdt__packets_name(packets, TDT__FUNCTION_NAMES, address);
}

static uint32_t intern_frame(struct tdt__packets *packets, const struct tdt_frame *frame,
			     uint64_t pc)
{
	struct tdt__string message = { 0 };
	uint32_t iid;

	tdt__proto_add_uint(&message, FRAME_FUNCTION, function(packets, frame, pc));
	tdt__proto_add_uint(&message, FRAME_MAPPING, mapping(packets, frame));
	tdt__proto_add_uint(&message, FRAME_ADDRESS,
			    frame->module_offset != 0 ? frame->module_offset : pc);
	if (frame->file != NULL) {
		tdt__proto_add_uint(&message, FRAME_SOURCE,
				    tdt__packets_name(packets, TDT__SOURCE_PATHS, frame->file));
		tdt__proto_add_uint(&message, FRAME_LINE, frame->line);
	}
	iid = intern_message(packets, TDT__FRAMES, &message);
	tdt__string_free(&message);
	return iid;
}

size_t tdt__packets_frames(const struct tdt__packets *packets, uint64_t pc,
			   struct tdt_frame frames[TDT__PERFETTO_INLINED_MAX])
{
	const struct tdt__perfetto_options *options = packets->options;

	memset(frames, 0, TDT__PERFETTO_INLINED_MAX * sizeof frames[0]);
	return options->names != NULL
		   ? options->names(options->data, pc, frames, TDT__PERFETTO_INLINED_MAX)
		   : 0;
}

/* Add the frames of one return address, the outermost of them first. */
static void add_pc(struct tdt__packets *packets, struct tdt__string *callstack, uint64_t pc)
{
	struct tdt_frame frames[TDT__PERFETTO_INLINED_MAX];
	size_t n = tdt__packets_frames(packets, pc, frames);

	for (n = n != 0 ? n : 1; n-- > 0;)
		tdt__proto_add_uint(callstack, CALLSTACK_FRAME,
				    intern_frame(packets, &frames[n], pc));
}

static uint32_t callstack(struct tdt__packets *packets, const uint64_t *pcs, size_t n)
{
	struct tdt__string message = { 0 };
	uint32_t iid;

	while (n-- > 0)
		add_pc(packets, &message, pcs[n]);
	iid = intern_message(packets, TDT__CALLSTACKS, &message);
	tdt__string_free(&message);
	return iid;
}

uint32_t tdt__packets_stack(struct tdt__packets *packets, const struct tdt__recording *recording,
			    uint32_t number)
{
	uint32_t known = tdt__table_find(&packets->stack_table, &number, sizeof number,
					 sizeof packets->stack[0]);
	struct tdt__interned_stack found = { .number = number };
	const uint64_t *pcs;
	enum tdt_cut cut;
	size_t n;

	if (known != TDT__INDEX_NONE)
		return packets->stack[known].iid;
	n = tdt__recording_stack(recording, number, &pcs, &cut);
	if (n == 0)
		return 0;
	found.iid = callstack(packets, pcs, n);
	if (tdt__table_note(&packets->stack_table, &found, sizeof number, sizeof found) ==
	    TDT__INDEX_NONE)
		tdt__packets_fail(packets);
	return found.iid;
}
