// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/target, reader/process, reader/core, reader/core_open, reader/elf_facts,
 * reader/unpack.  Memory of a process, which is this one, and of core files that the test makes up.
 */

#include <elf.h>
#include <sys/prctl.h>

#include "lib/refused.h"
#include "lib/test.h"
#include "reader/core.h"
#include "reader/elf_facts.h"
#include "reader/target.h"

static struct tdt__target target;
static struct tdt__trouble trouble;

static void none_open(void)
{
	target = (struct tdt__target){ .proc = -1 };
}

static void close_target(void)
{
	tdt__target_close(&target);
}

static void open_self(void)
{
	ck_assert_int_eq(tdt__target_open_process(&target, getpid(), &trouble), 0);
}

/* Two pages, of which the second cannot be read. */
static char *cliff(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(pages, MAP_FAILED);
	ck_assert_int_eq(munmap(pages + 4096, 4096), 0);
	return pages;
}

CASE(process, .setup = none_open, .teardown = close_target)

TEST(ranges_are_read_in_their_order_past_one_that_cannot_be_read)
{
	char text[] = "text", first[4] = "", second[4] = "", lost[4] = "";
	char *edge = cliff() + 4096;
	struct tdt__memory_range range[] = {
		{ (uintptr_t)text, first, 4, false },
		{ (uintptr_t)edge - 2, lost, 4, true },
		{ (uintptr_t)text, second, 4, false },
	};

	open_self();
	ck_assert_uint_eq(tdt__target_read_ranges(&target, range, 3), 2);
	ck_assert(range[0].read && !range[1].read && range[2].read);
	ck_assert_int_eq(memcmp(first, "text", 4), 0);
	ck_assert_int_eq(memcmp(second, "text", 4), 0);
}

TEST(more_ranges_than_one_call_takes_are_read)
{
	static struct tdt__memory_range range[3000];
	static unsigned char to[3000], from[3000];

	for (int i = 0; i < 3000; i++) {
		from[i] = (unsigned char)i;
		range[i] = (struct tdt__memory_range){ (uintptr_t)&from[i], &to[i], 1, false };
	}
	open_self();
	ck_assert_uint_eq(tdt__target_read_ranges(&target, range, 3000), 3000);
	ck_assert_int_eq(memcmp(from, to, sizeof from), 0);
}

TEST(a_string_ends_where_memory_ends)
{
	char *edge = cliff() + 4096, got[16];

	open_self();
	memcpy(edge - 3, "end", 3);
	ck_assert(tdt__target_string(&target, (uintptr_t)edge - 3, got, sizeof got));
	ck_assert_str_eq(got, "end");
	ck_assert(!tdt__target_string(&target, (uintptr_t)edge, got, sizeof got));
	ck_assert_str_eq(got, "");
	ck_assert(tdt__target_string(&target, (uintptr_t) "as long as you like", got, 6));
	ck_assert_str_eq(got, "as lo");
}

TEST(a_mapping_is_found_by_each_address_in_it)
{
	char *page = cliff();
	const struct tdt__mapping *mapping;

	open_self();
	mapping = tdt__target_mapping(&target, (uintptr_t)page + 4095);
	ck_assert_ptr_nonnull(mapping);
	ck_assert(mapping->readable && mapping->writable && !mapping->executable);
	ck_assert(!mapping->is_file);
	ck_assert_ptr_eq(tdt__target_mapping(&target, (uintptr_t)page + 4096), NULL);
	ck_assert_ptr_eq(tdt__target_mapping(&target, 0), NULL);
	ck_assert_ptr_eq(tdt__target_mapping(&target, UINT64_MAX), NULL);
}

TEST(a_process_that_is_not_there_is_named)
{
	ck_assert_int_eq(tdt__target_open_process(&target, 0x7ffffff0, &trouble), -ESRCH);
	ck_assert_ptr_nonnull(strstr(trouble.text, "there is no process 2147483632"));
	ck_assert_ptr_nonnull(strstr(trouble.text, "PID namespace"));
}

