// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The reader of core files, from the headers to the printed trees and the recording.  The target
 * begins with a sound core file: a registry, a task that waits and has a last tree, a task that is
 * being polled by a thread with a stack, a suspended fiber, a task with a list of frames, and the
 * rings of the flight recorder.  The input says what is damaged:
 *
 *	one byte: how many bytes are changed, 1, 4 or 8 (modulo 3)
 *	two bytes: where in the file
 *	the bytes
 *
 * and so on.  So any input is of use.  What is printed may not harm a terminal.
 */

#include <config.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tdt/hooks.h>
#include <tdt/leaf.h>
#include <tdt/recording.h>

#include "base/clock.h"
#include "fuzz.h"
#include "reader/core.h"
#include "reader/dump.h"
#include "reader/elf_facts.h"
#include "reader/recorded.h"
#include "recording/read.h"
#include "recording/summary.h"
#include "recording/supplement.h"
#include "symbolize/modules.h"
#include "tree-printer/dumps.h"
#include "tree-printer/summaries.h"

#define BASE UINT64_C(0x7f0000000000)
#define STACK 64 /* words */
#define ROOM 64  /* slots of a ring */

/* A block of the recorder. */
struct block {
	struct tdt_recording header;
	struct tdt_recording_ring ring[2];
	struct tdt_recording_stacks stacks;
	uint32_t bucket[2];
	struct tdt_recording_stack stack;
	uint64_t pc[2];
	struct tdt_event slot[2][ROOM];
};

/* What lies in memory, from BASE on. */
struct memory {
	struct tdt_registry registry;
	Elf64_Ehdr elf; /* of a module */
	Elf64_Phdr header[2];
	struct {
		Elf64_Nhdr header;
		char name[4];
		unsigned char id[20];
	} build_id;
	struct tdt_registry_counters counters;
	struct tdt_registry_slab slab[2];
	struct tdt_task_record record[4];
	struct tdt_leaf leaf;
	struct tdt_leaf_frame calls[2];
	struct tdt_registry_watched watched;
	struct {
		struct tdt_registry_tree tree;
		struct tdt_registry_entry entry[4];
	} tree[2];
	struct tdt_registry_fiber fiber;
	struct tdt_lock lock;
	uint64_t unloads;
	uint64_t stack[STACK];
	char file[16];
	struct block block;
};

static struct __attribute__((packed)) {
	Elf64_Ehdr elf;
	Elf64_Phdr header[2];
	struct memory memory;
	Elf64_Nhdr files_header;
	char files_name[8];
	uint64_t files_count, page, start, end, offset;
	char path[16];
	Elf64_Nhdr thread_header;
	char thread_name[8];
	struct elf_prstatus thread;
} core;

#define IN_MODULE(member) (offsetof(struct memory, member) - offsetof(struct memory, elf))
#define ADDRESS_OF(member) (BASE + offsetof(struct memory, member))
#define OFFSET_OF(member) ((size_t)((char *)&core.member - (char *)&core))

/* --- The sound file ----------------------------------------------------------------------- */

static void make_ident(unsigned char *ident)
{
	memcpy(ident, ELFMAG, SELFMAG);
	ident[EI_CLASS] = ELFCLASS64;
	ident[EI_DATA] = TDT__OWN_DATA;
}

