// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Walking stacks.  libdwfl reads words of the stack through a function of ours, which serves the
 * copy alone, and refuses the words from `limit` on: the frame whose return address lies there is
 * the library's own, and ends the walk.  Frames lie one above the other: a walk that would go down,
 * as damaged or hostile unwind information may make it do, ends too.
 *
 * Of a blocked thread only pc and stack pointer are known.  That is enough for most code.  Where a
 * frame needs the frame pointer, the values that it may have are tried: addresses on the stack with
 * a return address above them.  The first one with which the walk ends where it must is taken, and
 * the frame is marked as a best guess.
 */

#include <config.h>

#include "reader/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

#include "symbolize/modules.h"
#include "tree/stacks.h"

#define MOST_GUESSES 256

/* The thread has no id that matters: there is one. */
#define THE_THREAD 1

/* --- What libdwfl asks for ---------------------------------------------------------------- */

static pid_t next_thread(Dwfl *dwfl, void *walker, void **state)
{
	(void)dwfl;
	if (*state != NULL)
		return 0;
	*state = walker;
	return THE_THREAD;
}

static bool read_stack_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *data)
{
	struct tdt__walker *walker = data;
	const struct tdt__stack *stack = walker->stack;

	(void)dwfl;
	if (address >= walker->limit && walker->limit != 0) {
		walker->at_limit = address - walker->limit < TDT__TOP_ROOM;
		return false;
	}
	if (address < stack->low || address < walker->passed || stack->size < sizeof *word ||
	    address - stack->low > stack->size - sizeof *word)
		return false;
	if (address >= walker->highest)
		walker->highest = address + sizeof *word;
	memcpy(word, stack->copy + (address - stack->low), sizeof *word);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *data)
{
	const struct tdt__walker *walker = data;

	for (int i = 0; i < TDT__DWARF_REGISTERS; i++) {
		Dwarf_Word value = walker->cpu.value[i];

		if (!tdt__cpu_has(&walker->cpu, i))
			continue;
#if !defined(__x86_64__)
		if (i == TDT__DWARF_PC) {
			dwfl_thread_state_register_pc(thread, value);
			continue;
		}
#endif
		if (!dwfl_thread_state_registers(thread, i, 1, &value))
			return false;
	}
	return true;
}

/* The interrupted frame has its pc itself; names are looked up one byte below. */
static int add_frame(Dwfl_Frame *frame, void *data)
{
	struct tdt__walker *walker = data;
	Dwarf_Addr pc;
	bool interrupted;

	if (!dwfl_frame_pc(frame, &pc, &interrupted) || pc == 0 ||
	    walker->n == TDT__WALK_FRAMES_MAX)
		return DWARF_CB_ABORT;
	walker->passed = walker->highest;
	walker->pc[walker->n++] = pc + (interrupted ? 1 : 0);
	return DWARF_CB_OK;
}

/* libdwfl takes over the descriptor that is returned. */
static int find_image(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		      char **path, Elf **elf)
{
	struct tdt__images *images = *data;
	int file = tdt__images_open(images, base);

	(void)module;
	(void)name;
	(void)path;
	if (file < 0)
		return -1;
	file = dup(file);
	*elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
	if (*elf == NULL && file >= 0) {
		close(file);
		return -1;
	}
	return file;
}

/* Unwind information in debug files is not searched for. */
static int find_nothing(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			const char *path, const char *link, GElf_Word crc, char **found)
{
	(void)module;
	(void)data;
	(void)name;
	(void)base;
	(void)path;
	(void)link;
	(void)crc;
	(void)found;
	return -1;
}

/* --- The walker --------------------------------------------------------------------------- */

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_stack_word,
	.set_initial_registers = set_registers,
};

static bool report_modules(struct tdt__walker *walker)
{
	const struct tdt__modules *table = walker->images->table;

	dwfl_report_begin(walker->dwfl);
	for (size_t i = 0; i < table->n; i++) {
		Dwfl_Module *module =
			dwfl_report_module(walker->dwfl, table->module[i].path,
					   table->module[i].start, table->module[i].end);
		void **data;

		if (module == NULL)
			continue;
		dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = walker->images;
	}
	return dwfl_report_end(walker->dwfl, NULL, NULL) == 0;
}

/* The first module with a file tells libdwfl the architecture. */
static bool attach(struct tdt__walker *walker, uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(walker->dwfl, pc);
	GElf_Addr bias;
	Elf *elf = module != NULL ? dwfl_module_getelf(module, &bias) : NULL;

	return elf != NULL &&
	       dwfl_attach_state(walker->dwfl, elf, THE_THREAD, &thread_callbacks, walker);
}

static bool need_dwfl(struct tdt__walker *walker, uint64_t pc)
{
	static char *no_path = NULL;
	static const Dwfl_Callbacks callbacks = { .find_elf = find_image,
						  .find_debuginfo = find_nothing,
						  .debuginfo_path = &no_path };

	if (walker->dwfl != NULL)
		return true;
	elf_version(EV_CURRENT);
	walker->dwfl = dwfl_begin(&callbacks);
	if (walker->dwfl != NULL && report_modules(walker) && attach(walker, pc))
		return true;
	dwfl_end(walker->dwfl);
	walker->dwfl = NULL;
	return false;
}

void tdt__walker_fini(struct tdt__walker *walker)
{
	dwfl_end(walker->dwfl);
	walker->dwfl = NULL;
}

/* --- A walk ------------------------------------------------------------------------------- */

