// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Steps through the polls of a generated program (run.c), instruction by instruction, and compares
 * the stacks of the polls that go on with what calls and returns there were:
 *
 *	step PROGRAM SEED
 *
 * The thread that polls is traced (ptrace(2)).  Its shadow stack has the return address of every
 * call that has not returned.  At some instructions, chosen by SEED, most of them where frames are
 * made and left, another thread of the program requests a backtrace.  To the library the stepped
 * thread is blocked without a system call, as by a page fault, since it stands still; every other
 * time it is made to run there without getting on.  The answer must be the shadow stack, up to the
 * library's own poll.
 *
 * Prints `stepped REQUESTS FRAMES`, `class NAME` for each answer that is wrong and says so, and
 * `mismatch...` for the others.  x86-64 alone.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/must.h"
#include "step.h"

enum { SHADOW_MAX = 4096, REQUESTS_MAX = 300, MISMATCHES_MAX = 3 };

struct place {
	char name[64];
	uint64_t start, end, offset;
};

static struct place places[256];
static int n_places;
static uint64_t shadow[SHADOW_MAX];
static int depth;
static int requests, answers, frames, mismatches;
static pid_t process, thread;
static const char *way; /* "running" or "blocked": what the thread is to the library */
static int to, from;
static bool late; /* an answer is due */

/* --- The process -------------------------------------------------------------- */

/* What is mapped where, by the last parts of the files' names. */
static void read_places(void)
{
	char path[64], line[4096], file[4096];
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
	maps = fopen(path, "r");
	MUST(maps != NULL);
	for (n_places = 0; fgets(line, sizeof line, maps) != NULL && n_places < 256;) {
		struct place *place = &places[n_places];
		const char *slash;

		file[0] = '\0';
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4000s", &place->start, &place->end,
			   &place->offset, file) < 3)
			continue;
		slash = strrchr(file, '/');
		snprintf(place->name, sizeof place->name, "%.60s",
			 slash != NULL ? slash + 1 : file);
		n_places++;
	}
	fclose(maps);
}

static const struct place *place_of(uint64_t pc)
{
	static const struct place nowhere = { "nowhere", 0, 0, 0 };

	for (int i = 0; i < n_places; i++)
		if (pc >= places[i].start && pc < places[i].end)
			return &places[i];
	return &nowhere;
}

static bool lies_in(uint64_t pc, const char *name)
{
	return strncmp(place_of(pc)->name, name, strlen(name)) == 0;
}

static void show(const char *who, uint64_t pc)
{
	const struct place *place = place_of(pc);

	printf("  %s %s+%#lx\n", who, place->name, pc - place->start + place->offset);
}

static void start(char *program)
{
	int there[2], back[2];

	MUST(pipe(there) == 0 && pipe(back) == 0);
	process = fork();
	MUST(process >= 0);
	if (process == 0) {
		/* Out of the way of the numbers that are wanted. */
		int in = fcntl(there[0], F_DUPFD, 20), out = fcntl(back[1], F_DUPFD, 20);

		for (int fd = 3; fd < 20; fd++)
			close(fd);
		dup2(in, STEP_REQUESTS);
		dup2(out, STEP_ANSWERS);
		execl(program, program, "step", (char *)NULL);
		_exit(127);
	}
	close(there[0]);
	close(back[1]);
	to = there[1];
	from = back[0];
}

/* --- The shadow stack ------------------------------------------------------------- */

/* Whether the instruction with these bytes is a call; and whether it is a return. */
static bool is_call(const uint8_t *code)
{
	while (*code == 0x2e || *code == 0x3e || *code == 0xf2 || *code == 0x66 || *code == 0x67 ||
	       (*code & 0xf0) == 0x40)
		code++;
	return *code == 0xe8 || (*code == 0xff && (code[1] >> 3 & 7) == 2);
}

static bool is_return(const uint8_t *code)
{
	while (*code == 0xf2 || *code == 0xf3)
		code++;
	return *code == 0xc3 || *code == 0xc2;
}

