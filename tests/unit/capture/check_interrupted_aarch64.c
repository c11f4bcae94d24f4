// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/walk_copy, capture/follow, capture/stack_copy.  A poll that is interrupted at any
 * instruction of a function on aarch64 has all its callers.  The functions have a breakpoint at
 * each instruction, whose signal takes the place of the library's.
 */

#include <config.h>

#include "capture/capture.h"
#include "capture/stack_pieces.h"
#include "host/thread.h"
#include "lib/test.h"
#include "unwind/interrupted.h"

#define FUNCTION(name, code)                                                                       \
	extern const char name##_end[] __attribute__((visibility("hidden")));                      \
	void name(void);                                                                           \
	__asm__(".pushsection .text\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n"     \
		code ".cfi_endproc\n" #name "_end:\n.size " #name ", . - " #name "\n.popsection\n");

#define B "brk #0\n"
#define RECORD                                                                                     \
	"stp x29, x30, [sp, #-32]!\n.cfi_def_cfa_offset 32\n.cfi_offset 29, -32\n"                 \
	".cfi_offset 30, -24\n"
#define UNDO "ldp x29, x30, [sp], #32\n.cfi_restore 29\n.cfi_restore 30\n.cfi_def_cfa_offset 0\n"

FUNCTION(keeps_all, B "mov x9, #1\n" B "ret\n")
FUNCTION(takes_room, B "sub sp, sp, #64\n.cfi_def_cfa_offset 64\n" B
	 "add sp, sp, #64\n.cfi_def_cfa_offset 0\n" B "ret\n")
FUNCTION(has_a_record, B RECORD B "mov x29, sp\n" B "bl keeps_all\n" B UNDO B "ret\n")
FUNCTION(by_frame_pointer, B RECORD B "mov x29, sp\n.cfi_def_cfa_register 29\n" B
	 "mov x1, #2\n" B "sub sp, sp, x1, lsl #4\n" B "bl has_a_record\n" B
	 "mov sp, x29\n.cfi_def_cfa_register 31\n" B UNDO B "ret\n")
FUNCTION(has_no_record, B "str x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n.cfi_offset 30, -16\n" B
	 "bl has_a_record\n" B "ldr x30, [sp], #16\n.cfi_restore 30\n.cfi_def_cfa_offset 0\n" B
	 "ret\n")
/* paciasp and autiasp: the return address is signed in between. */
FUNCTION(signs, B "hint #25\n.cfi_negate_ra_state\n" B RECORD B "bl has_no_record\n" B UNDO B
	 "hint #29\n.cfi_negate_ra_state\n" B "ret\n")
/* No rule has its CFA in x19: it is followed by all its registers. */
FUNCTION(by_x19, B RECORD B "str x19, [sp, #16]\n.cfi_offset 19, -16\n" B
	 "mov x19, sp\n.cfi_def_cfa_register 19\n" B "bl signs\n" B
	 ".cfi_def_cfa_register 31\nldr x19, [sp, #16]\n.cfi_restore 19\n" B UNDO B "ret\n")

static const struct {
	void (*call)(void);
	const char *end;
} functions[] = {
	{ keeps_all, keeps_all_end },	  { takes_room, takes_room_end },
	{ has_a_record, has_a_record_end },  { by_frame_pointer, by_frame_pointer_end },
	{ has_no_record, has_no_record_end }, { signs, signs_end },
	{ by_x19, by_x19_end },
};
#define N (sizeof functions / sizeof functions[0])

static uintptr_t top;
static void (*chosen)(void);
static unsigned stops, wrong;

static size_t copy_stack(void *to, uintptr_t from, size_t size)
{
	memcpy(to, (const void *)from, size);
	return size;
}

/* The functions that call each other from the interrupted one on; 0 is at their end. */
static size_t is_in(uintptr_t pc)
{
	for (size_t i = 0; i < N; i++)
		if (pc > (uintptr_t)functions[i].call && pc <= (uintptr_t)functions[i].end)
			return i + 1;
	return 0;
}

/*
 * Of each function the next one out is a function that calls it, up to the chosen one; then comes
 * run(), which is the top.
 */
static bool is_right(const struct tdt__capture *capture)
{
	const struct tdt__recorded *frames = capture->stacks.frames;
	uint32_t n = capture->stacks.n;

	if (n == 0 || frames[n - 1].parent != TDT__PARENT_TOP)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		size_t at = is_in(frames[i].frame.pc);

		if (at == 0 || frames[i].frame.guessed ||
		    (i + 1 == n) != (functions[at - 1].call == chosen) ||
		    (i > 0 && at <= is_in(frames[i - 1].frame.pc)))
			return false;
	}
	return true;
}

static void stop(int signal, siginfo_t *info, void *context)
{
	static unsigned char bytes[1 << 20];
	ucontext_t *at = context;
	struct tdt__capture *capture = tdt__capture_new(64, TDT_MAX_FRAMES);
	struct tdt__pieces pieces;

	(void)signal;
	(void)info;
	MUST(capture != NULL);
	MUST(tdt__pieces_plan(&pieces, tdt__interrupted(at), top, NULL, NULL) == 0);
	tdt__interrupted_all(pieces.registers, at);
	pieces.has_registers = true;
	MUST(tdt__pieces_read(&pieces, bytes, copy_stack) == 0);
	tdt__pieces_capture(&pieces, capture);
	stops++;
	wrong += !is_right(capture);
	tdt__capture_unref(capture);
	at->uc_mcontext.pc += 4;
}

static __attribute__((noinline)) void run(void)
{
	top = TDT__OWN_TOP();
	chosen();
	__asm__ volatile("");
}

CASE(interrupted)

TEST(a_poll_that_is_interrupted_at_any_instruction_has_all_its_callers, .to = N)
{
	struct sigaction action = { .sa_sigaction = stop, .sa_flags = SA_SIGINFO };

	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
	chosen = functions[_i].call;
	run();
	ck_assert_uint_ge(stops, 2);
	ck_assert_uint_eq(wrong, 0);
}
