// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading the stacks of threads. */

#include "reader/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc_syscall.h"
#include "reader/core.h"
#include "reader/stop.h"

#define RED_ZONE 128 /* bytes below the stack pointer that are in use on x86-64 */

/* What is looked for: the stack of a poll whose own frames begin at `top`. */
struct stack_wanted {
	const struct tdt__target *target;
	const struct tdt__entered *entered;
	uint64_t top;
};

static void set_end_of_frames(struct tdt__stack *stack, const struct stack_wanted *wanted)
{
	stack->from = tdt__entered_at(wanted->entered, stack->cpu.value[TDT__DWARF_SP],
				      wanted->top);
	stack->top = stack->from != NULL ? stack->from->base : wanted->top;
}

/*
 * Copy the stack from its stack pointer up to the end of its frames.  If that is not above, as on
 * the stack of a coroutine that was not reported, copy up to the end of the mapping.
 */
static int copy_stack(const struct stack_wanted *wanted, struct tdt__stack *stack)
{
	const struct tdt__target *target = wanted->target;
	uint64_t sp = stack->cpu.value[TDT__DWARF_SP], top, end;
	const struct tdt__mapping *mapping = tdt__target_mapping(target, sp);

	stack->low = (sp - RED_ZONE) & ~UINT64_C(15);
	if (sp < RED_ZONE)
		return -ENODATA;
	set_end_of_frames(stack, wanted);
	top = end = stack->top;
	if (top <= sp || top - sp > TDT__STACK_READ_MAX) {
		end = sp + TDT__STACK_READ_MAX / 4;
		if (mapping != NULL && mapping->end < end)
			end = mapping->end;
		stack->cut = mapping != NULL && top > sp && top <= mapping->end ? TDT_CUT_LIMIT
										: TDT_CUT_STACK;
	}
	stack->size = (size_t)(end - stack->low);
	stack->copy = malloc(stack->size);
	if (stack->copy == NULL)
		return -ENOMEM;
	if (tdt__target_read(target, stack->low, stack->copy, stack->size))
		return 0;
	free(stack->copy);
	stack->copy = NULL;
	return -ENODATA;
}

/* The id of a thread in its own PID namespace.  0: unknown. */
static uint32_t own_id(const struct tdt__target *target, uint32_t here)
{
	char name[64];

	snprintf(name, sizeof name, "task/%" PRIu32 "/status", here);
	return tdt__target_own_id(target, name);
}

static int visit_core_threads(const struct tdt__core *core, tdt__thread_fn *each, void *arg)
{
	int error = 0;

	for (size_t i = 0; i < core->n_threads && error == 0; i++)
		error = each((uint32_t)core->thread[i].pr_pid, 0, arg);
	return error;
}

