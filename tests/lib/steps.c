// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * See steps.h.  The child is a copy of this process, so code is where it is here, and is read here.
 */

#include <config.h>

#include "lib/steps.h"

#include <stdio.h>

#include "lib/sanitized.h"

#if defined(__x86_64__) && TDT_WALK_RULES && !ASAN && !TSAN

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/stack_pieces.h"
#include "host/thread.h"
#include "lib/must.h"
#include "unwind/registers.h"

#define DEPTH 4096
#define REFUSED 77
#define STACK ((uintptr_t)1 << 20)

/* --- The child ------------------------------------------------------------------------ */

static struct {
	uintptr_t top; /* where the frame of run() begins */
} *shared;

/* As the traced future's own poll: it calls by a pointer, and keeps a frame pointer. */
static __attribute__((noinline)) void run(void (*function)(void))
{
	shared->top = TDT__OWN_TOP();
	__asm__ volatile("int3" ::: "memory");
	function();
	__asm__ volatile("int3" ::: "memory");
}

static pid_t child;

static size_t read_child(void *to, uintptr_t address, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)address, size };
	ssize_t got = process_vm_readv(child, &here, 1, &there, 1, 0);

	return got < 0 ? 0 : (size_t)got;
}

static bool step_on(int how, struct user_regs_struct *at)
{
	int status;

	MUST(ptrace(how, child, NULL, NULL) == 0);
	MUST(waitpid(child, &status, 0) == child);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		return false;
	MUST(ptrace(PTRACE_GETREGS, child, NULL, at) == 0);
	return true;
}

static bool start(void (*function)(void))
{
	int status;

	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(REFUSED);
		raise(SIGSTOP);
		run(function);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0) == child);
	return WIFSTOPPED(status);
}

static void nothing(void)
{
}