static void make_tasks(struct memory *memory)
{
	struct tdt_task_record *record = memory->record;

	record[0] = (struct tdt_task_record){
		.state = TDT_TASK_RECORD_IDLE, .id = 1, .polls = 2, .wait_polls = 2,
		.wait_kind = TDT_WAIT_MUTEX, .wait_count = 1, .wait_owner = 3, .woken = 5,
		.wait_object = ADDRESS_OF(lock), .wait_name = ADDRESS_OF(file),
		.tree = ADDRESS_OF(watched), .file = ADDRESS_OF(file), .name = "waits",
		.poll = BASE,
	};
	record[1] = (struct tdt_task_record){
		.state = TDT_TASK_RECORD_POLLING, .id = 2, .polls = 1, .thread = 7,
		.stack_top = ADDRESS_OF(stack[STACK - 8]), .parent = 1, .poll = BASE,
	};
	record[2] = (struct tdt_task_record){
		.state = TDT_TASK_RECORD_IDLE, .id = 3, .polls = 1, .wait_polls = 1,
		.wait_kind = TDT_WAIT_TASK, .wait_count = 1, .wait_owner = 1, .woken = 5,
		.child_state = ADDRESS_OF(fiber), .suspended_pc = BASE + 512,
		.suspended_sp = ADDRESS_OF(stack), .suspended_fp = ADDRESS_OF(stack[4]),
		.stack_top = ADDRESS_OF(stack[STACK - 8]),
	};
	record[3] = (struct tdt_task_record){
		.state = TDT_TASK_RECORD_IDLE, .id = 4, .polls = 1, .leaf = ADDRESS_OF(leaf),
	};
	memory->leaf = (struct tdt_leaf){ .kind = TDT_LEAF_NAMED, .n = 2, .task = 4, .polls = 1 };
	memory->leaf.named = (const void *)(uintptr_t)ADDRESS_OF(calls);
	memory->calls[0].function = (const void *)(uintptr_t)ADDRESS_OF(file);
	memory->slab[0] = (struct tdt_registry_slab){ .next = ADDRESS_OF(slab[1]) };
	memory->slab[1] =
		(struct tdt_registry_slab){ .records = ADDRESS_OF(record), .used = 4, .room = 4 };
	memory->fiber = (struct tdt_registry_fiber){ .low = ADDRESS_OF(stack),
						     .size = sizeof memory->stack };
	memory->lock = (struct tdt_lock){ .magic = TDT_LOCK_MAGIC, .owner = 3,
					   .handed = 1 };
	memory->watched = (struct tdt_registry_watched){ .published = 1, .room = 4 };
	memory->tree[1].tree = (struct tdt_registry_tree){ .polls = 2, .n = 2, .leaves = 1 };
	memory->tree[1].entry[0] =
		(struct tdt_registry_entry){ .pc = BASE + 256, .parent = 1, .leaves = 1 };
	memory->tree[1].entry[1] =
		(struct tdt_registry_entry){ .pc = BASE + 300, .parent = TDT_REGISTRY_TOP };
	for (size_t i = 0; i < STACK; i++)
		memory->stack[i] = i % 3 == 0 ? BASE + 260 + i : ADDRESS_OF(stack) + 8 * i;
}

static struct tdt_recording_ring make_ring(uint32_t kind, size_t slots, uint64_t head)
{
	return (struct tdt_recording_ring){
		.head = head, .slots = slots, .room = ROOM, .kind = kind, .thread = 7
	};
}

/* A full ring of wake-ups and polls, which have a stack; and one of the service. */
static void make_block(struct block *block)
{
	block->header = (struct tdt_recording){ .magic = TDT_RECORDING_MAGIC,
						.version = TDT_RECORDING_VERSION,
						.size = sizeof block->header,
						.bytes = sizeof *block,
						.rings = offsetof(struct block, ring),
						.n_rings = 2,
						.ring_size = sizeof block->ring[0],
						.stacks = offsetof(struct block, stacks),
						.clock = TDT_RECORDING_MONOTONIC,
						.hz = 1000000000 };
	block->ring[0] = make_ring(TDT_RING_POLLS, offsetof(struct block, slot[0]), 3 * ROOM / 2);
	block->ring[1] = make_ring(TDT_RING_SERVICE, offsetof(struct block, slot[1]), 2);
	block->stacks = (struct tdt_recording_stacks){
		.bytes = offsetof(struct block, slot) - offsetof(struct block, stacks),
		.used = offsetof(struct block, slot) - offsetof(struct block, stacks),
		.n_buckets = 2,
	};
	block->stack.n = 2;
	block->pc[0] = block->pc[1] = BASE + 256;
	for (unsigned i = 0; i < ROOM; i++) {
		struct tdt_event *event = &block->slot[0][(i + ROOM / 2) % ROOM];

		*event = (struct tdt_event){ .kind = TDT_EVENT_WAKE, .time = i, .task = i % 5 };
		if (i % 3 == 1)
			*event = (struct tdt_event){ .kind = TDT_EVENT_STACK, .a = 4, .task = 1 };
		if (i % 3 == 2)
			*event = (struct tdt_event){ .kind = TDT_EVENT_POLL, .time = i, .a = 1,
						     .detail = TDT_PENDING, .task = 1 };
	}
	block->slot[1][0] = (struct tdt_event){ .kind = TDT_EVENT_TASK, .time = 5, .task = 1 };
}