int tdt__threads_visit(const struct tdt__target *target, tdt__thread_fn *each, void *arg)
{
	const struct dirent *entry;
	DIR *directory;
	int fd, error = 0;

	if (target->core != NULL)
		return visit_core_threads(target->core, each, arg);
	fd = openat(target->proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* the process has ended */
	directory = fdopendir(fd);
	if (directory == NULL) {
		close(fd);
		return -ENOMEM;
	}
	while (error == 0 && (entry = readdir(directory)) != NULL) {
		uint32_t here = (uint32_t)strtoul(entry->d_name, NULL, 10);
		uint32_t id = here != 0 ? own_id(target, here) : 0;

		if (id != 0)
			error = each(id, here, arg);
	}
	closedir(directory);
	return error;
}

struct sought_thread {
	uint32_t id, here;
};

/* A tdt__thread_fn: ends at the thread that is sought. */
static int is_sought(uint32_t id, uint32_t here, void *arg)
{
	struct sought_thread *sought = arg;

	if (id == sought->id)
		sought->here = here;
	return sought->here != 0;
}

uint32_t tdt__thread_here(const struct tdt__target *target, uint32_t id)
{
	struct sought_thread sought = { .id = id };

	if (own_id(target, id) == id)
		return id;
	tdt__threads_visit(target, is_sought, &sought);
	return sought.here;
}

/* What the kernel says of the thread's system call: "running", or numbers, see proc(5). */
static bool syscall_text(const struct tdt__target *target, uint32_t thread, char text[256])
{
	return tdt__thread_proc_text(target, thread, "syscall", text, 256) > 0;
}

static int copy_blocked(const struct stack_wanted *wanted, uint32_t thread, const char *before,
			struct tdt__stack *stack)
{
	struct tdt__proc_syscall parsed;
	char after[256];
	int error;

	if (!tdt__proc_syscall_parse(before, &parsed) || parsed.sp == 0)
		return -ENODATA;
	stack->call = parsed.call;
	tdt__cpu_set(&stack->cpu, TDT__DWARF_SP, parsed.sp);
	tdt__cpu_set(&stack->cpu, TDT__DWARF_PC, parsed.pc);
	error = copy_stack(wanted, stack);
	if (error != 0)
		return error;
	if (syscall_text(wanted->target, thread, after) && strcmp(before, after) == 0)
		return 0;
	free(stack->copy);
	stack->copy = NULL;
	return -EAGAIN;
}

#define SAMPLE_NS 20000		/* of the thread's own time */
#define SAMPLE_WAIT_MS 100	/* how long to wait for a thread that may be about to block */
#define SAMPLE_STACK 65528u	/* bytes; the most that the kernel takes */
#define SAMPLE_PAGES 32		/* a power of two, with room for one sample */

static int open_sampler(uint32_t thread)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = SAMPLE_NS,
		.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = tdt__cpu_perf_mask(),
		.sample_stack_user = SAMPLE_STACK,
		.exclude_kernel = 1,
		.disabled = 1,
		.wakeup_events = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, (pid_t)thread, -1, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

/*
 * Use a sample: the kind of the registers, the registers, the size of the stack's room, the stack,
 * and how much of it was filled.
 */
static int use_sample(const struct stack_wanted *wanted, const char *sample, size_t size,
		      struct tdt__stack *stack)
{
	size_t n = (size_t)__builtin_popcountll(tdt__cpu_perf_mask());
	size_t head = (n + 2) * sizeof(uint64_t);
	uint64_t word[TDT__DWARF_REGISTERS + 2], filled, sp, top;

	if (size < head)
		return -ENODATA;
	memcpy(word, sample, head);
	if (word[0] != PERF_SAMPLE_REGS_ABI_64 || word[n + 1] == 0 ||
	    word[n + 1] > size - head - sizeof filled)
		return -ENODATA;
	memcpy(&filled, sample + head + word[n + 1], sizeof filled);
	if (filled == 0 || filled > word[n + 1])
		return -ENODATA;
	tdt__cpu_of_sample(&stack->cpu, word + 1);
	sp = stack->low = stack->cpu.value[TDT__DWARF_SP];
	set_end_of_frames(stack, wanted);
	top = stack->top;
	if (top <= sp || top - sp > TDT__STACK_READ_MAX)
		stack->cut = TDT_CUT_STACK;
	else if (top - sp > filled)
		stack->cut = TDT_CUT_LIMIT;
	stack->size = stack->cut != TDT_CUT_NOT ? (size_t)filled : (size_t)(top - sp);
	stack->copy = malloc(stack->size);
	if (stack->copy == NULL)
		return -ENOMEM;
	memcpy(stack->copy, sample + head, stack->size);
	return 0;
}

/* Wait for one sample in the ring. */
static int take_sample(const struct stack_wanted *wanted, int sampler,
		       const struct perf_event_mmap_page *page, struct tdt__stack *stack)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_header header;
	struct pollfd wait = { .fd = sampler, .events = POLLIN };
	uint64_t filled;

	if (ioctl(sampler, PERF_EVENT_IOC_REFRESH, 1) != 0)
		return -ENODATA;
	poll(&wait, 1, SAMPLE_WAIT_MS);
	/* Acquire the sample.  Pairs with the kernel, which releases it. */
	filled = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	if (filled < sizeof header)
		return -EAGAIN; /* the thread does not run any more */
	memcpy(&header, (const char *)page + page_size, sizeof header);
	if (header.type != PERF_RECORD_SAMPLE || header.size > filled ||
	    header.size < sizeof header)
		return -ENODATA;
	return use_sample(wanted, (const char *)page + page_size + sizeof header,
			  header.size - sizeof header, stack);
}