TEST(a_zombie_is_called_one)
{
	siginfo_t ended;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	ck_assert_int_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(tdt__target_open_process(&target, child, &trouble), -ESRCH);
	ck_assert_ptr_nonnull(strstr(trouble.text, "zombie"));
	waitpid(child, NULL, 0);
}

TEST(it_is_noticed_that_a_process_has_ended)
{
	int ends[2];
	char byte;
	pid_t child;

	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	ck_assert_int_eq(tdt__target_open_process(&target, child, &trouble), 0);
	ck_assert(tdt__target_is_there(&target));
	close(ends[1]);
	waitpid(child, NULL, 0);
	ck_assert(!tdt__target_is_there(&target));
}

/* Freeing so much memory takes some milliseconds, in which the process is no zombie yet. */
TEST(a_process_whose_memory_is_gone_has_ended)
{
	static char text[] = "there";
	const size_t much = (size_t)128 << 20;
	char copy[sizeof text];
	int ends[2];
	pid_t child;

	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		char *memory = mmap(NULL, much, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		_exit(memory == MAP_FAILED || write(ends[1], "", 1) != 1 || pause() == 0);
	}
	ck_assert_int_eq(read(ends[0], copy, 1), 1);
	ck_assert_int_eq(tdt__target_open_process(&target, child, &trouble), 0);
	ck_assert(tdt__target_is_there(&target));
	kill(child, SIGKILL);
	while (tdt__target_read(&target, (uintptr_t)text, copy, sizeof copy))
		usleep(1000);
	ck_assert(!tdt__target_is_there(&target));
	waitpid(child, NULL, 0);
}

/* Have future children of this process live at another time.  False: that is not permitted. */
static bool leave_time_to_children(void)
{
	static const char offset[] = "monotonic 100000 0";
	int file = unshare(CLONE_NEWTIME) == 0 ? open("/proc/self/timens_offsets", O_WRONLY) : -1;

	return file >= 0 && write(file, offset, sizeof offset - 1) > 0;
}