/* What a function begins and ends with: there frames are not whole. */
static bool is_edge(const uint8_t *code)
{
	if (is_return(code) || is_call(code))
		return true;
	if ((*code & 0xf0) == 0x40)
		code++;
	return (*code & 0xf0) == 0x50 || *code == 0xc9 || (*code == 0x89 && code[1] == 0xe5) ||
	       ((*code == 0x83 || *code == 0x81) && (code[1] == 0xec || code[1] == 0xc4));
}

static void stepped(const uint8_t *code, uint64_t pc, uint64_t top)
{
	if (is_call(code)) {
		MUST(depth < SHADOW_MAX);
		shadow[depth++] = top;
	} else if (is_return(code)) {
		while (depth > 0 && shadow[--depth] != pc)
			;
	}
}

/* --- Comparing --------------------------------------------------------------------- */

/* What the library may leave out: its own poll, and what called that. */
static bool is_outside(const uint64_t *rest, int n)
{
	for (int i = 0; i < n; i++)
		if (!lies_in(rest[i], "libtdt.so") && !lies_in(rest[i], "librun.so"))
			return false;
	return n > 0 && lies_in(rest[n - 1], "libtdt.so");
}

/* How many of the answer's frames are the shadow's. */
static uint32_t right(const struct step_answer *answer, uint64_t pc)
{
	uint32_t i;

	for (i = 0; i < answer->n && i <= (uint32_t)depth; i++)
		if (answer->pcs[i] != (i == 0 ? pc + 1 : shadow[(uint32_t)depth - i]))
			break;
	return i;
}

static void compare(const struct step_answer *answer, uint64_t pc)
{
	uint32_t n = right(answer, pc);

	answers++;
	frames += (int)n;
	if (n == answer->n && n > 0 && answer->cut == 0 && is_outside(shadow, depth - (int)n + 1)) {
		if (answer->guessed > 0)
			printf("class %s thread: right, and marked as a guess\n", way);
		return;
	}
	if (answer->guessed > 0 || answer->cut != 0) {
		printf("class %s thread: wrong from some frame on, and marked %s\n", way,
		       answer->cut != 0 ? "as cut" : "as a guess");
		return;
	}
	if (++mismatches > MISMATCHES_MAX)
		return;
	printf("mismatch in a poll of a %s thread, from frame %u on (state %d, cut %d)\n", way, n,
	       answer->state, answer->cut);
	show("truth", pc);
	for (int i = depth; i > 0; i--)
		show("truth", shadow[i - 1]);
	for (uint32_t i = 0; i < answer->n; i++)
		show("ours ", answer->pcs[i]);
}

/* The answer, if it comes within so many milliseconds. */
static bool get_answer(struct step_answer *answer, int ms)
{
	struct pollfd ready = { .fd = from, .events = POLLIN };

	if (poll(&ready, 1, ms) == 0)
		return false;
	MUST(read(from, answer, sizeof *answer) == sizeof *answer);
	return true;
}

/*
 * Have the thread run at `pc` without getting on: it jumps to where it is.  Signals come to it
 * meanwhile.  Not in code that other threads run, too.
 */
static bool get_answer_running(struct step_answer *answer, uint64_t pc)
{
	long word = ptrace(PTRACE_PEEKTEXT, thread, pc, NULL);
	struct user_regs_struct at;
	bool got = false;
	int status;

	MUST(ptrace(PTRACE_POKETEXT, thread, pc, (void *)((word & ~0xffffL) | 0xfeeb)) == 0);
	MUST(ptrace(PTRACE_CONT, thread, NULL, NULL) == 0);
	for (int ms = 0; ms < 1000 && !got; ms++) {
		got = get_answer(answer, 1);
		if (waitpid(thread, &status, __WALL | WNOHANG) == thread)
			MUST(ptrace(PTRACE_CONT, thread, NULL,
				    (void *)(intptr_t)WSTOPSIG(status)) == 0);
	}
	/* It may still be on its way out of the handler of such a signal. */
	syscall(SYS_tgkill, process, thread, SIGSTOP);
	MUST(waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status));
	while (WSTOPSIG(status) != SIGSTOP) {
		MUST(ptrace(PTRACE_CONT, thread, NULL, (void *)(intptr_t)WSTOPSIG(status)) == 0);
		MUST(waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status));
	}
	while (ptrace(PTRACE_GETREGS, thread, NULL, &at) == 0 && at.rip != pc) {
		MUST(ptrace(PTRACE_SINGLESTEP, thread, NULL, NULL) == 0);
		MUST(waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status));
	}
	MUST(ptrace(PTRACE_POKETEXT, thread, pc, (void *)word) == 0);
	return got;
}

