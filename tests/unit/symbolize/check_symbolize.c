// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers symbolize/symbolize, symbolize/debugfile, symbolize/demangle, symbolize/inlines,
 * symbolize/maps, symbolize/plt, symbolize/ranges.  Symbolization of the test itself, of libraries
 * in it, and of files that are not what they should be.
 */

#include <dirent.h>
#include <sys/fsuid.h>

#include <elfutils/libdw.h>
#include <gelf.h>

#include "host/loaded.h"
#include "lib/folder.h"
#include "lib/self.h"
#include "lib/test.h"
#include "outside/fixtures/trail.h"
#include "symbolize/debuginfo.h"
#include "symbolize/demangle.h"
#include "symbolize/namer.h"
#include "symbolize/ranges.h"
#include "symbolize/symbolize.h"
#include "unwind/unwinder.h"

static const struct trail *trail;
static uintptr_t pc;

static NOINLINE void probe(const struct trail *here)
{
	trail = here;
	pc = (uintptr_t)__builtin_return_address(0);
}

INLINE void inner(const struct trail *caller)
{
	probe(HERE(caller));
	NO_TAIL_CALL();
}

INLINE void middle(const struct trail *caller)
{
	inner(HERE(caller));
	NO_TAIL_CALL();
}

NOINLINE void chain_outer(void)
{
	middle(HERE(NULL));
	NO_TAIL_CALL();
}

static struct tdt__module self;

static void set_up(void)
{
	chain_outer();
	self = self_module(pc);
}

static void tear_down(void)
{
	free(self.path);
}

static const struct tdt__symbol *symbolize(const struct tdt__module *module, uintptr_t address,
					   bool return_address)
{
	const struct tdt__symbol *symbol = tdt__symbolize(module, address, return_address);

	ck_assert_ptr_nonnull(symbol);
	return symbol;
}

CASE(self, .setup = set_up, .teardown = tear_down)

TEST(inlined_functions_come_innermost_first)
{
	const struct tdt__symbol *symbol = symbolize(&self, pc, true);

	ck_assert_uint_eq(symbol->n, 3);
	for (size_t i = 0; i < symbol->n; i++, trail = trail->caller) {
		ck_assert_str_eq(symbol->place[i].function, trail->function);
		ck_assert_uint_eq(symbol->place[i].line, (unsigned)trail->line);
		ck_assert_uint_gt(symbol->place[i].column, 0);
	}
	ck_assert_ptr_null(trail);
}

TEST(a_file_is_a_full_path_below_where_it_was_compiled)
{
	const struct tdt__place *place = symbolize(&self, pc, true)->place;

	ck_assert_int_eq(place->file[0], '/');
	ck_assert_str_eq(strrchr(place->file, '/'), "/check_symbolize.c");
	ck_assert_int_eq(place->directory[0], '/');
}

TEST(an_offset_is_that_of_the_pc_itself)
{
	const struct tdt__symbol *symbol = symbolize(&self, pc, true);

	ck_assert_str_eq(symbol->symbol, "chain_outer");
	ck_assert_uint_eq(symbol->symbol_offset, pc - (uintptr_t)chain_outer);
}

TEST(only_a_return_address_is_looked_up_one_before)
{
	const struct tdt__symbol *first = symbolize(&self, (uintptr_t)chain_outer, false);
	const struct tdt__symbol *before = symbolize(&self, (uintptr_t)chain_outer, true);

	ck_assert_str_eq(first->symbol, "chain_outer");
	ck_assert_uint_eq(first->symbol_offset, 0);
	ck_assert_str_eq(first->place[first->n - 1].function, "chain_outer");
	ck_assert(before->symbol == NULL || strcmp(before->symbol, "chain_outer") != 0);
}

TEST(the_second_answer_is_the_first)
{
	ck_assert_ptr_eq(symbolize(&self, pc, true), symbolize(&self, pc, true));
}

TEST(a_module_loaded_elsewhere_has_the_same_names)
{
	struct tdt__module moved = self;

	moved.bias += 0x10000000;
	ck_assert_ptr_eq(symbolize(&moved, pc + 0x10000000, true), symbolize(&self, pc, true));
}

TEST(a_library_without_debug_information_has_symbols)
{
	uintptr_t address = (uintptr_t)dlsym(RTLD_DEFAULT, "lfind");
	struct tdt__module libc = self_module(address);
	const struct tdt__symbol *symbol = symbolize(&libc, address, false);

	ck_assert_str_eq(symbol->symbol, "lfind");
	ck_assert_uint_eq(symbol->symbol_offset, 0);
	ck_assert_uint_ge(symbol->n, 1);
	ck_assert_ptr_nonnull(symbol->place[0].function);
	free(libc.path);
}

