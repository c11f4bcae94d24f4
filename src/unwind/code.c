// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finding the jumps and the frames of functions in machine code.  If any part is not understood,
 * there is no answer.
 */

#include "unwind/code.h"

#include <string.h>

#include "host/loaded.h"
#include "host/peek.h"
#include "symbolize/stub.h"
#include "unwind/instruction.h"
#include "unwind/registers.h"

uintptr_t tdt__code_through_plt(uintptr_t target)
{
	unsigned char code[TDT__STUB_CODE];
	uintptr_t slot, pointer;

	if (tdt__peek(code, target, sizeof code) != sizeof code ||
	    !tdt__stub_slot(TDT__MACHINE, code, target, &slot))
		return target;
	return tdt__peek(&pointer, slot, sizeof pointer) == sizeof pointer ? pointer : 0;
}

#define CHUNK ((size_t)1024)

struct sweep {
	uintptr_t at, end;
	struct tdt__instruction instruction; /* the instruction at `at` */
	unsigned char code[CHUNK];
	uintptr_t from; /* the address that `code` was read from */
	size_t got;     /* how many bytes were read */
};

/*
 * Read the instruction that the sweep is at.  False: the function ends there, or the bytes are not
 * an instruction.
 */
static bool sweep_read(struct sweep *sweep)
{
	unsigned char code[TDT__INSTRUCTION_MAX] = { 0 };
	size_t size = sizeof code;

	if (sweep->at >= sweep->end)
		return false;
	if (sweep->at - sweep->from + sizeof code > sweep->got) {
		sweep->from = sweep->at;
		sweep->got = tdt__peek(sweep->code, sweep->at,
				       sweep->end - sweep->at < CHUNK ? sweep->end - sweep->at :
									CHUNK);
	}
	if (size > sweep->got - (sweep->at - sweep->from))
		size = sweep->got - (sweep->at - sweep->from);
	memcpy(code, sweep->code + (sweep->at - sweep->from), size);
	return size != 0 && tdt__instruction_read(code, sweep->at, &sweep->instruction) &&
	       sweep->instruction.length <= size;
}

static void add_jump(struct tdt__jumps *jumps, uintptr_t to)
{
	if (tdt__is_loaded(to))
		to = tdt__code_through_plt(to);
	for (unsigned i = 0; i < jumps->n; i++)
		if (jumps->to[i] == to)
			return;
	if (jumps->n == TDT__JUMPS_MAX)
		jumps->all = false;
	else
		jumps->to[jumps->n++] = to;
}

void tdt__code_jumps(uintptr_t start, uintptr_t end, struct tdt__jumps *jumps)
{
	struct sweep sweep = { .at = start, .end = end };
	bool added = false;

	*jumps = (struct tdt__jumps){ .all = true };
	for (; sweep_read(&sweep); sweep.at += sweep.instruction.length) {
		const struct tdt__instruction *instruction = &sweep.instruction;
		uintptr_t to = (uintptr_t)instruction->value;

		if (instruction->effect == TDT__EFFECT_POINTER && !added)
			jumps->all = false;
		if ((instruction->effect == TDT__EFFECT_JUMPS ||
		     instruction->effect == TDT__EFFECT_MAY_JUMP) &&
		    (to < start || to >= end))
			add_jump(jumps, to);
		added = instruction->adds;
	}
	if (sweep.at < end)
		jumps->all = false;
}

/*
 * The depth of the stack at each place in the code: how far the stack pointer is below its value at
 * the function's entry.  The sweep reads the code in the order of its addresses.  Control does not
 * go from a jump to the code behind it.  So the depth of that code is the depth at an earlier
 * instruction that jumps to it; if there is none, it is the depth of the function once it has made
 * its frame.
 */
#define NOTED 128
#define UNKNOWN_DEPTH INTPTR_MIN

struct depths {
	struct note {
		uintptr_t from; /* in `seen`: the depth holds from this address on; in `wanted`: an
				   instruction jumps to this address with this depth */
		intptr_t depth;
	} seen[NOTED], wanted[NOTED];
	unsigned n_seen, n_wanted;
	intptr_t depth; /* at the present instruction */
	intptr_t fp;	/* the depth of the place that the frame pointer points to; UNKNOWN_DEPTH:
			   there    is no frame pointer yet */
	intptr_t body;	/* the depth once the frame is made; UNKNOWN_DEPTH: it is not made yet */
	bool variable;  /* the depth can't be known */
};

/*
 * Note the present depth, from the address `from` on.  If there is no room, the older half of the
 * notes is dropped; then a loop that began that far back is not noticed.
 */
static void see(struct depths *depths, uintptr_t from)
{
	if (depths->n_seen == NOTED) {
		depths->n_seen = NOTED / 2;
		memmove(depths->seen, depths->seen + NOTED / 2, sizeof depths->seen / 2);
	}
	depths->seen[depths->n_seen++] = (struct note){ from, depths->depth };
}