static void walk_frames(struct tdt__walker *walker)
{
	walker->n = 0;
	walker->at_limit = false;
	walker->highest = walker->passed = 0;
	dwfl_getthread_frames(walker->dwfl, THE_THREAD, add_frame, walker);
}

static bool may_return_to(const struct tdt__walker *walker, uint64_t pc)
{
	const struct tdt__mapping *mapping = tdt__target_mapping(walker->images->target, pc);

	return mapping != NULL && tdt__modules_find(walker->images->table, pc) != NULL &&
	       (mapping->executable || walker->images->target->core != NULL);
}

static bool try_frame_pointer(struct tdt__walker *walker, uint64_t fp)
{
	tdt__cpu_set(&walker->cpu, TDT__DWARF_FP, fp);
	walk_frames(walker);
	return walker->at_limit;
}

/*
 * Try what the frame pointer may be: first that of the library's function, in case no frame below
 * has changed it.  False: the walk never ends where it must.
 */
static bool guess_frame_pointer(struct tdt__walker *walker, uint64_t top)
{
	const struct tdt__stack *stack = walker->stack;
	uint64_t sp = walker->cpu.value[TDT__DWARF_SP], pc;
	int guesses = 0;

	if (try_frame_pointer(walker, top - TDT__TOP_FP_BELOW))
		return true;
	for (size_t at = (size_t)(sp - stack->low); at + 16 <= stack->size; at += 8) {
		memcpy(&pc, stack->copy + at + 8, sizeof pc);
		if (!may_return_to(walker, pc))
			continue;
		if (guesses++ == MOST_GUESSES)
			break;
		if (try_frame_pointer(walker, stack->low + at))
			return true;
	}
	walker->cpu = stack->cpu;
	walk_frames(walker);
	return false;
}

static uint32_t outermost_parent(const struct tdt__walker *walker, uint64_t top)
{
	if (walker->at_limit)
		return TDT__PARENT_TOP;
	if (walker->n == TDT__WALK_FRAMES_MAX)
		return TDT__PARENT_CUT(TDT_CUT_LIMIT);
	if (walker->stack->cut != TDT_CUT_NOT)
		return TDT__PARENT_CUT(walker->stack->cut);
	return top == 0 ? TDT__PARENT_TOP : TDT__PARENT_CUT(TDT_CUT_NO_INFO);
}

/* `guessed` is the index of the frame that needed a guess, or TDT__NO_FRAME. */
static struct tdt__stacks *make_one_stack(const struct tdt__walker *walker, uint64_t top,
					  uint32_t guessed)
{
	/* The frame at the limit is the library's own, except on a stack that was entered. */
	bool own = walker->at_limit && walker->stack->from == NULL && walker->n > 1;
	uint32_t n = walker->n - (own ? 1 : 0);
	struct tdt__stacks *stacks = n > 0 ? tdt__stacks_new(n) : NULL;

	if (stacks == NULL)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		stacks->frames[i] = (struct tdt__recorded){
			.frame = { .pc = walker->pc[i], .guessed = i == guessed },
			.parent = i + 1 < n ? i + 1 : outermost_parent(walker, top),
		};
	stacks->frames[0].leaves = 1;
	stacks->n = n;
	stacks->leaves = 1;
	stacks->modules = tdt__modules_ref(walker->images->table);
	return stacks;
}

struct tdt__stacks *tdt__walk_stack(struct tdt__walker *walker, const struct tdt__stack *stack,
				    uint64_t top)
{
	uint32_t first;

	walker->stack = stack;
	walker->cpu = stack->cpu;
	walker->limit = top != 0 && stack->cut == TDT_CUT_NOT ? top - TDT__TOP_BELOW : 0;
	if (!need_dwfl(walker, stack->cpu.value[TDT__DWARF_PC]))
		return NULL;
	walk_frames(walker);
	if (walker->at_limit || walker->limit == 0 ||
	    tdt__cpu_has(&stack->cpu, TDT__DWARF_FP))
		return make_one_stack(walker, top, TDT__NO_FRAME);
	first = walker->n;
	/* If only the library's own function needed it, nothing was guessed. */
	if (!guess_frame_pointer(walker, top) || walker->n == first)
		return make_one_stack(walker, top, TDT__NO_FRAME);
	return make_one_stack(walker, top, first > 0 ? first - 1 : 0);
}

bool tdt__walk_is_whole(const struct tdt__stacks *stacks)
{
	return stacks->frames[stacks->n - 1].parent == TDT__PARENT_TOP;
}

struct tdt__stacks *tdt__walk_join(struct tdt__stacks *inner, struct tdt__stacks *outer)
{
	uint32_t n = inner->n, all = n + (outer != NULL ? outer->n : 0);
	struct tdt__stacks *joined = outer != NULL ? tdt__stacks_new(all) : NULL;

	if (joined == NULL) {
		inner->frames[n - 1].parent =
			TDT__PARENT_CUT(outer != NULL ? TDT_CUT_MEMORY : TDT_CUT_CORRUPT);
		tdt__stacks_free(outer);
		return inner;
	}
	joined->n = all;
	joined->leaves = 1;
	joined->modules = tdt__modules_ref(inner->modules);
	for (uint32_t i = 0; i < all; i++)
		joined->frames[i] = i < n ? inner->frames[i] : outer->frames[i - n];
	for (uint32_t i = n - 1; i + 1 < all; i++)
		joined->frames[i].parent = i + 1;
	joined->frames[n].leaves = 0;
	tdt__stacks_free(inner);
	tdt__stacks_free(outer);
	return joined;
}