TEST(outside_of_all_code_there_is_nothing)
{
	const struct tdt__symbol *symbol = symbolize(&self, self.end + 4096, true);

	ck_assert_uint_eq(symbol->n, 0);
	ck_assert_ptr_null(symbol->symbol);
	ck_assert_uint_eq(symbolize(&self, 0, true)->n, 0);
}

TEST(errno_is_left_alone)
{
	char path[] = "/nowhere/at/all";
	struct tdt__module gone = { .path = path };

	errno = EXDEV;
	symbolize(&gone, 4096, true);
	symbolize(&self, pc, true);
	ck_assert_int_eq(errno, EXDEV);
}

static int open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(directory) != NULL)
		n++;
	closedir(directory);
	return n;
}

TEST(no_descriptor_stays_open)
{
	struct tdt__module libc = self_module((uintptr_t)dlsym(RTLD_DEFAULT, "lfind"));
	int before = open_descriptors();

	symbolize(&self, pc, true);
	symbolize(&libc, (uintptr_t)dlsym(RTLD_DEFAULT, "lfind"), true);
	ck_assert_int_eq(open_descriptors(), before);
	free(libc.path);
}

/* Mappings of the executable that are both readable and writable. */
static int writable_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096 + 128];
	int n = 0;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, " rw-p ") != NULL && strstr(line, self.path) != NULL;
	fclose(maps);
	return n;
}

/* It would take the place of the one in which the kernel raises the semaphores of probes. */
TEST(no_writable_mapping_of_a_module_is_made)
{
	int before = writable_mappings();

	ck_assert_int_gt(before, 0);
	ck_assert_uint_gt(symbolize(&self, pc, true)->n, 0);
	ck_assert_int_eq(writable_mappings(), before);
}

TEST(names_come_back_with_the_descriptors)
{
	const struct tdt__symbol *symbol;
	struct rlimit before, none;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	symbol = symbolize(&self, pc, true);
	ck_assert_uint_eq(symbol->n, 0);
	ck_assert_ptr_null(symbol->symbol);
	ck_assert_ptr_eq(symbolize(&self, pc, true), symbol);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_uint_eq(symbolize(&self, pc, true)->n, 3);
	ck_assert_uint_eq(symbol->n, 0); /* may be in use */
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_uint_eq(symbolize(&self, pc, true)->n, 3);
	setrlimit(RLIMIT_NOFILE, &before); /* the search for leaks at the end needs some */
}

/* A name in a directory of our own, which the case leaves empty. */
static char place[FOLDER_SIZE];
static char file[IN_FOLDER_SIZE];

static void make_place(void)
{
	set_up();
	ck_assert(make_folder(place));
	snprintf(file, sizeof(file), "%s/file", place);
}

static void remove_place(void)
{
	unlink(file);
	rmdir(place);
	tear_down();
}

/* The first `size` bytes of the test itself. */
static void copy_self(size_t size)
{
	char buffer[4096];
	FILE *in = fopen(self.path, "r");
	FILE *out = fopen(file, "w");
	size_t n;

	ck_assert(in != NULL && out != NULL);
	while (size > 0 &&
	       (n = fread(buffer, 1, size < sizeof(buffer) ? size : sizeof(buffer), in)) > 0) {
		fwrite(buffer, 1, n, out);
		size -= n;
	}
	fclose(in);
	fclose(out);
}

static struct tdt__module with_file(const char *build_id)
{
	struct tdt__module module = self;

	module.path = file;
	snprintf(module.build_id, sizeof(module.build_id), "%s", build_id);
	return module;
}

#define OTHER_BUILD_ID "0123456789abcdef0123456789abcdef01234567"

CASE(files, .setup = make_place, .teardown = remove_place)

TEST(a_missing_file_has_no_names)
{
	struct tdt__module module = with_file(OTHER_BUILD_ID);

	ck_assert_uint_eq(symbolize(&module, pc, true)->n, 0);
	module = with_file("");
	ck_assert_uint_eq(symbolize(&module, pc, true)->n, 0);
}

TEST(a_file_with_another_build_id_has_no_names)
{
	struct tdt__module module;

	copy_self(SIZE_MAX);
	module = with_file(OTHER_BUILD_ID);
	ck_assert_uint_eq(symbolize(&module, pc, true)->n, 0);
}

TEST(a_deleted_executable_is_still_there)
{
	struct tdt__module module = with_file(self.build_id);

	if (self.build_id[0] == '\0')
		return; /* then nothing says that it is the one */
	module.mapped = NULL;
	ck_assert_uint_eq(symbolize(&module, pc, false)->n, 0);
	module.mapped = "/proc/self/exe";
	module.path = place;
	ck_assert_uint_eq(symbolize(&module, pc, true)->n, 3);
}

