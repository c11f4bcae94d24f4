// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The texts of frames.  Thousands of trees are made of some hundred different frames, so each text
 * is made once.
 *
 * There are two indexes.  The first one finds the frames that have been seen.  Two frames are the
 * same if all fields that are printed are the same; strings are compared by address, because
 * captured trees share their strings.  The second one finds the texts, because different frames may
 * read the same.  So two frames read the same if and only if their texts have the same number.
 */

#include "frames.h"

#include <string.h>

#include "base/text.h"
#include "frame.h"

void tdt__frames_fini(struct tdt__frames *frames)
{
	tdt__string_free(&frames->string);
	tdt__texts_fini(&frames->texts);
	tdt__table_fini(&frames->seen_table);
}

static bool is_same_frame(const struct tdt_frame *a, const struct tdt_frame *b)
{
	return a->pc == b->pc && a->function == b->function && a->line == b->line &&
	       a->column == b->column && a->file == b->file && a->directory == b->directory &&
	       a->module == b->module && a->module_offset == b->module_offset &&
	       a->symbol == b->symbol && a->symbol_offset == b->symbol_offset &&
	       a->inlined == b->inlined && a->unnamed == b->unnamed && a->kind == b->kind &&
	       a->cut == b->cut && a->also == b->also && a->missing == b->missing;
}

static uint32_t hash_frame(const struct tdt_frame *frame)
{
	uint64_t hash = tdt__mix(frame->pc, (uintptr_t)frame->function);

	hash = tdt__mix(hash, (uint64_t)frame->line << 32 | frame->column);
	return (uint32_t)tdt__mix(hash, (uint64_t)frame->cut);
}

static uint32_t find_seen(const struct tdt__frames *frames, const struct tdt_frame *frame,
			  uint32_t hash)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &frames->seen_table.index, hash)
		if (is_same_frame(frames->seen[i].frame, frame))
			break;
	return i;
}

/*
 * Add the directory above the one where the frame was compiled: the path below it names that one.
 * Nothing is added if the source is elsewhere; then the whole path is shown.
 */
static void add_parent(struct tdt__string *string, const struct tdt_frame *frame)
{
	const char *slash = frame->directory != NULL ? strrchr(frame->directory, '/') : NULL;

	if (slash != NULL && frame->file != NULL && tdt__starts_with(frame->file, frame->directory))
		tdt__string_add(string, frame->directory, (size_t)(slash - frame->directory));
	tdt__string_add(string, "", 1);
}

static void add_library_text(struct tdt__frames *frames, const struct tdt_frame *frame,
			     enum tdt__role role)
{
	struct tdt__string function = { 0 }, directory = { 0 };
	struct tdt_frame shown = *frame;

	add_parent(&directory, frame);
	shown.directory = directory.bytes;
	if (role == TDT__ROLE_OPERATION && frame->function != NULL) {
		tdt__operation_name(&function, frame->function);
		shown.function = function.bytes;
	}
	if (directory.failed || function.failed)
		frames->string.failed = true;
	else
		tdt__frame_line(&frames->string, &shown);
	tdt__string_free(&function);
	tdt__string_free(&directory);
}

static void add_object_text(struct tdt__frames *frames, const struct tdt_frame *frame)
{
	struct tdt__string name = { 0 };
	struct tdt_frame shown = { .kind = TDT_NODE_FRAME };

	tdt__polled_name(&name, frame->function);
	shown.function = name.bytes;
	tdt__string_puts(&frames->string, " (on ");
	if (name.failed)
		frames->string.failed = true;
	else
		tdt__frame_name(&frames->string, &shown);
	tdt__string_puts(&frames->string, ")");
	tdt__string_free(&name);
}

static void add_text_as(struct tdt__frames *frames, const struct tdt_frame *frame,
			enum tdt__role role)
{
	if (role == TDT__ROLE_OWN)
		tdt__frame_line(&frames->string, frame);
	else if (role == TDT__ROLE_OBJECT)
		add_object_text(frames, frame);
	else
		add_library_text(frames, frame, role);
}

/* The number of the frame's text.  UINT32_MAX: no memory. */
static uint32_t number_text(struct tdt__frames *frames, const struct tdt_frame *frame,
			    enum tdt__role role)
{
	struct tdt__string *string = &frames->string;
	bool failed;

	string->n = 0;
	add_text_as(frames, frame, role);
	failed = string->failed;
	string->failed = false; /* the next text may be shorter, and fit */
	return failed ? UINT32_MAX : tdt__texts_number(&frames->texts, string->bytes, string->n);
}

uint32_t tdt__frames_note(struct tdt__frames *frames, const struct tdt_frame *frame)
{
	uint32_t hash = hash_frame(frame), seen = find_seen(frames, frame, hash);
	const char *function = frame->function != NULL ? frame->function : "";
	struct tdt__frame_seen new;

	if (seen != TDT__INDEX_NONE)
		return seen;
	new = (struct tdt__frame_seen){ .frame = frame,
					.origin = tdt__origin(frame),
					.polled = tdt__polled(function),
					.hides_futures = tdt__hides_futures(function) };
	return tdt__table_add(&frames->seen_table, hash, &new, sizeof new);
}

uint32_t tdt__frames_text(struct tdt__frames *frames, uint32_t frame, enum tdt__role role)
{
	struct tdt__frame_seen *seen = &frames->seen[frame];

	if (seen->text[role] == 0)
		seen->text[role] = number_text(frames, seen->frame, role) + 1; /* 0: no memory */
	return seen->text[role] - 1;
}

void tdt__frames_add(struct tdt__string *to, const struct tdt__frames *frames, uint32_t number)
{
	tdt__string_add(to, frames->texts.text[number].bytes, frames->texts.text[number].n);
}