static void make_registry(struct memory *memory)
{
	memory->registry = (struct tdt_registry){
		.magic = TDT_REGISTRY_MAGIC,
		.version = TDT_REGISTRY_VERSION,
		.size = sizeof memory->registry,
		.self = BASE,
		.slabs = ADDRESS_OF(slab),
		.record_size = sizeof(struct tdt_task_record),
		.stride = sizeof(struct tdt_task_record),
		.library = "0",
		.pid = 1,
		.unloads = ADDRESS_OF(unloads),
		.counters = ADDRESS_OF(counters),
		.n_counters = 1,
		.rings = ADDRESS_OF(block),
	};
	memory->elf = (Elf64_Ehdr){ .e_machine = TDT__OWN_MACHINE,
				    .e_phoff = sizeof memory->elf,
				    .e_phentsize = sizeof memory->header[0],
				    .e_phnum = 2 };
	make_ident(memory->elf.e_ident);
	memory->header[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_memsz = 1 << 20 };
	memory->header[1] = (Elf64_Phdr){ .p_type = PT_NOTE,
					  .p_offset = IN_MODULE(build_id),
					  .p_vaddr = IN_MODULE(build_id),
					  .p_filesz = sizeof memory->build_id,
					  .p_align = 4 };
	memory->build_id.header =
		(Elf64_Nhdr){ 4, sizeof memory->build_id.id, NT_GNU_BUILD_ID };
	memcpy(memory->build_id.name, "GNU", 4);
	memcpy(memory->file, "file.c", 7);
}

static void make_core(void)
{
	static struct memory memory;

	memset(&core, 0, sizeof core);
	core.elf = (Elf64_Ehdr){ .e_type = ET_CORE,
				 .e_machine = TDT__OWN_MACHINE,
				 .e_phoff = OFFSET_OF(header),
				 .e_phentsize = sizeof core.header[0],
				 .e_phnum = 2 };
	make_ident(core.elf.e_ident);
	core.header[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				       .p_flags = PF_R | PF_W,
				       .p_vaddr = BASE,
				       .p_offset = OFFSET_OF(memory),
				       .p_filesz = sizeof core.memory,
				       .p_memsz = sizeof core.memory };
	core.header[1] = (Elf64_Phdr){ .p_type = PT_NOTE,
				       .p_offset = OFFSET_OF(files_header),
				       .p_filesz = sizeof core - OFFSET_OF(files_header) };
	core.files_header = (Elf64_Nhdr){ 5, OFFSET_OF(thread_header) - OFFSET_OF(files_count),
					  NT_FILE };
	core.thread_header = (Elf64_Nhdr){ 5, sizeof core.thread, NT_PRSTATUS };
	memcpy(core.files_name, "CORE", 5);
	memcpy(core.thread_name, "CORE", 5);
	core.files_count = 1;
	core.page = 4096;
	core.start = ADDRESS_OF(elf);
	core.end = BASE + 65536;
	memcpy(core.path, "/proc/self/exe", 15);
	core.thread.pr_pid = 7;
#ifdef __x86_64__
	core.thread.pr_reg[16] = BASE + 700;	     /* rip */
	core.thread.pr_reg[19] = ADDRESS_OF(stack); /* rsp */
#endif
	memset(&memory, 0, sizeof memory);
	make_registry(&memory);
	make_tasks(&memory);
	make_block(&memory.block);
	core.memory = memory;
}

/* --- What is damaged ---------------------------------------------------------------------- */

static void damage(const uint8_t *data, size_t size)
{
	static const size_t lengths[] = { 1, 4, 8 };

	while (size >= 3) {
		size_t length = lengths[data[0] % 3], at = data[1] | (size_t)data[2] << 8;

		data += 3;
		size -= 3;
		if (length > size)
			return;
		if (at <= sizeof core - length)
			memcpy((char *)&core + at, data, length);
		data += length;
		size -= length;
	}
}

/* --- Reading it --------------------------------------------------------------------------- */

static void print_findings(const struct tdt__findings *findings, enum tdt_print_format format)
{
	const struct tdt_print_options print = { .size = sizeof print,
						 .format = format,
						 .utf8 = TDT_PRINT_NO,
						 .color = TDT_PRINT_NO };
	const struct tdt_dump_options options = { .size = sizeof options, .print = &print };
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	CLAIM(out != NULL);
	CLAIM(tdt__snapshot_print_by(&findings->public, out, &options,
				     tdt__clock() + TDT__SECOND) == 0);
	fclose(out);
	if (format == TDT_PRINT_JSON)
		claim_json(text, n);
	else
		claim_harmless(text, n, false, false);
	free(text);
}

