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

#include <config.h>

#include "frames.h"

#include <stdlib.h>
#include <string.h>

#include "frame.h"

struct tdt__frame_seen {
	const struct tdt_frame *frame;
	uint32_t text;
};

struct tdt__frame_text {
	size_t at, size;
};

void tdt__frames_fini(struct tdt__frames *frames)
{
	tdt__string_free(&frames->string);
	tdt__index_fini(&frames->by_text);
	tdt__index_fini(&frames->by_frame);
	free(frames->text);
	free(frames->seen);
}

static bool is_same_frame(const struct tdt_frame *a, const struct tdt_frame *b)
{
	return a->pc == b->pc && a->function == b->function && a->line == b->line &&
	       a->column == b->column && a->file == b->file && a->directory == b->directory &&
	       a->module == b->module && a->module_offset == b->module_offset &&
	       a->symbol == b->symbol && a->symbol_offset == b->symbol_offset &&
	       a->inlined == b->inlined && a->unnamed == b->unnamed && a->kind == b->kind &&
	       a->cut == b->cut && a->also == b->also;
}

static uint32_t hash_frame(const struct tdt_frame *frame)
{
	uint64_t hash = tdt__mix(frame->pc, (uintptr_t)frame->function);

	hash = tdt__mix(hash, (uint64_t)frame->line << 32 | frame->column);
	return (uint32_t)tdt__mix(hash, (uint64_t)frame->cut);
}

static uint32_t hash_text(const struct tdt__frames *frames, const struct tdt__frame_text *text)
{
	const char *bytes = frames->string.bytes + text->at;

	return tdt__hash_fold(tdt__hash_bytes(TDT__HASH_START, bytes, text->size));
}

/* The index of the frame in `seen`, or TDT__INDEX_NONE. */
static uint32_t find_seen(const struct tdt__frames *frames, const struct tdt_frame *frame,
			  uint32_t hash)
{
	size_t tried = 0;
	uint32_t i;

	do {
		i = tdt__index_next(&frames->by_frame, hash, &tried);
	} while (i != TDT__INDEX_NONE && !is_same_frame(frames->seen[i].frame, frame));
	return i;
}

/* The number of the text that reads like `sought`, or TDT__INDEX_NONE. */
static uint32_t find_text(const struct tdt__frames *frames, const struct tdt__frame_text *sought,
			  uint32_t hash)
{
	const struct tdt__frame_text *text = frames->text;
	const char *bytes = frames->string.bytes;
	size_t tried = 0;
	uint32_t i;

	do {
		i = tdt__index_next(&frames->by_text, hash, &tried);
	} while (i != TDT__INDEX_NONE &&
		 (text[i].size != sought->size ||
		  memcmp(bytes + text[i].at, bytes + sought->at, sought->size) != 0));
	return i;
}

/*
 * Make room for one more frame and one more text.  False: no memory.  Then some of the arrays may
 * have grown, which does no harm.
 */
static bool grow_frames(struct tdt__frames *frames)
{
	size_t room = frames->room == 0 ? 16 : 2 * frames->room;
	struct tdt__frame_seen *seen;
	struct tdt__frame_text *text;

	if (frames->n_seen < frames->room)
		return true;
	seen = reallocarray(frames->seen, room, sizeof(*seen));
	if (seen != NULL)
		frames->seen = seen;
	text = reallocarray(frames->text, room, sizeof(*text));
	if (text != NULL)
		frames->text = text;
	if (seen == NULL || text == NULL || tdt__index_reserve(&frames->by_frame, room) != 0 ||
	    tdt__index_reserve(&frames->by_text, room) != 0)
		return false;
	frames->room = room;
	return true;
}

/*
 * The number of the frame's text.  The text is made at the end of all texts, and dropped if another
 * frame reads the same.  UINT32_MAX: no memory.
 */
static uint32_t number_text(struct tdt__frames *frames, const struct tdt_frame *frame)
{
	struct tdt__frame_text text = { .at = frames->string.n };
	uint32_t hash, number;

	tdt__frame_line(&frames->string, frame, frames->options);
	if (frames->string.failed) { /* the next text may be shorter, and fit */
		frames->string.failed = false;
		frames->string.n = text.at;
		return UINT32_MAX;
	}
	text.size = frames->string.n - text.at;
	hash = hash_text(frames, &text);
	number = find_text(frames, &text, hash);
	if (number != TDT__INDEX_NONE) {
		frames->string.n = text.at;
		return number;
	}
	number = frames->texts++;
	frames->text[number] = text;
	tdt__index_add(&frames->by_text, hash, number);
	return number;
}

uint32_t tdt__frames_find(struct tdt__frames *frames, const struct tdt_frame *frame)
{
	uint32_t hash = hash_frame(frame), seen = find_seen(frames, frame, hash), text;

	if (seen != TDT__INDEX_NONE)
		return frames->seen[seen].text;
	text = grow_frames(frames) ? number_text(frames, frame) : UINT32_MAX;
	if (text != UINT32_MAX) {
		frames->seen[frames->n_seen] = (struct tdt__frame_seen){ frame, text };
		tdt__index_add(&frames->by_frame, hash, frames->n_seen++);
	}
	return text;
}

void tdt__frames_write(struct tdt__out *out, const struct tdt__frames *frames, uint32_t number)
{
	const struct tdt__frame_text *text = &frames->text[number];

	tdt__out_add(out, frames->string.bytes + text->at, text->size);
}
