// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree/stacks, symbolize/modules.  From recorded stacks to text: the stacks and the table of
 * modules are made by hand, as a reader of another process has them.  The file that they lie in was
 * never loaded by this process.
 */

#include <gelf.h>

#include <elfutils/libdwelf.h>

#include "lib/test.h"
#include "symbolize/modules.h"
#include "tree/stacks.h"
#include "tree/trace.h"

#define OTHER_FILE PLUGINS "/plugin_a.so"
#define BIAS UINT64_C(0x7000000000) /* where the other process has it */

/* --- What is known of the other process ----------------------------------------------------- */

/* An address in the middle of a function of the file; 0: there is no such function. */
static uint64_t middle_of(Elf_Data *symbols, const GElf_Shdr *header, Elf *elf,
			  const char *function)
{
	GElf_Sym symbol;

	for (int i = 0; gelf_getsym(symbols, i, &symbol) != NULL; i++)
		if (strcmp(elf_strptr(elf, header->sh_link, symbol.st_name), function) == 0)
			return symbol.st_value + symbol.st_size / 2;
	return 0;
}

static Elf *open_elf(int *fd)
{
	Elf *elf;

	*fd = open(OTHER_FILE, O_RDONLY | O_CLOEXEC);
	MUST(*fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(*fd, ELF_C_READ, NULL);
	MUST(elf != NULL);
	return elf;
}

static uint64_t pc_in(const char *function)
{
	int fd;
	Elf *elf = open_elf(&fd);
	Elf_Scn *section = NULL;
	uint64_t address = 0;

	while (address == 0 && (section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr header;

		MUST(gelf_getshdr(section, &header) != NULL);
		if (header.sh_type == SHT_SYMTAB)
			address = middle_of(elf_getdata(section, NULL), &header, elf, function);
	}
	elf_end(elf);
	close(fd);
	MUST(address != 0);
	return BIAS + address;
}

/* In hexadecimal; "" if the file has none. */
static void read_build_id(char build_id[2 * TDT__BUILD_ID_MAX + 1])
{
	int fd;
	Elf *elf = open_elf(&fd);
	const void *bits;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &bits);

	MUST(n <= TDT__BUILD_ID_MAX);
	for (ssize_t i = 0; i < n; i++)
		sprintf(build_id + 2 * i, "%02x", ((const unsigned char *)bits)[i]);
	elf_end(elf);
	close(fd);
}

static struct tdt__modules *their_modules(const char *path)
{
	struct tdt__modules *table = tdt__modules_new(0);
	struct tdt__module module = { .start = BIAS, .end = BIAS + 0x100000, .bias = BIAS };

	MUST(table != NULL);
	read_build_id(module.build_id);
	module.path = strdup(path);
	MUST(module.path != NULL && tdt__modules_add(&table, &module, false));
	return table;
}

static void record(struct tdt__stacks *stacks, uint64_t pc, uint32_t parent, uint32_t leaves)
{
	stacks->frames[stacks->n++] =
		(struct tdt__recorded){ .frame = { .pc = pc }, .parent = parent, .leaves = leaves };
	stacks->leaves += leaves;
}

/* Three leaves: two at one place, three calls deep, and one that was cut; all innermost first. */
static struct tdt__stacks *their_stacks(const char *path)
{
	struct tdt__stacks *stacks = tdt__stacks_new(4);

	MUST(stacks != NULL);
	stacks->modules = their_modules(path);
	record(stacks, pc_in("plugin_a_leaf"), 1, 2);
	record(stacks, pc_in("plugin_a_middle"), 2, 0);
	record(stacks, pc_in("plugin_poll"), TDT__PARENT_TOP, 0);
	record(stacks, pc_in("plugin_a_middle"), TDT__PARENT_CUT(TDT_CUT_NO_INFO), 1);
	return stacks;
}

static char *print(const struct tdt_trace *trace)
{
	struct tdt_print_options options = { .size = sizeof options, .utf8 = TDT_PRINT_NO };

	return TEXT_WRITTEN(stream, MUST(tdt_trace_print_with(trace, stream, &options) == 0));
}

/* --- What is printed of it -------------------------------------------------------------------- */

/* Where `word` is in the text, which has it so many times. */
static const char *found(const char *text, const char *word, int times)
{
	const char *first = strstr(text, word);
	int n = 0;

	for (const char *at = first; at != NULL; at = strstr(at + 1, word))
		n++;
	ck_assert_msg(n == times, "%d times \"%s\" in\n%s", n, word, text);
	return first;
}

CASE(stacks)

TEST(stacks_of_another_process_are_named_by_its_files_and_printed)
{
	const struct tdt_wait wait = { .size = sizeof wait, .kind = TDT_WAIT_TIMER };
	const struct tdt_wait *const waits[] = { &wait };
	struct tdt_task_info info = {
		.size = sizeof info,
		.id = 42,
		.name = "theirs",
		.state = TDT_TASK_WAITING,
		.polls = 3,
		.n_waits = 1,
		.waits = waits,
	};
	TRACE(trace, tdt__trace_of(&info, their_stacks(OTHER_FILE)));

	ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 3);
	TEXT(text, print(trace));
	found(text, "task 42 \"theirs\"", 1);
	ck_assert(found(text, "plugin_poll at ", 1) < found(text, "plugin_a_leaf at ", 1));
	ck_assert(found(text, "plugin_a_middle at ", 2) < found(text, "plugin_a_leaf at ", 1));
	found(text, "plugin.c:", 4);
}

TEST(where_the_file_is_missing_modules_and_offsets_are_told)
{
	struct tdt_trace *trace =
	    tdt__trace_of(&(struct tdt_task_info){ .size = sizeof(struct tdt_task_info) },
			  their_stacks("/nowhere/theirs.so"));

	ck_assert_ptr_nonnull(trace);
	TEXT(text, print(trace));
	found(text, "theirs.so", 4);
	tdt_trace_free(trace);
}

TEST(a_copy_of_stacks_outlives_them)
{
	struct tdt__stacks *stacks = their_stacks(OTHER_FILE), *copy;

	stacks->lost = 1;
	stacks->elsewhere = 2;
	atomic_store(&stacks->astray, true);
	copy = tdt__stacks_copy(stacks);
	ck_assert_ptr_nonnull(copy);
	tdt__stacks_free(stacks);
	ck_assert_uint_eq(copy->n, 4);
	ck_assert_uint_eq(copy->leaves, 3);
	ck_assert_uint_eq(copy->lost, 1);
	ck_assert_uint_eq(copy->elsewhere, 2);
	ck_assert(atomic_load(&copy->astray));
	ck_assert_uint_eq(copy->frames[3].parent, TDT__PARENT_CUT(TDT_CUT_NO_INFO));
	ck_assert_str_eq(tdt__modules_find(copy->modules, copy->frames[0].frame.pc)->path,
			 OTHER_FILE);
	tdt__stacks_free(copy);
}