static void count_code(void *data, uint64_t address)
{
	*(uint64_t *)data += address != 0;
}

/* What was copied is a recording, whatever the target has.  Modules may name any file. */
static void print_recording(const void *block, size_t size)
{
	const struct tdt_print_options options = { .size = sizeof options, .utf8 = TDT_PRINT_NO };
	const struct tdt__summary_limits limits = { .rows = 5 };
	struct tdt__modules *none = tdt__modules_new(0);
	struct tdt__recording *recording;
	struct tdt__summary *summary;
	uint64_t addresses = 0;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	CLAIM(tdt__recording_open(&recording, block, size) == 0);
	tdt__recording_visit_code(block, count_code, &addresses);
	summary = tdt__summary_new(recording, &limits);
	CLAIM(out != NULL && none != NULL && summary != NULL);
	CLAIM(tdt__summary_print(summary, out, &options, true, none, 0) == 0);
	fclose(out);
	claim_harmless(text, n, false, false);
	free(text);
	tdt__summary_free(summary);
	tdt__recording_close(recording);
	tdt__modules_unref(none);
}

static void read_recording(struct tdt__target *target, struct tdt__images *images,
			   const struct tdt__found *found)
{
	struct tdt__trouble trouble = { "" };
	size_t size;
	void *copy;

	if (tdt__recorded_copy(target, images, found, &copy, &size, &trouble) != 0) {
		CLAIM(trouble.text[0] != '\0');
		return;
	}
	print_recording(copy, size);
	free(copy);
}

static void read_registry(struct tdt__target *target, struct tdt__images *images,
			  const struct tdt__found *found)
{
	const struct tdt__task_choice all = { NULL, 0 };
	const struct tdt__answers none = { 0 };
	struct tdt__sampling sampling = { 0 };
	struct tdt__findings *findings;
	struct tdt__tasks tasks;

	if (!found->known)
		return;
	CLAIM(tdt__tasks_read(&tasks, target, images, found) == 0);
	findings = tdt__outside_dump(&tasks, &all, &none, &sampling);
	CLAIM(findings != NULL);
	print_findings(findings, TDT_PRINT_TEXT);
	print_findings(findings, TDT_PRINT_JSON);
	tdt__findings_free(findings);
	tdt__tasks_fini(&tasks);
	read_recording(target, images, found);
}

/* --- The module as a file, too ------------------------------------------------------------ */

static bool read_module_bytes(void *image, uint64_t offset, void *buffer, size_t size)
{
	size_t room = sizeof core - OFFSET_OF(memory.elf);

	if (offset > room || size > room - offset)
		return false;
	memcpy(buffer, (char *)image + offset, size);
	return true;
}

/* What is in memory is in the file, as the headers stand.  Returns whether they are sound. */
static bool read_facts(bool loaded)
{
	struct tdt__elf_facts facts;

	if (!tdt__elf_facts(&facts, read_module_bytes, &core.memory.elf, loaded))
		return false;
	CLAIM(facts.end > facts.start);
	CLAIM(strspn(facts.build_id, "0123456789abcdef") == strlen(facts.build_id));
	return facts.build_id[0] != '\0';
}

static void read_core(const char *path)
{
	const struct tdt__places places = { .no_files = true };
	struct tdt__found found[TDT__REGISTRIES_MAX];
	struct tdt__trouble trouble;
	struct tdt__images images;
	struct tdt__target target;
	size_t n;

	if (tdt__target_open_core(&target, path, &trouble) != 0)
		return;
	CLAIM(tdt__images_init(&images, &target, &places) == 0);
	n = tdt__find(&target, found);
	for (size_t i = 0; i < n; i++)
		read_registry(&target, &images, &found[i]);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int file = memfd_create("core", MFD_CLOEXEC);
	char path[32];

	CLAIM(file >= 0);
	make_core();
	CLAIM(read_facts(true) && read_facts(false));
	damage(data, size);
	read_facts(true);
	read_facts(false);
	CLAIM(write(file, &core, sizeof core) == (ssize_t)sizeof core);
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	read_core(path);
	close(file);
	return 0;
}
