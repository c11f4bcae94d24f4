// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers unwind/code, unwind/instruction.  How the machine code of aarch64 is read: as check_code.c
 * for x86-64.
 */

#include <config.h>

#include "lib/test.h"
#include "unwind/code.h"

/* `name` is the address of `code` in this program, between instructions that do nothing. */
#define NOPS "\n\tnop\n\tnop\n"
#define CODE(name, code)                                                                           \
	extern const unsigned char name[] __attribute__((visibility("hidden")));                   \
	__asm__(".pushsection .text\n" #name ":\n\t" code NOPS ".popsection");

/* For each row: where its code begins, where the label 8 is in it, and where it ends. */
#define SITE(text)                                                                                 \
	"\t.pushsection .data.rel, \"aw\"\n\t.quad 7f, 8f, 9f\n\t.popsection" NOPS "7:\n\t" text   \
	"\n9:" NOPS
#define SITES(name, sites)                                                                         \
	__asm__(".pushsection .data.rel, \"aw\"\n\t.balign 8\n" #name ":\n\t.popsection\n"         \
		".pushsection .text\n" sites ".popsection");                                       \
	extern const uintptr_t name[][3] __attribute__((visibility("hidden")));

CODE(the_function, "ret")
CODE(another_function, "ret")
CODE(plt_plain, "adrp x16, the_pointer\n\tldr x17, [x16, :lo12:the_pointer]\n\t"
		"add x16, x16, :lo12:the_pointer\n\tbr x17")
CODE(plt_marked, "bti c\n\tadrp x16, the_pointer\n\tldr x17, [x16, :lo12:the_pointer]\n\tbr x17")
__asm__(".pushsection .data.rel, \"aw\"\n\t.balign 8\nthe_pointer: .quad the_function\n"
	".popsection");

#define CALLS(CALL)                                                                                \
	CALL(DIRECT, "bl the_function")                                                            \
	CALL(DIRECT, "bl plt_plain")                                                               \
	CALL(DIRECT, "bl plt_marked")                                                              \
	CALL(ANOTHER, "bl another_function")                                                       \
	CALL(INDIRECT, "blr x8")                                                                   \
	CALL(INDIRECT, ".inst 0xd73f0900") /* blraa x8, x0 */                                      \
	CALL(INDIRECT, ".inst 0xd63f091f") /* blraaz x8 */                                         \
	CALL(NONE, "nop")                                                                          \
	CALL(NONE, "b the_function")                                                               \
	CALL(NONE, "br x8")                                                                        \
	CALL(NONE, "ret")

#define CALL_ROW(kind, text) { TDT__CALL_##kind, text },
static const struct {
	enum tdt__call kind;
	const char *text;
} calls[] = { CALLS(CALL_ROW) };
#define CALL_SITE(kind, text) SITE(text "\n8:")
SITES(call_sites, CALLS(CALL_SITE))

CASE(code)

TEST(a_call_is_told_by_the_instruction_before_its_return_address,
     .to = sizeof calls / sizeof calls[0])
{
	uintptr_t called;
	enum tdt__call kind = tdt__code_call(call_sites[_i][1], (uintptr_t)the_function, &called);

	ck_assert_msg(kind == calls[_i].kind, "%s: %d", calls[_i].text, kind);
	if (kind == TDT__CALL_DIRECT)
		ck_assert_uint_eq(called, (uintptr_t)the_function);
	else
		ck_assert_uint_eq(called,
				  kind == TDT__CALL_ANOTHER ? (uintptr_t)another_function : 0);
}

/* Whether all jumps are known; and how many lead out, of which the first to the_function. */
#define JUMPS(JUMP)                                                                                \
	JUMP(true, 0, "ret")                                                                       \
	JUMP(true, 0, "bl another_function\n\t.inst 0xd65f0bff") /* retaa */                       \
	JUMP(true, 1, "b the_function")                                                            \
	JUMP(true, 1, "b plt_plain")                                                               \
	JUMP(true, 1, "b.eq the_function\n\tret")                                                  \
	JUMP(true, 1, "cbz x0, the_function\n\tret")                                               \
	JUMP(true, 1, "tbnz x0, #33, the_function\n\tret")                                         \
	JUMP(true, 2, "b the_function\n\tcbnz w1, another_function")                               \
	JUMP(true, 0, "1: cbz x0, 2f\n\tb 1b\n2:\tret")                                            \
	JUMP(false, 0, "br x3")                                                                    \
	JUMP(false, 0, ".inst 0xd71f0860") /* braa x3, x0 */                                       \
	JUMP(true, 0, "add x1, x2, w1, sxth #2\n\tbr x1") /* by a table */                         \
	JUMP(false, 0, ".inst 0x01234567") /* not an instruction */

#define JUMP_ROW(all, n, text) { all, n, text },
static const struct {
	bool all;
	unsigned n;
	const char *text;
} jumps[] = { JUMPS(JUMP_ROW) };
#define JUMP_SITE(all, n, text) SITE("8:\t" text)
SITES(jump_sites, JUMPS(JUMP_SITE))

TEST(jumps_out_of_a_function_are_found_and_no_others, .to = sizeof jumps / sizeof jumps[0])
{
	struct tdt__jumps found;

	tdt__code_jumps(jump_sites[_i][0], jump_sites[_i][2], &found);
	ck_assert_msg(found.all == jumps[_i].all && found.n == jumps[_i].n, "%s", jumps[_i].text);
	if (found.n != 0)
		ck_assert_uint_eq(found.to[0], (uintptr_t)the_function);
	if (found.n == 2)
		ck_assert_uint_eq(found.to[1], (uintptr_t)another_function);
}

/* How far sp is below x29 there; or -1. */
#define FRAMES(FRAME)                                                                              \
	FRAME(-1, "8: stp x29, x30, [sp, #-32]!\n\tmov x29, sp")                                   \
	FRAME(-1, "stp x29, x30, [sp, #-32]!\n8:\tmov x29, sp")                                    \
	FRAME(0, "stp x29, x30, [sp, #-32]!\n\tmov x29, sp\n8:\tnop")                              \
	FRAME(0x30, "sub sp, sp, #0x40\n\tstp x29, x30, [sp, #0x30]\n\tadd x29, sp, #0x30\n8:"     \
		    "\tnop")                                                                       \
	FRAME(0x5010, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tsub sp, sp, #5, lsl #12\n\t"    \
		      "sub sp, sp, #16\n8:\tnop")                                                  \
	FRAME(16, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tstr x19, [sp, #-16]!\n8: nop")      \
	FRAME(32, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tstp q8, q9, [sp, #-32]!\n8: nop")   \
	FRAME(16, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tstp d8, d9, [sp, #-16]!\n8: nop")   \
	FRAME(16, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tstp w1, w2, [sp, #-16]!\n8: nop")   \
	FRAME(0, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tsub sp, sp, #16\n\tldr x0, [sp], "   \
		 "#16\n8: nop")                                                                    \
	FRAME(8, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tsub sp, sp, #16\n\t"                 \
		 "sub sp, x29, #8\n8: nop")                                                        \
	FRAME(0, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tcmp sp, #16\n\tldr x0, [sp, #8]\n"   \
		 "8:\tnop")                                                                        \
	FRAME(0, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tcbz x0, 1f\n\t"                      \
		 "ldp x29, x30, [sp], #16\n\tret\n1:\n8:\tnop")                                    \
	FRAME(-1, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tsub sp, sp, x0\n8: nop")            \
	FRAME(-1, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tand sp, x0, #-32\n8: nop")          \
	FRAME(-1, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\t.inst 0x043f57ff\n8: nop")          \
	FRAME(-1, "stp x29, x30, [sp, #-16]!\n\tmov x29, sp\n\tmov sp, x9\n8: nop")

#define FRAME_ROW(size, text) { size, text },
static const struct {
	intptr_t size;
	const char *text;
} frames[] = { FRAMES(FRAME_ROW) };
#define FRAME_SITE(size, text) SITE(text "\n\tret")
SITES(frame_sites, FRAMES(FRAME_SITE))

TEST(the_size_of_a_frame_is_told_by_the_instructions_of_the_function_or_not_at_all,
     .to = sizeof frames / sizeof frames[0])
{
	intptr_t size =
	    tdt__code_frame_size(frame_sites[_i][0], frame_sites[_i][2], frame_sites[_i][1]);

	ck_assert_msg(size == frames[_i].size, "%s: %jd", frames[_i].text, (intmax_t)size);
}

TEST(in_the_middle_of_an_instruction_nothing_is_known)
{
	uintptr_t start = frame_sites[2][0], end = frame_sites[2][2];

	ck_assert_int_eq(tdt__code_frame_size(start, end, frame_sites[2][1] + 2), -1);
	ck_assert_int_eq(tdt__code_frame_size(start + 2, end, frame_sites[2][1]), -1);
}
