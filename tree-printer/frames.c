// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * How frames read, each written once: thousands of trees are made of some hundred frames.
 *
 * There are two hash tables.  Of the frames that were seen, which are the same if all is the same that is printed of
 * them, strings by their addresses, since a tree that was captured shares them with all others.  And of the texts, since
 * frames that are not the same may read the same: so two frames read the same if their texts have one number.
 */

#include <config.h>

#include "printer.h"

#include <stdlib.h>
#include <string.h>

#include "../src/index.h"

struct tdt__frame_seen {
	const struct tdt_frame *frame; /* NULL: a free place */
	uint32_t hash;
	uint32_t text;
};

struct tdt__frame_text {
	size_t at, size;
	uint32_t hash;
};

void tdt__frames_fini(struct tdt__frames *frames)
{
	tdt__string_free(&frames->string);
	free(frames->text);
	free(frames->by_text);
	free(frames->seen);
}

static bool is_same(const struct tdt_frame *a, const struct tdt_frame *b)
{
	return a->pc == b->pc && a->function == b->function && a->line == b->line && a->column == b->column &&
	       a->file == b->file && a->directory == b->directory && a->module == b->module &&
	       a->module_offset == b->module_offset && a->symbol == b->symbol &&
	       a->symbol_offset == b->symbol_offset && a->inlined == b->inlined && a->kind == b->kind &&
	       a->cut == b->cut && a->also == b->also;
}

static uint32_t hash_frame(const struct tdt_frame *frame)
{
	uint64_t hash = tdt__mix(frame->pc, (uintptr_t)frame->function);

	hash = tdt__mix(hash, (uint64_t)frame->line << 32 | frame->column);
	return (uint32_t)tdt__mix(hash, (uint64_t)frame->cut);
}

/* Where the frame is, or else would be. */
static struct tdt__frame_seen *find_seen(const struct tdt__frames *frames, const struct tdt_frame *frame, uint32_t hash)
{
	size_t slot = hash & (frames->slots - 1);

	while (frames->seen[slot].frame != NULL &&
	       (frames->seen[slot].hash != hash || !is_same(frames->seen[slot].frame, frame)))
		slot = (slot + 1) & (frames->slots - 1);
	return &frames->seen[slot];
}

/* FNV-1a */
static uint32_t hash_bytes(const char *bytes, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	return (uint32_t)(hash ^ hash >> 32);
}

/* Where the text is, or else would be, whose bytes stand at the end of all. */
static uint32_t *find_text(const struct tdt__frames *frames, const struct tdt__frame_text *sought)
{
	const char *bytes = frames->string.bytes;
	size_t slot = sought->hash & (frames->slots - 1);

	for (; frames->by_text[slot] != 0; slot = (slot + 1) & (frames->slots - 1)) {
		const struct tdt__frame_text *text = &frames->text[frames->by_text[slot] - 1];

		if (text->hash == sought->hash && text->size == sought->size &&
		    memcmp(bytes + text->at, bytes + sought->at, text->size) == 0)
			break;
	}
	return &frames->by_text[slot];
}

/* Room for one more frame, and one more text. */
static bool grow(struct tdt__frames *frames)
{
	struct tdt__frames grown = *frames;

	if (2 * frames->n_seen < frames->slots)
		return true;
	grown.slots = frames->slots == 0 ? 32 : 2 * frames->slots;
	grown.seen = calloc(grown.slots, sizeof(grown.seen[0]));
	grown.by_text = calloc(grown.slots, sizeof(grown.by_text[0]));
	grown.text = malloc(grown.slots / 2 * sizeof(grown.text[0]));
	if (grown.seen == NULL || grown.by_text == NULL || grown.text == NULL) {
		free(grown.seen);
		free(grown.by_text);
		free(grown.text);
		return false;
	}
	for (size_t i = 0; i < frames->slots; i++)
		if (frames->seen[i].frame != NULL)
			*find_seen(&grown, frames->seen[i].frame, frames->seen[i].hash) = frames->seen[i];
	for (uint32_t i = 0; i < frames->texts; i++) {
		grown.text[i] = frames->text[i];
		*find_text(&grown, &grown.text[i]) = i + 1;
	}
	free(frames->seen);
	free(frames->by_text);
	free(frames->text);
	*frames = grown;
	return true;
}

static void write_place(struct tdt__string *string, const struct tdt_frame *frame,
			const struct tdt_print_options *options)
{
	size_t before = string->n, start;

	tdt__color(string, TDT__DIM, options);
	start = string->n;
	tdt__frame_place(string, frame, options);
	if (string->n == start)
		string->n = before;
	else
		tdt__color(string, TDT__PLAIN, options);
}

static void write_frame(struct tdt__string *string, const struct tdt_frame *frame,
			const struct tdt_print_options *options)
{
	tdt__color(string, frame->kind == TDT_NODE_CUT ? TDT__RED : TDT__BOLD, options);
	tdt__frame_name(string, frame, options);
	tdt__color(string, TDT__PLAIN, options);
	write_place(string, frame, options);
}

/* The number of the frame's text, written now if no other frame reads so.  UINT32_MAX: no memory. */
static uint32_t number_text(struct tdt__frames *frames, const struct tdt_frame *frame)
{
	struct tdt__frame_text text = { .at = frames->string.n };
	uint32_t *slot, number;

	write_frame(&frames->string, frame, frames->options);
	if (frames->string.failed) { /* another may be shorter */
		frames->string.failed = false;
		frames->string.n = text.at;
		return UINT32_MAX;
	}
	text.size = frames->string.n - text.at;
	text.hash = hash_bytes(frames->string.bytes + text.at, text.size);
	slot = find_text(frames, &text);
	number = *slot;
	if (number != 0) {
		frames->string.n = text.at;
		return number - 1;
	}
	frames->text[frames->texts] = text;
	*slot = ++frames->texts;
	return frames->texts - 1;
}

uint32_t tdt__frames_find(struct tdt__frames *frames, const struct tdt_frame *frame)
{
	uint32_t hash = hash_frame(frame), text;
	struct tdt__frame_seen *seen;

	if (!grow(frames))
		return UINT32_MAX;
	seen = find_seen(frames, frame, hash);
	if (seen->frame != NULL)
		return seen->text;
	text = number_text(frames, frame);
	if (text != UINT32_MAX) {
		*seen = (struct tdt__frame_seen){ frame, hash, text };
		frames->n_seen++;
	}
	return text;
}

void tdt__frames_write(struct tdt__out *out, const struct tdt__frames *frames, uint32_t number)
{
	const struct tdt__frame_text *text = &frames->text[number];

	tdt__out_add(out, frames->string.bytes + text->at, text->size);
}