static intptr_t seen_at(const struct depths *depths, uintptr_t address)
{
	for (unsigned i = depths->n_seen; i > 0; i--)
		if (depths->seen[i - 1].from <= address)
			return depths->seen[i - 1].depth;
	return UNKNOWN_DEPTH;
}

static intptr_t wanted_at(const struct depths *depths, uintptr_t address)
{
	for (unsigned i = depths->n_wanted; i > 0; i--)
		if (depths->wanted[i - 1].from == address)
			return depths->wanted[i - 1].depth;
	return UNKNOWN_DEPTH;
}

/*
 * Note that an instruction at `at` jumps to `to` with the present depth.  If there is no room, the
 * notes for addresses up to `at` are dropped.
 */
static void want(struct depths *depths, uintptr_t at, uintptr_t to)
{
	unsigned n = 0;

	if (wanted_at(depths, to) == depths->depth)
		return;
	if (depths->n_wanted == NOTED) {
		for (unsigned i = 0; i < NOTED; i++)
			if (depths->wanted[i].from > at)
				depths->wanted[n++] = depths->wanted[i];
		depths->n_wanted = n;
	}
	if (depths->n_wanted == NOTED)
		depths->variable = true;
	else
		depths->wanted[depths->n_wanted++] = (struct note){ to, depths->depth };
}

/*
 * Go over a jump.  If it leads backward to a place where the depth was another, it closes a loop
 * that allocates stack.
 */
static void jump(struct depths *depths, uintptr_t from, uintptr_t to)
{
	if (depths->fp != UNKNOWN_DEPTH && depths->body == UNKNOWN_DEPTH)
		depths->body = depths->depth;
	if (depths->depth == UNKNOWN_DEPTH)
		return;
	if (to <= from) {
		intptr_t then = seen_at(depths, to);

		if (then != UNKNOWN_DEPTH && then != depths->depth)
			depths->variable = true;
	} else {
		want(depths, from, to);
	}
}

/* Go over an instruction.  Returns whether control can go on to the next one. */
static bool go_over(struct depths *depths, uintptr_t at, const struct tdt__instruction *instruction)
{
	switch (instruction->effect) {
	case TDT__EFFECT_NONE:
		return true;
	case TDT__EFFECT_ADDS:
		if (depths->depth != UNKNOWN_DEPTH)
			depths->depth -= instruction->value;
		break;
	case TDT__EFFECT_FROM_FP:
		depths->depth =
		    depths->fp != UNKNOWN_DEPTH ? depths->fp - instruction->value : UNKNOWN_DEPTH;
		break;
	case TDT__EFFECT_TO_FP:
		if (depths->depth == UNKNOWN_DEPTH ||
		    (depths->fp != UNKNOWN_DEPTH &&
		     depths->fp != depths->depth - instruction->value))
			depths->variable = true; /* the function has two kinds of frames */
		else
			depths->fp = depths->depth - instruction->value;
		return true;
	case TDT__EFFECT_SETS:
		depths->depth = UNKNOWN_DEPTH;
		break;
	case TDT__EFFECT_MOVES:
		/* Before there is a frame pointer, the size of the move does not matter. */
		if (depths->fp != UNKNOWN_DEPTH)
			depths->variable = true;
		return true;
	case TDT__EFFECT_JUMPS:
		jump(depths, at, (uintptr_t)instruction->value);
		return false;
	case TDT__EFFECT_MAY_JUMP:
		jump(depths, at, (uintptr_t)instruction->value);
		return true;
	case TDT__EFFECT_LEAVES:
	case TDT__EFFECT_POINTER:
	case TDT__EFFECT_TABLE:
		return false;
	}
	see(depths, at + instruction->length);
	return true;
}

intptr_t tdt__code_frame_size(uintptr_t start, uintptr_t end, uintptr_t pc)
{
	struct sweep sweep = { .at = start, .end = end };
	struct depths depths = { .fp = UNKNOWN_DEPTH, .body = UNKNOWN_DEPTH };
	intptr_t there = UNKNOWN_DEPTH;

	see(&depths, start);
	while (!depths.variable && sweep_read(&sweep)) {
		intptr_t wanted = wanted_at(&depths, sweep.at);

		if (wanted != UNKNOWN_DEPTH && wanted != depths.depth) {
			depths.depth = wanted;
			see(&depths, sweep.at);
		}
		if (sweep.at == pc)
			there = depths.depth != UNKNOWN_DEPTH && depths.fp != UNKNOWN_DEPTH
				    ? depths.depth - depths.fp
				    : -1;
		if (!go_over(&depths, sweep.at, &sweep.instruction)) {
			depths.depth = depths.body != UNKNOWN_DEPTH ? depths.body : depths.depth;
			see(&depths, sweep.at + sweep.instruction.length);
		}
		sweep.at += sweep.instruction.length;
	}
	/* A return address may be the function's end, behind a call that never returns. */
	if (pc == end && there == UNKNOWN_DEPTH && depths.depth != UNKNOWN_DEPTH &&
	    depths.fp != UNKNOWN_DEPTH)
		there = depths.depth - depths.fp;
	return depths.variable || sweep.at < end || there < 0 ? -1 : there;
}
