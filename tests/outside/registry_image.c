// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writes a core file that nobody dumped, for registry_reader: a registry whose contents are as
 * DAMAGE says, or as a library of another version would have them, whose structs are longer or
 * shorter than those of the headers.
 *
 *	registry_image DAMAGE >CORE-FILE
 *	registry_image [registry=SIZE] [record=SIZE] [panic=SIZE] [thread=SIZE] >CORE-FILE
 *	registry_image sizes
 *
 * The last one prints the sizes of the headers.  Behind the end of a struct the image has bytes
 * that mean something else.  The file that is said to be mapped is this program.
 */

#include <config.h>

#include <elf.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <tdt/layout/registry.h>

#include "lib/must.h"

#define BASE UINT64_C(0x7f0000000000) /* where the registry lies in the image */

enum { RECORDS = 4, MORE = 512 }; /* MORE: room for what a later library appends */

/* A struct of the headers, and what may follow. */
#define ROOM_FOR(type, name)                                                                       \
	union {                                                                                    \
		struct type name;                                                                  \
		char name##_room[sizeof(struct type) + MORE];                                      \
	}

/* What lies in the image's memory, from the registry on. */
struct memory {
	ROOM_FOR(tdt_registry, registry);
	struct tdt_registry_counters counters;
	struct tdt_registry_panic panic;
	char panics[2 * (sizeof(struct tdt_registry_panic) + MORE)]; /* none, and that one */
	ROOM_FOR(tdt_registry_thread, thread);
	uint64_t threads;
	struct tdt_registry_slab slab[2];
	ROOM_FOR(tdt_task_record, record) record[RECORDS];
	char file[64];
};

/* Of one note: its header, name, and the list of mapped files. */
struct __attribute__((packed)) files {
	Elf64_Nhdr header;
	char name[8];
	uint64_t count, page, start, end, offset;
	char path[4096];
};

/* The note of a thread. */
struct __attribute__((packed)) thread_note {
	Elf64_Nhdr header;
	char name[8];
	struct elf_prstatus status;
};

#define ADDRESS_OF(member) (BASE + offsetof(struct memory, member))

/* Two slabs, of which the second has the records. */
static void make_memory(struct memory *memory)
{
	memory->registry = (struct tdt_registry){
		.magic = TDT_REGISTRY_MAGIC,
		.version = TDT_REGISTRY_VERSION,
		.size = sizeof(memory->registry),
		.self = BASE,
		.slabs = ADDRESS_OF(slab[0]),
		.record_size = sizeof(struct tdt_task_record),
		.stride = sizeof(memory->record[0]),
		.library = "0",
		.pid = 1,
		.counters = ADDRESS_OF(counters),
		.n_counters = 1,
		.threads = ADDRESS_OF(threads),
		.n_threads = 1,
		.panics = ADDRESS_OF(panics),
		.n_panics = 2,
		.panic_size = sizeof(struct tdt_registry_panic),
	};
	memory->counters =
	    (struct tdt_registry_counters){ .spawned = 6, .panicked = 1, .polls = 7 };
	memory->threads = ADDRESS_OF(thread);
	memory->thread = (struct tdt_registry_thread){ .id = 1, .worker = 1, .parked = 1 };
	memory->panic = (struct tdt_registry_panic){ .number = 1, .id = 5, .name = "fell" };
	memory->slab[0] =
	    (struct tdt_registry_slab){ .next = ADDRESS_OF(slab[1]), .room = RECORDS };
	memory->slab[1] = (struct tdt_registry_slab){ .records = ADDRESS_OF(record),
						      .used = RECORDS,
						      .room = RECORDS };
	for (unsigned i = 0; i < RECORDS; i++) {
		memory->record[i].record =
		    (struct tdt_task_record){ .state = TDT_TASK_RECORD_IDLE, .id = i + 1 };
		snprintf(memory->record[i].record.name, TDT_TASK_RECORD_NAME_SIZE, "task %u",
			 i + 1);
	}
	memory->record[0].record.file = ADDRESS_OF(file);
	snprintf(memory->file, sizeof(memory->file), "file.c");
}

static void make_files(struct files *files)
{
	ssize_t n = readlink("/proc/self/exe", files->path, sizeof(files->path) - 1);

	MUST(n > 0);
	files->header = (Elf64_Nhdr){
		.n_namesz = 5,
		.n_descsz = sizeof(*files) - offsetof(struct files, count),
		.n_type = NT_FILE,
	};
	memcpy(files->name, "CORE", 5);
	files->count = 1;
	files->page = 1;
	files->start = BASE;
	files->end = BASE + 1;
}

/* What lies behind the first `size` bytes of a struct does not belong to it. */
static void end_struct(char *room, size_t known, size_t size)
{
	size_t kept = size < known ? size : known;

	MUST(size <= known + MORE);
	memset(room + kept, 0xff, known + MORE - kept);
}

/* The structs have this size in the library whose image it is.  False: there is no such struct. */
static bool resize(struct memory *memory, const char *what)
{
	size_t size = strtoul(what + strcspn(what, "=") + 1, NULL, 10);

	if (strncmp(what, "registry=", 9) == 0) {
		memory->registry.size = (uint32_t)size;
		end_struct(memory->registry_room, sizeof(memory->registry), size);
	} else if (strncmp(what, "record=", 7) == 0) {
		memory->registry.record_size = (uint32_t)size;
		for (unsigned i = 0; i < RECORDS; i++)
			end_struct(memory->record[i].record_room,
				   sizeof(memory->record[i].record), size);
	} else if (strncmp(what, "panic=", 6) == 0) {
		memory->registry.panic_size = (uint32_t)size;
	} else if (strncmp(what, "thread=", 7) == 0) {
		end_struct(memory->thread_room, sizeof(memory->thread), size);
	} else {
		return false;
	}
	return true;
}

