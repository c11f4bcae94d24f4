// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process that has no tasks, but a registry that says it has, and lies about them.
 *
 *	liar LIE [SEED]
 *
 * It prints "ready", and ends with its input.  The lies:
 *
 *	none      four tasks
 *	endless   there are millions of tasks: all slabs have the same records
 *	same      100,000 tasks have the same id, the same parent, and wait for each other
 *	parents   the parents of 100,000 tasks form a ring
 *	huge      the tree of 100,000 tasks has 65,536 frames
 *	deep      a tree is a path of 1,024 frames
 *	leaves    half of a tree's 1,024 frames are leaves, each at the end of another path
 *	places    each task was spawned in a file with another name, which is very long
 *	names     names are not UTF-8, have escapes, and do not end
 *	layout    there is a second registry, with another layout
 *	stacks    the stacks of polls have no end, and belong to other processes
 *	stalls    whoever looks for modules waits for ever (exit status 77: that is not permitted)
 *	chaos     all of it changes at random, all the time
 */

#include <config.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tdt/integrate/leaf.h>
#include <tdt/layout/registry.h>

#include "lib/must.h"

enum { FEW = 4, MANY = 100000, SLABS = 65536, FRAMES = 1024, ENTRIES = 65536 };

/* The magic words are written later, so that the file of this program has no registry. */
static _Alignas(64) struct tdt_registry registry[2] = {
	{ .version = TDT_REGISTRY_VERSION, .size = sizeof registry[0],
	  .record_size = sizeof(struct tdt_task_record), .stride = sizeof(struct tdt_task_record),
	  .library = "0" },
	{ .version = TDT_REGISTRY_VERSION + 1, .size = sizeof registry[0] },
};
static struct tdt_task_record *record;
static size_t records = FEW;
static struct tdt_registry_slab *slab;
static struct {
	struct tdt_registry_watched head;
	struct {
		struct tdt_registry_tree tree;
		struct tdt_registry_entry entry[FRAMES];
	} tree[2];
	struct tdt_registry_entry more[2 * ENTRIES]; /* of a tree that is said to be larger */
} watched;
static struct tdt_leaf list;
static char name[64] = "\033[2J\xff\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xe2\x80\xae";

static uint64_t address_of(const void *pointer)
{
	return (uintptr_t)pointer;
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	MUST(memory != MAP_FAILED);
	return memory;
}

/* --- A sound registry ------------------------------------------------------------------ */

static void make_records(void)
{
	record = map(records * sizeof record[0]);
	for (size_t i = 0; i < records; i++) {
		record[i] = (struct tdt_task_record){
			.state = TDT_TASK_RECORD_IDLE, .id = i + 1, .polls = 1, .wait_polls = 1,
			.woken = 1, .spawned = 1, .since = 1, .file = address_of(__FILE__),
			.line = 1, .tree = address_of(&watched), .thread = (uint32_t)getpid(),
		};
		snprintf(record[i].name, sizeof record[i].name, "task %zu", i + 1);
	}
}

/* The first slab has all records, unless there are more slabs. */
static void make_slabs(size_t slabs)
{
	slab = map(slabs * sizeof slab[0]);
	for (size_t i = 0; i < slabs; i++)
		slab[i] = (struct tdt_registry_slab){
			.next = i + 1 < slabs ? address_of(&slab[i + 1]) : 0,
			.records = address_of(record),
			.used = (uint32_t)records,
			.room = (uint32_t)records,
		};
}

/* A tree with one leaf at the end of a path of `n` frames. */
static void make_tree(uint32_t n)
{
	watched.head = (struct tdt_registry_watched){ .published = 1,
						       .room = n < FRAMES ? FRAMES : n };
	watched.tree[1].tree = (struct tdt_registry_tree){ .polls = 1, .n = n, .leaves = 1 };
	for (uint32_t i = 0; i < n && i < FRAMES; i++)
		watched.tree[1].entry[i] = (struct tdt_registry_entry){
			.pc = address_of(make_tree) + i,
			.parent = i + 1 < n ? i + 1 : TDT_REGISTRY_TOP,
			.leaves = i == 0,
		};
}

/* --- Lies ------------------------------------------------------------------------------ */

/* Each task waits for what `owner` says. */
static void wait_for(uint64_t (*owner)(size_t i))
{
	for (size_t i = 0; i < records; i++) {
		record[i].wait_count = 1;
		record[i].wait_kind = TDT_WAIT_TASK;
		record[i].wait_owner = owner(i);
	}
}

static uint64_t first_id(size_t i)
{
	(void)i;
	return 1;
}

static uint64_t next_id(size_t i)
{
	return record[(i + 1) % records].id;
}

static void tell_same(void)
{
	for (size_t i = 0; i < records; i++)
		record[i].id = record[i].parent = 1;
	wait_for(first_id);
}

static void tell_parents(void)
{
	for (size_t i = 0; i < records; i++)
		record[i].parent = next_id(i);
	wait_for(next_id);
}

/* The tree is a path, and each frame of the other half of the entries calls its middle. */
static void tell_leaves(void)
{
	make_tree(FRAMES / 2);
	watched.tree[1].tree.n = FRAMES;
	watched.tree[1].tree.leaves = FRAMES / 2 + 1;
	for (uint32_t i = FRAMES / 2; i < FRAMES; i++)
		watched.tree[1].entry[i] = (struct tdt_registry_entry){
			.pc = i, .parent = i - FRAMES / 2, .leaves = 1
		};
}