static int sample_thread(const struct stack_wanted *wanted, uint32_t thread,
			 struct tdt__stack *stack, struct tdt__sampling *sampling)
{
	size_t size = (SAMPLE_PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE);
	int sampler = open_sampler(thread), error;
	struct perf_event_mmap_page *page;

	if (sampler < 0 && errno == ESRCH)
		return -EAGAIN; /* the thread has ended */
	if (sampler < 0) {
		sampling->refused = errno;
		return -ENODATA;
	}
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, sampler, 0);
	if (page == MAP_FAILED) {
		sampling->refused = errno;
		close(sampler);
		return -ENODATA;
	}
	error = take_sample(wanted, sampler, page, stack);
	munmap(page, size);
	close(sampler);
	return error;
}

static int copy_stopped(const struct stack_wanted *wanted, uint32_t thread,
			struct tdt__stack *stack, struct tdt__sampling *sampling)
{
	struct tdt__stopped stopped;
	int error = tdt__thread_stop(&stopped, thread, &stack->cpu);

	if (error == -ESRCH)
		return -EAGAIN; /* the thread has ended */
	if (error != 0) {
		sampling->refused = -error;
		return -ENODATA;
	}
	error = copy_stack(wanted, stack);
	tdt__thread_resume(&stopped);
	return error;
}

/*
 * The thread whose stack has `top`: its stack pointer is the next one below.  A debugger that is in
 * another PID namespace than the process gives threads other ids than they have themselves.
 */
static const struct elf_prstatus *thread_below(const struct tdt__core *core, uint64_t top)
{
	const struct elf_prstatus *found = NULL;
	uint64_t highest = 0;

	for (size_t i = 0; i < core->n_threads; i++) {
		struct tdt__cpu cpu = { 0 };
		uint64_t sp;

		tdt__cpu_of_core(&cpu, &core->thread[i]);
		sp = cpu.value[TDT__DWARF_SP];
		if (sp <= highest || sp >= top || tdt__core_end(core, sp) < top)
			continue;
		highest = sp;
		found = &core->thread[i];
	}
	return found;
}

static int read_core_thread(const struct stack_wanted *wanted, uint32_t id,
			    struct tdt__stack *stack)
{
	const struct elf_prstatus *status = tdt__core_thread(wanted->target->core, id);

	if (status == NULL)
		status = thread_below(wanted->target->core, wanted->top);
	if (status == NULL)
		return -ENODATA;
	tdt__cpu_of_core(&stack->cpu, status);
	return copy_stack(wanted, stack);
}

int tdt__thread_stack(const struct tdt__target *target, uint32_t id, uint64_t top,
		      const struct tdt__entered *entered, struct tdt__stack *stack,
		      struct tdt__sampling *sampling)
{
	const struct stack_wanted wanted = { target, entered, top };
	char text[256];
	uint32_t thread;

	*stack = (struct tdt__stack){ .call = -1 };
	if (target->core != NULL)
		return read_core_thread(&wanted, id, stack);
	thread = tdt__thread_here(target, id);
	if (thread == 0 || !syscall_text(target, thread, text))
		return -ENODATA;
	if (strncmp(text, "running", 7) == 0)
		return sampling->stops ? copy_stopped(&wanted, thread, stack, sampling)
				       : sample_thread(&wanted, thread, stack, sampling);
	return copy_blocked(&wanted, thread, text, stack);
}

int tdt__outer_stack(const struct tdt__target *target, const struct tdt_stack *from, uint64_t top,
		     const struct tdt__entered *entered, struct tdt__stack *stack)
{
	const struct stack_wanted wanted = { target, entered, top };

	*stack = (struct tdt__stack){ .call = -1 };
	/* A return address: the walk takes the first pc for that of an interrupted frame. */
	tdt__cpu_set(&stack->cpu, TDT__DWARF_PC, from->pc - 1);
	tdt__cpu_set(&stack->cpu, TDT__DWARF_SP, from->sp);
	tdt__cpu_set(&stack->cpu, TDT__DWARF_FP, from->fp);
	return copy_stack(&wanted, stack);
}