/* The stepped thread may hold a lock that the other one wants: then the answer comes too late. */
static void request(uint64_t pc)
{
	struct step_answer answer;

	requests++;
	way = requests % 2 == 0 && lies_in(pc, "program") ? "running" : "blocked";
	MUST(write(to, "?", 1) == 1);
	late = !(*way == 'r' ? get_answer_running(&answer, pc) : get_answer(&answer, 1000));
	if (late)
		printf("class %s thread: no answer in time\n", way);
	else if (answer.error != 0)
		printf("class %s thread: no answer, %s\n", way, strerror(-answer.error));
	else
		compare(&answer, pc);
}

/* Whether the future of the program is being polled. */
static bool in_poll(uint64_t pc)
{
	bool in = lies_in(pc, "program");

	for (int i = 0; i < depth && !in; i++)
		in = lies_in(shadow[i], "program");
	return in;
}

static bool is_due(unsigned *seed, bool edge)
{
	struct step_answer answer;

	*seed = *seed * 1664525 + 1013904223;
	if ((*seed >> 16) % (edge ? 15 : 150) != 0 || requests == REQUESTS_MAX)
		return false;
	late = late && !get_answer(&answer, 0);
	return !late;
}

#define SYSCALL 2 /* the length of the instruction; a call that a signal ends is behind it */

/*
 * Step over the instruction before which the thread stands, and note where it is then.  If a signal
 * comes, of a request that was late, its handler runs to its end first.  False: the thread is gone.
 */
static bool step_on(struct user_regs_struct *at)
{
	const struct user_regs_struct before = *at;
	bool in_handler = false;
	int signal = 0, status;

	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, thread, NULL, (void *)(intptr_t)signal) != 0 ||
		    waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status) ||
		    ptrace(PTRACE_GETREGS, thread, NULL, at) != 0)
			return false;
		signal = WSTOPSIG(status) != SIGTRAP ? WSTOPSIG(status) : 0;
		if (signal != 0)
			in_handler = true;
		else if (in_handler && at->rsp == before.rsp && at->rip - before.rip <= SYSCALL)
			in_handler = false;
		if (signal == 0 && !in_handler && at->rip != before.rip)
			return true;
	}
}

int main(int argc, char **argv)
{
	unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 0;
	struct user_regs_struct at;
	int status;

	if (argc != 3)
		return 2;
	start(argv[1]);
	/* The thread stops itself, when it is about to poll. */
	do
		thread = waitpid(-1, &status, __WALL);
	while (thread > 0 && !WIFSTOPPED(status) && thread != process);
	MUST(thread > 0 && WIFSTOPPED(status));
	read_places();
	MUST(ptrace(PTRACE_GETREGS, thread, NULL, &at) == 0);
	for (bool edge = false;;) {
		uint8_t code[sizeof(long)];
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKTEXT, thread, at.rip, NULL);
		MUST(errno == 0);
		memcpy(code, &word, sizeof word);
		edge = edge || is_edge(code);
		if (is_due(&seed, edge) && in_poll(at.rip))
			request(at.rip);
		edge = is_call(code);
		if (!step_on(&at))
			break;
		stepped(code, at.rip, (uint64_t)ptrace(PTRACE_PEEKDATA, thread, at.rsp, NULL));
	}
	kill(process, SIGKILL);
	printf("stepped %d %d\n", answers, frames);
	return 0;
}