static void tell_places(void)
{
	char *text = map(records + 8192);

	memset(text, '\033', records + 8191);
	for (size_t i = 0; i < records; i++)
		record[i].file = address_of(text + i);
}

static void tell_names(void)
{
	memset(record[0].name, 0xff, sizeof record[0].name); /* and no NUL */
	memcpy(record[1].name, name, sizeof name);
	memset(record[2].name, '\033', sizeof record[2].name);
	memcpy(record[3].name, "\"}],\n\t\\", 8);
	for (size_t i = 0; i < records; i++) {
		record[i].wait_count = 1;
		record[i].wait_kind = UINT8_MAX;
		record[i].wait_name = i % 2 != 0 ? address_of(name) : 8;
		record[i].file = i % 2 != 0 ? address_of(name) : UINT64_MAX;
	}
}

static void tell_stacks(void)
{
	static const uint64_t tops[] = { 0, 8, UINT64_MAX, UINT64_MAX / 2 };

	list = (struct tdt_leaf){ .kind = TDT_LEAF_NAMED, .n = UINT32_MAX, .task = 4, .polls = 1 };
	list.frames = (const void *)record;
	for (size_t i = 0; i < FEW; i++) {
		record[i].state = TDT_TASK_RECORD_POLLING;
		record[i].stack_top = tops[i];
		record[i].thread = i % 2 != 0 ? 1 : (uint32_t)getpid();
	}
	record[2].state = record[3].state = TDT_TASK_RECORD_IDLE;
	record[2].suspended_pc = address_of(make_tree);
	record[2].suspended_sp = address_of(record);
	record[2].poll = 1;
	record[3].leaf = address_of(&list);
}

/* A file is mapped, as modules are, in memory that this process would have to supply first. */
static void tell_stalls(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register stalled = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC), file = memfd_create("stalls", 0);
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *memory;

	MUST(ftruncate(file, (off_t)size) == 0);
	memory = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
	MUST(memory != MAP_FAILED);
	stalled.range = (struct uffdio_range){ address_of(memory), size };
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0 ||
	    ioctl(faults, UFFDIO_REGISTER, &stalled) != 0)
		exit(77);
}

/* --- Chaos ----------------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Numbers that are wrong in one way or another. */
static uint64_t any_number(void)
{
	const uint64_t numbers[] = {
		0, 1, UINT32_MAX, UINT64_MAX, next_random(), next_random() % 64,
		address_of(record), address_of(&watched), address_of(registry), address_of(slab),
		address_of(&list), address_of(name), address_of(any_number),
	};

	return numbers[next_random() % (sizeof numbers / sizeof numbers[0])];
}

static void scribble(void *memory, size_t size)
{
	uint64_t number = any_number();
	size_t length = (size_t)1 << next_random() % 4;

	memcpy((char *)memory + next_random() % (size / length) * length, &number, length);
}

/* The magic and the place of the registry stay, so that it is found. */
static void *make_chaos(void *unused)
{
	for (;;) {
		make_tree(FEW);
		for (int i = 0; i < 100; i++) {
			scribble(record, FEW * sizeof record[0]);
			scribble(&watched, 256);
			scribble(watched.tree[1].entry, 256);
			scribble(&list, sizeof list);
			if (i % 10 == 0)
				scribble(slab, sizeof slab[0]);
		}
		make_slabs(1);
		record[next_random() % FEW].state = TDT_TASK_RECORD_IDLE;
	}
	return unused;
}

static void tell_chaos(void)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, make_chaos, NULL) == 0);
}

static const struct {
	const char *name;
	size_t records, slabs;
	uint32_t frames;
	void (*tell)(void);
} lies[] = {
	{ "none", FEW, 1, FEW, NULL },
	{ "endless", 1000, SLABS, FEW, NULL },
	{ "same", MANY, 1, FEW, tell_same },
	{ "parents", MANY, 1, FEW, tell_parents },
	{ "huge", MANY, 1, ENTRIES, NULL },
	{ "deep", FEW, 1, FRAMES, NULL },
	{ "leaves", FEW, 1, FEW, tell_leaves },
	{ "places", MANY, 1, FEW, tell_places },
	{ "names", FEW, 1, FEW, tell_names },
	{ "layout", FEW, 1, FEW, NULL },
	{ "stacks", FEW, 1, FEW, tell_stacks },
	{ "stalls", FEW, 1, FEW, tell_stalls },
	{ "chaos", FEW, 1, FEW, tell_chaos },
};

static void publish(struct tdt_registry *to)
{
	to->self = address_of(to);
	to->slabs = address_of(slab);
	to->pid = (uint32_t)getpid();
	memcpy(to->magic, TDT_REGISTRY_MAGIC, sizeof to->magic);
}

int main(int argc, char **argv)
{
	size_t lie = 0;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	MUST(argc > 1);
	while (strcmp(argv[1], lies[lie].name) != 0)
		MUST(++lie < sizeof lies / sizeof lies[0]);
	random_state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) | 1;
	records = lies[lie].records;
	make_records();
	make_slabs(lies[lie].slabs);
	make_tree(lies[lie].frames);
	publish(&registry[0]);
	if (strcmp(argv[1], "layout") == 0)
		publish(&registry[1]);
	if (lies[lie].tell != NULL)
		lies[lie].tell();
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	_exit(EXIT_SUCCESS);
}
