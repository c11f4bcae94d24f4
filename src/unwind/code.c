// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finding the calls, the jumps and the frames of functions in machine code.  If any part is not
 * understood, there is no answer.
 */

#include "unwind/code.h"

#include <string.h>

#include "host/loaded.h"
#include "host/peek.h"
#include "unwind/instruction.h"

#if defined(__x86_64__)

static int32_t offset_at(const unsigned char *code)
{
	int32_t offset;

	memcpy(&offset, code, sizeof offset);
	return offset;
}

/* The pointer at `address`; 0: it can't be read. */
static uintptr_t pointer_at(uintptr_t address)
{
	uintptr_t pointer;

	return tdt__peek(&pointer, address, sizeof pointer) == sizeof pointer ? pointer : 0;
}

/*
 * The function that a call of `target` leads to.  If `target` is in a procedure linkage table, it
 * is a jump by a pointer there.  (endbr64 and bnd may come before the jmp.)
 */
static uintptr_t through_plt(uintptr_t target)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned char code[11];
	size_t at = 0;

	if (tdt__peek(code, target, sizeof code) != sizeof code)
		return target;
	if (memcmp(code, endbr64, sizeof endbr64) == 0)
		at = sizeof endbr64;
	at += code[at] == 0xf2;
	if (at + 6 > sizeof code || code[at] != 0xff || code[at + 1] != 0x25)
		return target;
	return pointer_at(target + at + 6 + (uintptr_t)(intptr_t)offset_at(code + at + 2));
}

/*
 * Whether an instruction that ends at `end` is a call by a register, or by memory that a register
 * points to.
 */
static bool calls_by_register(const unsigned char *end)
{
	if (end[-2] == 0xff &&
	    ((end[-1] & 0xf8) == 0xd0 || ((end[-1] & 0xf8) == 0x10 && (end[-1] & 6) != 4)))
		return true; /* call *%rax; call *(%rax) */
	if (end[-3] == 0xff && (((end[-2] & 0xf8) == 0x50 && end[-2] != 0x54) || end[-2] == 0x14))
		return true; /* call *8(%rax); call *(%rax,%rbx) */
	if (end[-4] == 0xff && end[-3] == 0x54)
		return true; /* call *8(%rsp) */
	if (end[-6] == 0xff && (end[-5] & 0xf8) == 0x90 && end[-5] != 0x94)
		return true; /* call *1000(%rax) */
	/* call *1000(%rsp); call *table(,%rax,8) */
	return end[-7] == 0xff && (end[-6] == 0x94 || end[-6] == 0x14);
}

enum tdt__call tdt__code_call(uintptr_t address, uintptr_t function, uintptr_t *called)
{
	unsigned char code[7], *end = code + sizeof code;
	uintptr_t target;

	*called = 0;
	if (!tdt__is_loaded(address - 1) ||
	    tdt__peek(code, address - sizeof code, sizeof code) != sizeof code)
		return TDT__CALL_NONE;
	if (end[-5] == 0xe8) {
		target = address + (uintptr_t)(intptr_t)offset_at(end - 4);
		*called = tdt__is_loaded(target) ? through_plt(target) : target;
		if (target == function || *called == function)
			return TDT__CALL_DIRECT;
		if (tdt__is_loaded(target))
			return TDT__CALL_ANOTHER;
	}
	/* call *pointer(%rip): code of -fno-plt, or a pointer in a variable */
	if (end[-6] == 0xff && end[-5] == 0x15) {
		target = pointer_at(address + (uintptr_t)(intptr_t)offset_at(end - 4));
		return target == function ? TDT__CALL_DIRECT : TDT__CALL_INDIRECT;
	}
	return calls_by_register(end) ? TDT__CALL_INDIRECT : TDT__CALL_NONE;
}

/* --- A function, instruction by instruction --------------------------------------------- */

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
		to = through_plt(to);
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

/* --- The size of a frame ------------------------------------------------------------------ */

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

#elif defined(__aarch64__)

enum tdt__call tdt__code_call(uintptr_t address, uintptr_t function, uintptr_t *called)
{
	uint32_t code;

	*called = 0;
	if (!tdt__is_loaded(address - 1) || address % 4 != 0 ||
	    tdt__peek(&code, address - 4, sizeof code) != sizeof code)
		return TDT__CALL_NONE;
	if ((code & 0xfffffc1f) == 0xd63f0000) /* blr */
		return TDT__CALL_INDIRECT;
	if ((code & 0xfc000000) != 0x94000000) /* bl */
		return TDT__CALL_NONE;
	/* The offset is a signed number of 26 bits that counts words of 4 bytes. */
	address += (uintptr_t)((intptr_t)((uintptr_t)code << 38) >> 36) - 4;
	*called = address;
	return address == function ? TDT__CALL_DIRECT : TDT__CALL_ANOTHER;
}

void tdt__code_jumps(uintptr_t start, uintptr_t end, struct tdt__jumps *jumps)
{
	(void)start;
	(void)end;
	*jumps = (struct tdt__jumps){ .all = false };
}

intptr_t tdt__code_frame_size(uintptr_t start, uintptr_t end, uintptr_t pc)
{
	(void)start;
	(void)end;
	(void)pc;
	return -1;
}

#else
#error "tdt: this architecture's calls are not known; add them here"
#endif
