// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A sound core file, and how an input damages it: see core_image.h. */

#include <config.h>

#include "core_image.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>
#include <tdt/layout/recording.h>
#include <tdt/layout/registry.h>

#include "fuzz.h"
#include "reader/elf_facts.h"

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
	struct tdt_registry_context context;
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
		.poll = BASE, .context = ADDRESS_OF(context),
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
	memory->context = (struct tdt_registry_context){
		.context = { .trace_id = { 1 }, .span_id = { 2 }, .valid = 1 },
	};
	memory->leaf = (struct tdt_leaf){ .kind = TDT_LEAF_NAMED, .n = 2, .task = 4, .polls = 1 };
	memory->leaf.frames = (const void *)(uintptr_t)ADDRESS_OF(calls);
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

void core_image_make(void)
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

bool core_image_read_module(void *unused, uint64_t offset, void *buffer, size_t size)
{
	size_t room = sizeof core - OFFSET_OF(memory.elf);

	(void)unused;
	if (offset > room || size > room - offset)
		return false;
	memcpy(buffer, (char *)&core.memory.elf + offset, size);
	return true;
}

int core_image_open(char path[CORE_IMAGE_PATH])
{
	int file = memfd_create("core", MFD_CLOEXEC);

	CLAIM(file >= 0);
	CLAIM(write(file, &core, sizeof core) == (ssize_t)sizeof core);
	snprintf(path, CORE_IMAGE_PATH, "/proc/self/fd/%d", file);
	return file;
}

/* --- What is damaged ---------------------------------------------------------------------- */

bool damage_next(struct damage *damage, const uint8_t **data, size_t *size)
{
	static const size_t lengths[] = { 1, 4, 8 };

	if (*size < 3)
		return false;
	*damage = (struct damage){ .kind = **data,
				   .at = (*data)[1] | (size_t)(*data)[2] << 8,
				   .bytes = *data + 3,
				   .length = lengths[**data % 3] };
	*data += 3;
	*size -= 3;
	if (damage->length > *size)
		return false;
	*data += damage->length;
	*size -= damage->length;
	return true;
}

void core_image_damage(const struct damage *damage)
{
	if (damage->at <= sizeof core - damage->length)
		memcpy((char *)&core + damage->at, damage->bytes, damage->length);
}