static void end(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

const char *steps_unknown(void)
{
	bool started;

	if (in_valgrind())
		return "valgrind executes other instructions";
	started = start(nothing);
	if (started)
		end();
	return started ? NULL : "ptrace is refused here";
}

/* --- The truth --------------------------------------------------------------------------- */

static struct {
	uintptr_t pc, slot; /* a return address, and where it lies */
} calls[DEPTH];
static unsigned depth;

/* What the instruction did that was at `before`, and has led to `at`. */
static void note(const struct user_regs_struct *before, const struct user_regs_struct *at)
{
	uintptr_t pushed = 0;

	while (depth > 0 && calls[depth - 1].slot < at->rsp)
		depth--;
	if (at->rsp != before->rsp - 8 || read_child(&pushed, at->rsp, 8) != 8)
		return;
	if (pushed > before->rip && pushed <= before->rip + 8 && depth < DEPTH) {
		calls[depth].pc = pushed;
		calls[depth++].slot = at->rsp;
	}
}

/* --- What is walked ------------------------------------------------------------------------- */

static void note_registers(struct tdt__pieces *pieces, const struct user_regs_struct *at)
{
	const uintptr_t registers[] = { at->rax, at->rdx, at->rcx, at->rbx, at->rsi, at->rdi,
					at->rbp, at->rsp, at->r8,  at->r9,  at->r10, at->r11,
					at->r12, at->r13, at->r14, at->r15 };

	memcpy(pieces->registers, registers, sizeof registers);
	pieces->has_registers = true;
}

static struct tdt__capture *walk(const struct user_regs_struct *at, uintptr_t poll, bool running)
{
	static unsigned char bytes[2 << 20];
	struct tdt__thread thread = { .stack_low = shared->top - STACK,
				      .stack_high = shared->top + 8 };
	struct tdt__registers registers = { at->rip, at->rsp, running ? at->rbp : TDT__NO_FP };
	struct tdt__capture *capture = tdt__capture_new(64, TDT_MAX_FRAMES);
	struct tdt__pieces pieces;

	MUST(capture != NULL);
	MUST(tdt__pieces_plan(&pieces, registers, shared->top, &thread, NULL) == 0);
	if (running)
		note_registers(&pieces, at);
	else
		pieces.piece[0].poll = poll;
	MUST(tdt__pieces_read(&pieces, bytes, read_child) == 0);
	MUST(tdt__pieces_capture(&pieces, capture) == 0);
	return capture;
}

static void print_address(uintptr_t pc, bool marked)
{
	Dl_info info = { 0 };

	dladdr((void *)pc, &info);
	if (info.dli_sname != NULL)
		printf(" %s%s+%#lx", marked ? "~" : "", info.dli_sname,
		       (long)(pc - (uintptr_t)info.dli_saddr));
	else
		printf(" %s%s:%#lx", marked ? "~" : "",
		       info.dli_fname != NULL ? strrchr(info.dli_fname, '/') : "?",
		       (long)(pc - (uintptr_t)info.dli_fbase));
}

static void print_walk(const char *name, const char *what, const struct tdt__capture *capture,
		       uintptr_t pc)
{
	printf("# %s, %s:", name, what);
	for (uint32_t i = 0; i < capture->stacks.n; i++)
		print_address(capture->stacks.frames[i].frame.pc,
			      capture->stacks.frames[i].frame.guessed);
	if (capture->stacks.n != 0)
		printf(" %d;", (int)(capture->stacks.frames[capture->stacks.n - 1].parent -
				     TDT__PARENT_TOP));
	print_address(pc, false);
	for (unsigned i = depth; i-- > 1;)
		print_address(calls[i].pc, false);
	printf("\n");
}

/* The frames that are right, from the innermost on; the outermost call is run()'s. */
static uint32_t right_frames(const struct tdt__capture *capture, uintptr_t pc)
{
	uint32_t i = 0;

	for (; i < capture->stacks.n && i < depth; i++)
		if (capture->stacks.frames[i].frame.pc != (i == 0 ? pc + 1 : calls[depth - i].pc))
			break;
	return i;
}

static void compare(struct steps_seen *seen, const struct tdt__capture *capture, uintptr_t pc,
		    const char *name, const char *kind, bool all)
{
	uint32_t right = right_frames(capture, pc), marked = 0;
	bool whole = right == depth && capture->stacks.n == depth;
	const char *what = NULL;

	while (marked < capture->stacks.n && !capture->stacks.frames[marked].frame.guessed)
		marked++;
	seen->steps++;
	if (whole && capture->stacks.frames[capture->stacks.n - 1].parent == TDT__PARENT_TOP) {
		if (marked == capture->stacks.n)
			seen->right++;
		else
			seen->marked++;
	} else if (marked < right) {
		seen->astray++;
		what = "astray";
	} else if (right == capture->stacks.n &&
		   (right == 0 ||
		    capture->stacks.frames[capture->stacks.n - 1].parent != TDT__PARENT_TOP)) {
		seen->cut++;
		what = "cut";
	} else {
		seen->wrong++;
		what = "WRONG";
	}
	if (what != NULL && name != NULL && (all || *what == 'W')) {
		printf("# %s", kind);
		print_walk(name, what, capture, pc);
	}
}

static void look(struct steps_of *seen, const struct user_regs_struct *at, void (*function)(void),
		 const char *name, bool all)
{
	struct tdt__capture *capture = walk(at, 0, true);

	compare(&seen->running, capture, at->rip, name, "running ", all);
	tdt__capture_unref(capture);
	capture = walk(at, (uintptr_t)function, false);
	compare(&seen->blocked, capture, at->rip, name, "blocked ", all);
	tdt__capture_unref(capture);
}

struct steps_of steps_follow(void (*function)(void), long most, const char *name, bool all)
{
	struct steps_of seen = { 0 };
	struct user_regs_struct before, at;

	if (shared == NULL)
		shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared != MAP_FAILED);
	MUST(start(function));
	MUST(step_on(PTRACE_CONT, &at));
	depth = 0;
	for (long i = 0; i < most; i++) {
		before = at;
		if (!step_on(PTRACE_SINGLESTEP, &at) || *(const uint8_t *)at.rip == 0xcc)
			break;
		note(&before, &at);
		if (depth != 0)
			look(&seen, &at, function, name, all);
	}
	end();
	return seen;
}

#else

#include "unwind/walk.h"

const char *steps_unknown(void)
{
	return ASAN || TSAN ? "a sanitizer's code would be stepped, too"
			    : "only walks by rules are looked at";
}

struct steps_of steps_follow(void (*function)(void), long most, const char *name, bool all)
{
	(void)function;
	(void)most;
	(void)name;
	(void)all;
	return (struct steps_of){ 0 };
}

#endif

static void show(const char *name, const char *kind, const struct steps_seen *seen)
{
	printf("# %s, %s: %ld steps: %ld right, %ld right and marked, %ld cut, %ld wrong and "
	       "marked, %ld wrong\n",
	       name, kind, seen->steps, seen->right, seen->marked, seen->cut, seen->astray,
	       seen->wrong);
}

void steps_show(const char *name, const struct steps_of *seen)
{
	show(name, "running", &seen->running);
	show(name, "blocked", &seen->blocked);
	fflush(stdout);
}
