// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Walking stacks.  libdwfl reads words of the stack through a function of ours, which serves the
 * copy alone, and refuses the words from `limit` on: the frame whose return address lies there is
 * the library's own, and ends the walk.  Frames lie one above the other: a walk that would go down,
 * as damaged or hostile unwind information may make it do, ends too.
 *
 * Of a blocked thread only pc and stack pointer are known.  That is enough for most code.  Where a
 * frame needs the frame pointer, the values that it may have are tried: addresses on the stack with
 * a return address above them, from which a walk ends where it must.  The place is certain if the
 * return address is behind a call of this very function, and the walk leads through the function
 * that the library calls; and if no other place is as good.  A call by a pointer is as certain,
 * unless a place further in would fit if functions on the way had jumped to others (tail calls).
 * Otherwise the innermost of the best places is taken, and the frame is marked as a best guess
 * (capture/find_fp.c does the same inside the process, with more care).
 */

#include "reader/walk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

#include "symbolize/modules.h"
#include "tree/named.h"
#include "tree/stacks.h"

#define MOST_GUESSES 256
#define MOST_CALLS 12 /* that are checked on the way from a guess */

/* The thread has no id that matters: there is one. */
#define THE_THREAD 1

#define UNUSED __attribute__((unused))

/* --- What libdwfl asks for ---------------------------------------------------------------- */

static pid_t next_thread(Dwfl *dwfl UNUSED, void *walker, void **state)
{
	if (*state != NULL)
		return 0;
	*state = walker;
	return THE_THREAD;
}