TEST(the_time_of_a_process_is_not_that_of_its_future_children)
{
	bool left = false;
	int said[2];
	pid_t child;

	ck_assert_int_eq(pipe(said), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		left = leave_time_to_children();
		if (write(said[1], &left, sizeof left) > 0)
			pause();
		_exit(1);
	}
	ck_assert_int_eq(read(said[0], &left, sizeof left), sizeof left);
	ck_assert_int_eq(tdt__target_open_process(&target, child, &trouble), 0);
	if (left)
		ck_assert_int_eq(target.clock_offset, 0);
	else
		puts("# not tried: no time namespace may be made here");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static int open_and_close(void *unused)
{
	int error = tdt__target_open_process(&target, getpid(), &trouble);

	if (error == 0)
		tdt__target_close(&target);
	return error;
}

TEST(without_memory_nothing_is_opened)
{
	NEEDS_FAILING_MEMORY();
	NOT_TRIED_IF(ASAN || TSAN,
		     "with a sanitizer's many mappings, qsort() can lack memory, too");
	no_memory_each(open_and_close, NULL, 10);
}

/* A file with two segments and a build-id. */
struct file_image {
	Elf64_Ehdr elf;
	Elf64_Phdr header[3];
	struct {
		Elf64_Nhdr header;
		char name[4];
		unsigned char id[20];
	} note;
} image;

static bool read_image(void *from, uint64_t offset, void *buffer, size_t size)
{
	if (offset > sizeof image || size > sizeof image - offset)
		return false;
	memcpy(buffer, (char *)from + offset, size);
	return true;
}

static void make_image(void)
{
	image = (struct file_image){
		.elf = { .e_machine = TDT__OWN_MACHINE,
			 .e_phoff = offsetof(struct file_image, header),
			 .e_phentsize = sizeof image.header[0],
			 .e_phnum = 3 },
		.header = { { .p_type = PT_LOAD, .p_vaddr = 0x400040, .p_memsz = 0x100 },
			    { .p_type = PT_LOAD, .p_vaddr = 0x402000, .p_memsz = 0x1234 },
			    { .p_type = PT_NOTE,
			      .p_offset = offsetof(struct file_image, note),
			      .p_vaddr = 0x400000 + offsetof(struct file_image, note),
			      .p_filesz = sizeof image.note,
			      .p_align = 4 } },
		.note = { .header = { 4, 20, NT_GNU_BUILD_ID }, .name = "GNU", .id = { 0xab, 1 } },
	};
	memcpy(image.elf.e_ident, ELFMAG, SELFMAG);
	image.elf.e_ident[EI_CLASS] = ELFCLASS64;
	image.elf.e_ident[EI_DATA] = TDT__OWN_DATA;
}

static bool read_facts(struct tdt__elf_facts *facts, bool loaded)
{
	return tdt__elf_facts(facts, read_image, &image, loaded);
}

CASE(elf)

static struct tdt__elf_facts facts;

/* Read the headers of an image with a damage. */
#define READ_DAMAGED(...) (make_image(), (void)(__VA_ARGS__), read_facts(&facts, false))

TEST(headers_are_read_from_a_file_and_from_memory)
{
	for (int loaded = 0; loaded < 2; loaded++) {
		make_image();
		ck_assert(read_facts(&facts, loaded != 0));
		ck_assert_uint_eq(facts.start, 0x400000);
		ck_assert_uint_eq(facts.end, 0x403234);
		ck_assert_str_eq(facts.build_id, "ab01000000000000000000000000000000000000");
	}
}

TEST(damaged_headers_are_refused)
{
	ck_assert(!READ_DAMAGED(image.elf.e_ident[0] = 0));
	ck_assert(!READ_DAMAGED(image.elf.e_ident[EI_CLASS] = ELFCLASS32));
	ck_assert(!READ_DAMAGED(image.elf.e_machine++));
	ck_assert(!READ_DAMAGED(image.elf.e_phentsize = 1));
	ck_assert(!READ_DAMAGED(image.elf.e_phnum = PN_XNUM));
	ck_assert(!READ_DAMAGED(image.elf.e_phoff = UINT64_MAX - 8));
	ck_assert(!READ_DAMAGED(image.header[1].p_memsz = UINT64_MAX)); /* ends below its start */
	ck_assert(!READ_DAMAGED(image.header[1].p_vaddr = 0x1000));	/* below the first one */
	ck_assert(!READ_DAMAGED(image.header[0].p_type = image.header[1].p_type = PT_NULL));
}

TEST(damaged_notes_have_no_build_id)
{
	ck_assert(READ_DAMAGED(image.note.header.n_namesz = UINT32_MAX));
	ck_assert_str_eq(facts.build_id, "");
	ck_assert(READ_DAMAGED(image.note.header.n_descsz = UINT32_MAX));
	ck_assert_str_eq(facts.build_id, "");
	ck_assert(READ_DAMAGED(image.note.header.n_descsz = TDT__BUILD_ID_MAX + 1,
			       image.header[2].p_filesz = 4096));
	ck_assert_str_eq(facts.build_id, "");
}

#define CORE_AT UINT64_C(0x7f0000000000)

/* Two segments that lie together in memory, a list of files, and a thread. */
static struct core_image {
	Elf64_Ehdr elf;
	Elf64_Phdr header[4];
	char first[64], second[64];
	struct __attribute__((packed)) {
		Elf64_Nhdr header;
		char name[8];
		uint64_t count, page, start, end, offset;
		char path[16];
	} files;
	struct __attribute__((packed)) {
		Elf64_Nhdr header;
		char name[8];
		struct elf_prstatus status;
	} thread;
} core;

static void make_core(void)
{
	core = (struct core_image){
		.elf = { .e_type = ET_CORE,
			 .e_machine = TDT__OWN_MACHINE,
			 .e_phoff = offsetof(struct core_image, header),
			 .e_phentsize = sizeof core.header[0],
			 .e_phnum = 4 },
		.header = { { .p_type = PT_LOAD,
			      .p_flags = PF_R | PF_W,
			      .p_vaddr = CORE_AT + 64,
			      .p_offset = offsetof(struct core_image, second),
			      .p_filesz = 64,
			      .p_memsz = 128 },
			    { .p_type = PT_LOAD,
			      .p_flags = PF_R,
			      .p_vaddr = CORE_AT,
			      .p_offset = offsetof(struct core_image, first),
			      .p_filesz = 64,
			      .p_memsz = 64 },
			    { .p_type = PT_NOTE,
			      .p_offset = offsetof(struct core_image, files),
			      .p_filesz = sizeof core.files },
			    { .p_type = PT_NOTE,
			      .p_offset = offsetof(struct core_image, thread),
			      .p_filesz = sizeof core.thread } },
		.files = { .header = { 5, sizeof core.files - 20, NT_FILE },
			   .name = "CORE",
			   .count = 1,
			   .page = 4096,
			   .start = CORE_AT,
			   .end = CORE_AT + 4096,
			   .offset = 2,
			   .path = "/bin/file" },
		.thread = { .header = { 5, sizeof core.thread.status, NT_PRSTATUS },
			    .name = "CORE",
			    .status.pr_pid = 4711 },
	};
	memset(core.first, '1', sizeof core.first);
	memset(core.second, '2', sizeof core.second);
	memcpy(core.elf.e_ident, ELFMAG, SELFMAG);
	core.elf.e_ident[EI_CLASS] = ELFCLASS64;
	core.elf.e_ident[EI_DATA] = TDT__OWN_DATA;
}

/* Open the first `size` bytes of the core file. */
static int open_part(size_t size)
{
	int file = memfd_create("core", MFD_CLOEXEC), error;
	char path[32];

	ck_assert(file >= 0 && write(file, &core, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	error = tdt__target_open_core(&target, path, &trouble);
	close(file);
	return error;
}

static int open_core(void)
{
	return open_part(sizeof core);
}

static void make_whole_core(void)
{
	none_open();
	make_core();
}

/* Open a core file with a damage. */
#define OPEN_DAMAGED(...) (make_core(), (void)(__VA_ARGS__), open_core())

CASE(cores, .setup = make_whole_core, .teardown = close_target)

TEST(memory_of_a_core_file_is_read_across_segments)
{
	char got[4];

	ck_assert_int_eq(open_core(), 0);
	ck_assert(tdt__target_read(&target, CORE_AT + 62, got, 4));
	ck_assert_int_eq(memcmp(got, "1122", 4), 0);
	ck_assert(tdt__target_is_there(&target));
}

TEST(memory_that_a_core_file_lacks_is_not_made_up)
{
	char got[4];

	ck_assert_int_eq(open_core(), 0);
	ck_assert(!tdt__target_read(&target, CORE_AT + 126, got, 4));
	ck_assert(!tdt__target_read(&target, CORE_AT - 1, got, 4));
	ck_assert(!tdt__target_read(&target, UINT64_MAX - 1, got, 4));
}

TEST(a_string_at_the_end_of_a_core_file_is_read)
{
	char got[32];

	memcpy(core.second + 58, "at end", 6);
	ck_assert_int_eq(open_core(), 0);
	ck_assert(tdt__target_string(&target, CORE_AT + 64 + 58, got, sizeof got));
	ck_assert_str_eq(got, "at end");
}

TEST(notes_of_a_core_file_are_read)
{
	ck_assert_int_eq(open_core(), 0);
	ck_assert_uint_eq(target.n_mappings, 1);
	ck_assert_str_eq(target.mapping[0].path, "/bin/file");
	ck_assert_uint_eq(target.mapping[0].offset, 8192);
	ck_assert_ptr_nonnull(tdt__core_thread(target.core, 4711));
	ck_assert_ptr_eq(tdt__core_thread(target.core, 1), NULL);
}

TEST(other_files_are_refused_in_a_sentence)
{
	ck_assert_int_eq(OPEN_DAMAGED(core.elf.e_type = ET_EXEC), -ENOEXEC);
	ck_assert_ptr_nonnull(strstr(trouble.text, "no core file"));
	ck_assert_int_eq(OPEN_DAMAGED(core.elf.e_ident[EI_CLASS] = ELFCLASS32), -ENOEXEC);
	ck_assert_ptr_nonnull(strstr(trouble.text, "32-bit"));
	ck_assert_int_eq(OPEN_DAMAGED(core.elf.e_machine = EM_SPARC), -ENOEXEC);
	ck_assert_ptr_nonnull(strstr(trouble.text, "architecture"));
	ck_assert_int_eq(tdt__target_open_core(&target, "/", &trouble), -EINVAL);
	ck_assert_ptr_nonnull(strstr(trouble.text, "regular file"));
	ck_assert_int_eq(tdt__target_open_core(&target, "/nowhere/at/all", &trouble), -ENOENT);
}

TEST(a_core_file_that_was_cut_short_is_read_as_far_as_it_goes)
{
	size_t shortest = offsetof(struct core_image, header[2]);
	char byte;

	core.elf.e_phnum = 2; /* the notes are at the end */
	for (size_t size = 0; size < sizeof core; size++) {
		int error = open_part(size);

		ck_assert_int_eq(error == 0, size >= shortest);
		if (error != 0)
			continue;
		ck_assert_int_eq(tdt__target_read(&target, CORE_AT + 63, &byte, 1),
				 size >= offsetof(struct core_image, second));
		ck_assert_int_eq(target.core->missing != 0,
				 size < offsetof(struct core_image, files));
		tdt__target_close(&target);
	}
}

static const char *const packers[] = { "zstd", "xz", "lz4", "gzip" };

/* Open the core file as the program compresses it, less some bytes at the end. */
static int open_packed(const char *packer, off_t less)
{
	int plain = memfd_create("core", 0), packed = memfd_create("core.packed", 0), error;
	char text[64];

	ck_assert(plain >= 0 && packed >= 0);
	ck_assert_int_eq(write(plain, &core, sizeof core), sizeof core);
	ck_assert_int_eq(lseek(plain, 0, SEEK_SET), 0);
	snprintf(text, sizeof text, "%s -c <&%d >&%d", packer, plain, packed);
	ck_assert_int_eq(system(text), 0);
	ck_assert_int_eq(ftruncate(packed, lseek(packed, 0, SEEK_END) - less), 0);
	snprintf(text, sizeof text, "/proc/self/fd/%d", packed);
	error = tdt__target_open_core(&target, text, &trouble);
	close(plain);
	close(packed);
	return error;
}

TEST(a_compressed_core_file_is_read, .to = 4)
{
	char text[64], got[4];

	NOT_TRIED_IF(is_emulated(), "emulated: programs of this machine are not executed");
	snprintf(text, sizeof text, "command -v %s >/dev/null", packers[_i]);
	NOT_TRIED_IF(system(text) != 0, "there is no program of that compression");
	ck_assert_int_eq(open_packed(packers[_i], 0), 0);
	ck_assert(tdt__target_read(&target, CORE_AT + 62, got, 4));
	ck_assert_int_eq(memcmp(got, "1122", 4), 0);
	ck_assert_uint_eq(target.core->missing, 0);
}

TEST(a_core_file_that_cannot_be_decompressed_is_refused_with_the_command)
{
	NOT_TRIED_IF(is_emulated(), "emulated: programs of this machine are not executed");
	ck_assert_int_eq(open_packed("gzip", 9), -EIO);
	ck_assert_ptr_nonnull(strstr(trouble.text, "it failed"));
	ck_assert_int_eq(setenv("TMPDIR", "/nowhere", 1), 0);
	ck_assert_int_eq(open_packed("gzip", 0), -EIO);
	ck_assert_ptr_nonnull(strstr(trouble.text, strerror(ENOENT)));
	ck_assert_int_eq(unsetenv("TMPDIR"), 0);
	ck_assert_int_eq(setenv("PATH", "/nowhere", 1), 0);
	ck_assert_int_eq(open_packed("/bin/gzip", 0), -EIO);
	ck_assert_ptr_nonnull(strstr(trouble.text, "gzip could not decompress"));
	ck_assert_ptr_nonnull(strstr(trouble.text, "it is not installed"));
	ck_assert_ptr_nonnull(strstr(trouble.text, "gzip -dc FILE >core"));
	ck_assert_ptr_nonnull(strstr(trouble.text, "coredumpctl"));
}

/* Make a program in a folder of its own, the only one of PATH, with these lines of a shell. */
static void put_on_path(char folder[], const char *name, const char *lines)
{
	char path[PATH_MAX];
	FILE *file;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "#!/bin/sh\n%s\n", lines);
	ck_assert_int_eq(fchmod(fileno(file), 0700), 0);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(setenv("PATH", folder, 1), 0);
}

TEST(a_program_that_decompresses_ends_with_its_caller)
{
	char folder[] = "/tmp/tdt-packer-XXXXXX", command[64], line[16] = "";
	int ends[2], status;
	pid_t caller, program;

	NOT_TRIED_IF(is_emulated(), "emulated: programs of this machine are not executed");
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	ck_assert_int_eq(pipe(ends), 0);
	snprintf(command, sizeof command, "echo $$ >/dev/fd/%d\nexec /bin/sleep 20", ends[1]);
	make_core();
	put_on_path(folder, "gzip", command);
	caller = fork();
	if (caller == 0)
		_exit(open_packed("/bin/gzip", 0) == 0);
	ck_assert_int_gt(read(ends[0], line, sizeof line - 1), 0);
	program = atoi(line);
	ck_assert_int_eq(kill(caller, SIGKILL), 0);
	ck_assert_int_eq(waitpid(caller, &status, 0), caller);
	ck_assert_int_eq(waitpid(program, &status, 0), program);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	snprintf(command, sizeof command, "/bin/rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
	close(ends[0]);
	close(ends[1]);
}

TEST(a_core_file_that_was_cut_short_before_its_notes_is_called_truncated)
{
	ck_assert_int_eq(open_part(sizeof core - 1), -ENOEXEC);
	ck_assert_ptr_nonnull(strstr(trouble.text, "is truncated"));
}

TEST(numbers_that_are_too_large_do_no_harm)
{
	ck_assert_int_eq(OPEN_DAMAGED(core.header[2].p_filesz = UINT64_MAX), -ENOEXEC);
	ck_assert_int_eq(OPEN_DAMAGED(core.header[2].p_offset = UINT64_MAX - 10), -ENOEXEC);
	ck_assert_int_eq(OPEN_DAMAGED(core.elf.e_phoff = UINT64_MAX - 10), -ENOEXEC);
	ck_assert_int_eq(
	    OPEN_DAMAGED(core.header[0].p_filesz = core.header[1].p_filesz = UINT64_MAX,
			 core.header[0].p_vaddr = UINT64_MAX - 5),
	    0);
	ck_assert_uint_eq(target.core->n_segments, 1);
	tdt__target_close(&target);
	ck_assert_int_eq(
	    OPEN_DAMAGED(core.files.count = UINT64_MAX / 12, core.thread.header.n_descsz = 4), 0);
	ck_assert_uint_eq(target.n_mappings, 0);
	ck_assert_uint_eq(target.core->n_threads, 0);
	tdt__target_close(&target);
	make_core();
	memset(core.files.path, 'x', sizeof core.files.path); /* without an end */
	core.thread.header.n_namesz = UINT32_MAX;
	ck_assert_int_eq(open_core(), 0);
	ck_assert_uint_eq(target.n_mappings, 0);
}

SUITE_SKIP(reading_refused())