TEST(what_is_no_regular_file_is_not_waited_for)
{
	struct tdt__module module = with_file("");

	ck_assert_int_eq(mkfifo(file, 0600), 0);
	ck_assert_uint_eq(symbolize(&module, pc, true)->n, 0);
	module.path = place;
	ck_assert_uint_eq(symbolize(&module, pc, true)->n, 0);
}

static bool access_denied(void)
{
	int fd = open(file, O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EACCES;
}

/* Root may read all, unless it is another for the file system. */
TEST(a_file_that_may_not_be_read_has_no_names)
{
	struct tdt__module module = with_file("");

	copy_self(SIZE_MAX);
	ck_assert_int_eq(chmod(file, 0), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(setfsuid(65534), 0);
	if (access_denied()) {
		ck_assert_uint_eq(symbolize(&module, pc, true)->n, 0);
		module = with_file(OTHER_BUILD_ID);
		ck_assert_uint_eq(symbolize(&module, pc, true)->n, 0);
	} else {
		printf("# not tried: all files can be read here\n");
	}
	setfsuid(geteuid());
}

TEST(a_file_cut_short_gives_what_there_is, .to = 12)
{
	static const size_t size[] = { 0,    3,     16,    64,     100,    500,
				       4096, 20000, 50000, 100000, 200000, 400000 };
	struct tdt__module module = with_file("");

	copy_self(size[_i]);
	symbolize(&module, pc, true);
	snprintf(module.build_id, sizeof(module.build_id), "%s", self.build_id);
	symbolize(&module, pc, true);
}

/* As installing a library by cp does, where mv would be right. */
TEST(a_file_overwritten_after_it_was_read_does_no_harm, .to = 3)
{
	struct tdt__module module = with_file(self.build_id);
	const struct tdt__symbol *before, *after;

	copy_self(SIZE_MAX);
	before = symbolize(&module, pc, true);
	ck_assert_uint_eq(before->n, 3);
	copy_self((size_t)_i * 1000);
	ck_assert_ptr_eq(symbolize(&module, pc, true), before);
	ck_assert_str_eq(before->place[0].function, "inner");
	ck_assert_str_eq(before->place[2].function, "chain_outer");
	ck_assert_str_eq(before->symbol, "chain_outer");
	ck_assert_ptr_nonnull(strstr(before->place[0].file, before->place[0].directory));
	after = symbolize(&module, (uintptr_t)symbolize, false);
	ck_assert_uint_eq(after->n, 0);
}

TEST(a_file_removed_after_it_was_read_is_used_still)
{
	struct tdt__module module = with_file(self.build_id);

	copy_self(SIZE_MAX);
	symbolize(&module, pc, true);
	unlink(file);
	copy_self(1000);
	ck_assert_str_eq(symbolize(&module, (uintptr_t)symbolize, false)->place[0].function,
			 "symbolize");
}

/* Mappings of files in our directory. */
static int own_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096 + 128];
	int n = 0;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, place) != NULL;
	fclose(maps);
	return n;
}

#define COPIES 20

/* A host may load a plugin again and again, each time from a new copy of its file. */
TEST(of_a_file_and_its_copies_one_is_opened)
{
	const struct tdt__symbol *first = NULL;

	if (self.build_id[0] == '\0')
		return; /* then nothing says that they are copies */
	for (int i = 0; i < COPIES; i++) {
		struct tdt__module module = with_file(self.build_id);

		snprintf(file, sizeof(file), "%s/copy%d", place, i);
		copy_self(SIZE_MAX);
		if (i == 0)
			first = symbolize(&module, pc, true);
		ck_assert_ptr_eq(symbolize(&module, pc, true), first);
		ck_assert_int_eq(own_mappings(), 1);
		unlink(file);
	}
	ck_assert_uint_eq(first->n, 3);
}

TEST(a_file_that_was_overwritten_does_not_serve_copies)
{
	const struct tdt__symbol *symbol;
	struct tdt__module module = with_file(self.build_id);

	if (self.build_id[0] == '\0')
		return; /* then nothing says that they are copies */
	copy_self(SIZE_MAX);
	symbolize(&module, pc, true);
	copy_self(1000);
	ck_assert_uint_eq(symbolize(&module, (uintptr_t)symbolize, false)->n, 0);
	unlink(file);
	snprintf(file, sizeof(file), "%s/copy", place);
	copy_self(SIZE_MAX);
	symbol = symbolize(&module, (uintptr_t)symbolize, false);
	ck_assert_str_eq(symbol->place[0].function, "symbolize");
}