static bool read_stack_word(Dwfl *dwfl UNUSED, Dwarf_Addr address, Dwarf_Word *word, void *data)
{
	struct tdt__walker *walker = data;
	const struct tdt__stack *stack = walker->stack;

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
static int find_image(Dwfl_Module *module UNUSED, void **data, const char *name UNUSED,
		      Dwarf_Addr base, char **path UNUSED, Elf **elf)
{
	struct tdt__images *images = *data;
	int file = tdt__images_open(images, base);

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
static int find_nothing(Dwfl_Module *module UNUSED, void **data UNUSED, const char *name UNUSED,
			Dwarf_Addr base UNUSED, const char *path UNUSED, const char *link UNUSED,
			GElf_Word crc UNUSED, char **found UNUSED)
{
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

/* --- Frame pointers ------------------------------------------------------------------------ */

/* .eh_frame_hdr as linkers write it: the functions in order, relative to the section. */
struct function_table {
	uint8_t encoding[4];
	int32_t frames;
	uint32_t n;
	struct {
		int32_t start, frame;
	} function[];
};

/* The table in a module's file, at `*address` as the file counts.  NULL: there is none. */
static const struct function_table *find_table(Elf *elf, uint64_t *address)
{
	static const uint8_t usual[] = { 1, 0x1b, 0x03, 0x3b };
	const struct function_table *table;
	Elf_Data *data = NULL;
	GElf_Phdr segment;
	size_t n;

	if (elf == NULL || elf_getphdrnum(elf, &n) != 0)
		return NULL;
	for (size_t i = 0; i < n && data == NULL; i++)
		if (gelf_getphdr(elf, (int)i, &segment) != NULL &&
		    segment.p_type == PT_GNU_EH_FRAME)
			data = elf_getdata_rawchunk(elf, (int64_t)segment.p_offset,
						    segment.p_filesz, ELF_T_BYTE);
	if (data == NULL || data->d_size < sizeof *table)
		return NULL;
	table = data->d_buf;
	*address = segment.p_vaddr;
	return memcmp(table->encoding, usual, sizeof usual) == 0 &&
		       table->n <= (data->d_size - sizeof *table) / sizeof table->function[0]
		   ? table
		   : NULL;
}

/* Where the function begins that `pc` is in, and the next one (0: unknown).  0: unknown. */
static uint64_t function_bounds(const struct tdt__walker *walker, uint64_t pc, uint64_t *next)
{
	Dwfl_Module *module = dwfl_addrmodule(walker->dwfl, pc);
	GElf_Addr bias = 0;
	uint64_t address = 0;
	const struct function_table *table =
	    find_table(module != NULL ? dwfl_module_getelf(module, &bias) : NULL, &address);
	uint32_t low = 0, high = table != NULL ? table->n : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (address + bias + (uint64_t)table->function[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	*next = table != NULL && low < table->n
		    ? address + bias + (uint64_t)table->function[low].start
		    : 0;
	return low > 0 ? address + bias + (uint64_t)table->function[low - 1].start : 0;
}

static uint64_t function_start(const struct tdt__walker *walker, uint64_t pc)
{
	uint64_t next;

	return function_bounds(walker, pc, &next);
}

/* How a return address fits a function that would return to it; the best is the last. */
enum fit {
	FIT_NONE,    /* it is behind no call */
	FIT_ANOTHER, /* it is behind a call of another function, which may jump to this one */
	FIT_POINTER, /* it is behind a call by a pointer, or of a stub */
	FIT_CALL     /* it is behind a call of this function */
};

/* The function that is called right before `pc`.  1: by a pointer; 0: none. */
static uint64_t called_before(const struct tdt__walker *walker, uint64_t pc)
{
	unsigned char code[8];
	int32_t distance;

	if (!tdt__target_read(walker->images->target, pc - sizeof code, code, sizeof code))
		return 0;
	memcpy(&distance, code + 4, sizeof distance);
#if defined(__x86_64__)
	if (code[3] == 0xe8)
		return pc + (uint64_t)distance;
	for (int i = 1; i < 7; i++)
		if (code[i] == 0xff && (code[i + 1] & 0x38) == 0x10)
			return 1;
#elif defined(__aarch64__)
	if (((uint32_t)distance & 0xfc000000) == 0x94000000)
		return pc - 4 + 4 * (uint64_t)((int64_t)((uint64_t)distance << 38) >> 38);
	if (((uint32_t)distance & 0xfffffc1f) == 0xd63f0000)
		return 1;
#endif
	return 0;
}

/* Whether these bytes, which are at `at`, may be a jump to the function, or by a pointer. */
static bool may_be_jump(const unsigned char code[5], uint64_t at, uint64_t function)
{
	int32_t distance;

#if defined(__x86_64__)
	memcpy(&distance, code + 1, sizeof distance);
	return (code[0] == 0xff && (code[1] & 0x38) == 0x20) ||
	       at + 5 + (uint64_t)distance == function ||
	       ((code[0] == 0xeb || (code[0] & 0xf0) == 0x70) &&
		at + 2 + (uint64_t)(int8_t)code[1] == function);
#elif defined(__aarch64__)
	memcpy(&distance, code, sizeof distance);
	return at % 4 == 0 && (((uint32_t)distance & 0xfffffc1f) == 0xd61f0000 ||
			       (((uint32_t)distance & 0xfc000000) == 0x14000000 &&
				at + 4 * (uint64_t)((int64_t)((uint64_t)distance << 38) >> 38) ==
					function));
#endif
}

#define LONGEST_SEARCHED 4096 /* of a longer function it is not known */

/* Whether the function that is called before `pc` may jump to this one. */
static bool may_have_jumped(const struct tdt__walker *walker, uint64_t pc, uint64_t function)
{
	unsigned char code[LONGEST_SEARCHED + 4] = { 0 };
	uint64_t start = called_before(walker, pc), next;

	function_bounds(walker, start, &next);
	if (next - start > LONGEST_SEARCHED ||
	    !tdt__target_read(walker->images->target, start, code, next - start))
		return true;
	for (uint64_t at = start; at < next; at++)
		if (may_be_jump(code + (at - start), at, function))
			return true;
	return false;
}

static enum fit fit_of(const struct tdt__walker *walker, uint64_t pc, uint64_t function)
{
	uint64_t called = may_return_to(walker, pc) ? called_before(walker, pc) : 0;

	if (called <= 1)
		return called == 0 ? FIT_NONE : FIT_POINTER;
	if (called == function)
		return FIT_CALL;
	return function_start(walker, called) == called ? FIT_ANOTHER : FIT_POINTER;
}

/*
 * How the functions behind the first frames fit where they would return to, at worst; some calls
 * tell.  The frame below the library's own must be that of the function that the library calls: if
 * it is another one, that function may have jumped to it.
 */
static enum fit fit_of_way(const struct tdt__walker *walker, uint32_t first)
{
	uint64_t start = 0;
	enum fit worst = FIT_CALL;

	for (uint32_t i = first; i + 1 < walker->n && i < first + MOST_CALLS; i++) {
		enum fit fit = fit_of(walker, walker->pc[i + 1],
				      function_start(walker, walker->pc[i] - 1));

		worst = fit < worst ? fit : worst;
	}
	if (walker->n > 1)
		start = function_start(walker, walker->pc[walker->n - 2] - 1);
	if (walker->stack->from == NULL && walker->poll != 0 && start != walker->poll &&
	    worst > FIT_ANOTHER)
		return FIT_ANOTHER;
	return worst;
}

/* Places that the frame pointer may point to. */
struct fp_search {
	uint64_t outermost; /* where that of the last frame points to */
	uint32_t first;	    /* the number of frames that need none */
	uint64_t function;  /* where the last of these begins */
	uint64_t fp;	    /* the best place; the innermost of several */
	int fit;	  /* of its return address; and RIGHT, if the way from there fits, too */
	unsigned as_good; /* places that fit as well as this one; 0: no walk arrives */
	bool jumped;	  /* there is a place that fits, with its way, if functions jump */
	bool rivalled;	  /* it is further in than the best place */
};

#define RIGHT 8

static void try_place(struct tdt__walker *walker, struct fp_search *search, uint64_t fp)
{
	const struct tdt__stack *stack = walker->stack;
	int fit = FIT_POINTER;
	enum fit way;
	uint64_t pc = 0;

	if (fp != search->outermost) {
		memcpy(&pc, stack->copy + (fp - stack->low) + 8, sizeof pc);
		fit = (int)fit_of(walker, pc, search->function);
	}
	if (fit == FIT_NONE || fit + RIGHT < search->fit)
		return;
	tdt__cpu_set(&walker->cpu, TDT__DWARF_FP, fp);
	walk_frames(walker);
	if (!walker->at_limit)
		return;
	way = fit_of_way(walker, search->first);
	if (fit == FIT_ANOTHER ? way >= FIT_ANOTHER && may_have_jumped(walker, pc, search->function)
			       : way == FIT_ANOTHER)
		search->jumped = true;
	if (way >= FIT_POINTER)
		fit += RIGHT;
	/* The library calls by a pointer, but the pointer is known. */
	if (fit == FIT_POINTER + RIGHT && stack->from == NULL && walker->poll != 0 &&
	    walker->n <= search->first + 1)
		fit = FIT_CALL + RIGHT;
	if (fit > search->fit) {
		search->fit = fit;
		search->fp = fp;
		search->as_good = 0;
		search->rivalled = fit == FIT_POINTER + RIGHT && search->jumped;
	}
	search->as_good += fit == search->fit;
}

/*
 * Find the frame pointer that the frame needs with which the walk has ended.  Returns that frame's
 * index if the frame pointer is a guess, and TDT__NO_FRAME if no other is possible, or none is
 * found.
 */
static uint32_t find_frame_pointer(struct tdt__walker *walker, uint64_t top)
{
	const struct tdt__stack *stack = walker->stack;
	struct fp_search search = { .outermost = top - TDT__TOP_FP_BELOW, .first = walker->n };
	uint64_t at =
	    walker->highest > stack->low ? walker->highest : walker->cpu.value[TDT__DWARF_SP];

	if (walker->n > 0)
		search.function = function_start(walker, walker->pc[walker->n - 1] - 1);
	for (; at + 16 <= stack->low + stack->size && search.as_good < MOST_GUESSES; at += 8)
		try_place(walker, &search, at);
	walker->cpu = stack->cpu;
	if (search.as_good > 0)
		tdt__cpu_set(&walker->cpu, TDT__DWARF_FP, search.fp);
	walk_frames(walker);
	if (search.as_good == 0 || (search.as_good == 1 && search.fit >= FIT_POINTER + RIGHT &&
				    !search.rivalled))
		return TDT__NO_FRAME;
	return search.first > 0 ? search.first - 1 : 0;
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
	/* The frame at the limit is the library's own, except on entered stacks and fibers. */
	bool own =
	    walker->at_limit && walker->stack->from == NULL && walker->poll != 0 && walker->n > 1;
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
	uint32_t guessed = TDT__NO_FRAME;

	walker->stack = stack;
	walker->cpu = stack->cpu;
	walker->limit = top != 0 && stack->cut == TDT_CUT_NOT ? top - TDT__TOP_BELOW : 0;
	if (!need_dwfl(walker, stack->cpu.value[TDT__DWARF_PC]))
		return NULL;
	walk_frames(walker);
	if (!walker->at_limit && walker->limit != 0 && !tdt__cpu_has(&stack->cpu, TDT__DWARF_FP))
		guessed = find_frame_pointer(walker, top);
	return make_one_stack(walker, top, guessed);
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
	joined->named = tdt__named_ref(outer->named);
	for (uint32_t i = 0; i < all; i++)
		joined->frames[i] = i < n ? inner->frames[i] : outer->frames[i - n];
	for (uint32_t i = n - 1; i + 1 < all; i++)
		joined->frames[i].parent = i + 1;
	joined->frames[n].leaves = 0;
	tdt__stacks_free(inner);
	tdt__stacks_free(outer);
	return joined;
}