/* False: there is no such damage. */
static bool damage(struct memory *memory, struct files *files, const char *how)
{
	if (strcmp(how, "escapes") == 0) {
		memcpy(memory->record[0].record.name, "\033]0;me\a\n\\\xe2\x80\xae\x7f", 14);
		/* and no NUL */
		memset(memory->record[1].record.name, 'x', TDT_TASK_RECORD_NAME_SIZE);
		memcpy(memory->file, "\033[2Jfile.c", 11);
		memcpy(memory->registry.library, "\033[2J", 5);
		memset(memory->panic.name, '\a', sizeof(memory->panic.name)); /* and no NUL */
		memory->record[2].record.wait_name = ADDRESS_OF(file);
		memory->record[2].record.wait_count = 1;
	} else if (strcmp(how, "slab-again") == 0) {
		memory->slab[1].next = ADDRESS_OF(slab[1]);
	} else if (strcmp(how, "slabs-again") == 0) {
		memory->slab[1].next = ADDRESS_OF(slab[0]);
	} else if (strcmp(how, "used") == 0) {
		memory->slab[1].used = UINT32_MAX;
	} else if (strcmp(how, "room") == 0) {
		memory->slab[1].used = memory->slab[1].room = UINT32_MAX;
	} else if (strcmp(how, "copy") == 0) {
		memory->registry.self = BASE + 64;
	} else if (strcmp(how, "version") == 0) {
		memory->registry.version++;
	} else if (strcmp(how, "counters") == 0) {
		memory->registry.n_counters = UINT32_MAX;
	} else if (strcmp(how, "threads") == 0) {
		memory->registry.n_threads = UINT32_MAX;
	} else if (strcmp(how, "panics") == 0) {
		memory->registry.n_panics = UINT32_MAX;
	} else if (strcmp(how, "panic-size") == 0) {
		memory->registry.panic_size = 0;
	} else if (strcmp(how, "shorter") == 0) {
		memory->registry.record_size -= 8;
	} else if (strcmp(how, "stride") == 0) {
		memory->registry.stride = 0;
		memory->slab[1].used = memory->slab[1].room = UINT32_MAX;
	} else if (strcmp(how, "address") == 0) {
		memory->slab[1].records = UINT64_MAX - 8;
	} else if (strcmp(how, "files") == 0) {
		files->count = UINT64_MAX / 12;
	} else if (strcmp(how, "path") == 0) {
		memset(files->path, '/', sizeof(files->path)); /* and no NUL */
	} else {
		return strcmp(how, "none") == 0;
	}
	return true;
}

/* The array of panics, from one to the next as the registry says. */
static void lay_panics(struct memory *memory)
{
	size_t size = memory->registry.panic_size;

	memset(memory->panics, 0xff, sizeof(memory->panics));
	memset(memory->panics, 0, size);
	memcpy(memory->panics + size, &memory->panic,
	       size < sizeof(memory->panic) ? size : sizeof(memory->panic));
}

static void write_core(const struct memory *memory, const struct files *files)
{
	const struct thread_note thread = {
		.header = { .n_namesz = 5,
			    .n_descsz = sizeof(thread.status),
			    .n_type = NT_PRSTATUS },
		.name = "CORE",
		.status.pr_pid = 1,
	};
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment[2];
	} start = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT },
			.e_type = ET_CORE,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_phoff = sizeof(start.header),
			.e_ehsize = sizeof(start.header),
			.e_phentsize = sizeof(start.segment[0]),
			.e_phnum = 2,
		},
		.segment = {
			{ .p_type = PT_NOTE,
			  .p_offset = sizeof(start),
			  .p_filesz = sizeof(*files) + sizeof(thread),
			  .p_align = 4 },
			{
				.p_type = PT_LOAD,
				.p_offset = sizeof(start) + sizeof(*files) + sizeof(thread),
				.p_vaddr = BASE,
				.p_flags = PF_R | PF_W,
				.p_filesz = sizeof(*memory),
			},
		},
	};

	MUST(fwrite(&start, sizeof(start), 1, stdout) == 1);
	MUST(fwrite(files, sizeof(*files), 1, stdout) == 1);
	MUST(fwrite(&thread, sizeof(thread), 1, stdout) == 1);
	MUST(fwrite(memory, sizeof(*memory), 1, stdout) == 1);
	MUST(fflush(stdout) == 0);
}

int main(int argc, char **argv)
{
	static struct memory memory;
	static struct files files;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "sizes") == 0) {
		printf("registry=%zu record=%zu panic=%zu thread=%zu\n", sizeof(memory.registry),
		       sizeof(struct tdt_task_record), sizeof(memory.panic), sizeof(memory.thread));
		return 0;
	}
	make_memory(&memory);
	make_files(&files);
	for (int i = 1; i < argc; i++)
		if (!resize(&memory, argv[i]) && !damage(&memory, &files, argv[i]))
			return 2;
	lay_panics(&memory);
	write_core(&memory, &files);
	return 0;
}