/* Where sections are compressed libelf writes to their headers, in the file's private mapping. */
TEST(of_a_large_file_what_libelf_writes_stays)
{
	size_t size;
	GElf_Ehdr header;
	Dwarf *dwarf;
	Elf *elf;
	char *bytes;
	int fd;

	copy_self(SIZE_MAX);
	ck_assert_int_eq(truncate(file, 20 << 20), 0);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	bytes = elf_rawfile(elf, &size);
	ck_assert(dwarf != NULL && bytes != NULL && gelf_getehdr(elf, &header) != NULL);
	bytes[header.e_shoff]++;
	bytes[0]++;
	tdt__debuginfo_forget_pages(dwarf);
	bytes[header.e_shoff]--;
	ck_assert_int_eq(bytes[header.e_shoff], 0);
	ck_assert_int_eq(bytes[0], ELFMAG0); /* the rest was let go, or this would not tell */
	dwarf_end(dwarf);
	elf_end(elf);
	close(fd);
}

static void *symbolize_all(void *data)
{
	const struct tdt__symbol **answer = data;
	struct tdt__modules *modules = tdt__modules_new(0);

	pthread_mutex_lock(&tdt__unwind_lock);
	MUST(modules != NULL && tdt__loaded_meet(&modules, pc) == 0);
	pthread_mutex_unlock(&tdt__unwind_lock);
	for (uintptr_t i = 0; i < 200; i++) {
		struct tdt__name name = { tdt__modules_find(modules, pc), pc + i, NULL };

		MUST(tdt__namer_find(modules, &name, 1, UINT64_MAX / 2) == 0);
		answer[i] = name.symbol;
	}
	tdt__modules_unref(modules);
	return NULL;
}

CASE(self)

TEST(threads_that_have_the_namer_look_up_get_the_same_answers)
{
	static const struct tdt__symbol *answer[4][200];
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, symbolize_all, answer[i]), 0);
	threads_join(thread, 4);
	for (int i = 0; i < 200; i++) {
		ck_assert_ptr_nonnull(answer[0][i]);
		for (int j = 1; j < 4; j++)
			ck_assert_ptr_eq(answer[j][i], answer[0][i]);
	}
}

CASE(parts)

TEST(names_lose_parameters_return_types_and_hashes)
{
	static const struct {
		const char *mangled;
		const char *name;
	} as[] = {
		{ "_ZN5space5thing6methodIiEEvT_", "space::thing::method<int>" },
		{ "_ZN5spaceL6lambdaEvENKUliE_clEi.constprop.0", "space::lambda" },
		{ "_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden" },
		{ "_ZN1AC4Ev", "A::A" },
		{ "_ZN4core3ptr4read17h0123456789abcdefE", "core::ptr::read" },
		{ "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
		  "3bar17h930b740aa94f1d3aE",
		  "<Test + 'static as foo::Bar<Test>>::bar" },
		{ "_RNvC6_123foo3bar", "123foo::bar" },
		{ "main", NULL },
		{ "_start", NULL },
		{ "_Z", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < sizeof(as) / sizeof(as[0]); i++) {
		if (as[i].name != NULL)
			ck_assert_pstr_eq(tdt__demangle(as[i].mangled), as[i].name);
		else
			ck_assert_ptr_null(tdt__demangle(as[i].mangled));
	}
}

TEST(of_ranges_the_last_to_begin_is_found)
{
	struct tdt__ranges ranges = { 0 };

	ck_assert_ptr_null(tdt__ranges_find(&ranges, 5));
	tdt__ranges_add(&ranges, 50, 60, 3);
	tdt__ranges_add(&ranges, 10, 40, 1);
	tdt__ranges_add(&ranges, 20, 30, 2);
	tdt__ranges_add(&ranges, 50, 60, 4);
	tdt__ranges_sort(&ranges);
	ck_assert_ptr_null(tdt__ranges_find(&ranges, 9));
	ck_assert_uint_eq(tdt__ranges_find(&ranges, 10)->value, 1);
	ck_assert_uint_eq(tdt__ranges_find(&ranges, 29)->value, 2);
	ck_assert_uint_eq(tdt__ranges_find(&ranges, 30)->value, 1);
	ck_assert_ptr_null(tdt__ranges_find(&ranges, 40));
	ck_assert_uint_eq(tdt__ranges_find(&ranges, 59)->value, 4);
	ck_assert_ptr_null(tdt__ranges_find(&ranges, 60));
	tdt__ranges_clear(&ranges);
}
