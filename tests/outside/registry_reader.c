// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A reader outside: lists the tasks of a process, or of a core file.  It contains nothing of libtdt
 * but the layouts that <tdt/layout/registry.h> and <tdt/integrate/leaf.h> describe.
 *
 *	registry_reader [-a] PID
 *	registry_reader [-a] CORE-FILE
 *
 * It prints a line for each task: its id, its state (idle, runnable, polling, ended), its parent,
 * its polls, what it waits for (kind, object, owner and perhaps the name; or -), the line and the
 * file where it was spawned, its name, and the functions of the list at which it waits, if it has
 * one.  With -a, it also prints what the registry says about
 * the process: counters, threads and panics.  Bytes that are no printable ASCII are printed as
 * \x1b.
 *
 * The memory that it reads may be damaged, or made to do harm.  The reader compares it with what
 * the layout allows, has a limit for each number that it reads, and always terminates.
 */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <tdt/integrate/leaf.h>
#include <tdt/layout/registry.h>

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "registry_reader: ");
	perror(what);
	exit(1);
}

static void __attribute__((noreturn)) refuse(const char *why)
{
	fflush(stdout);
	fprintf(stderr, "registry_reader: %s\n", why);
	exit(1);
}

/* --- What is mapped ----------------------------------------------------------------- */

#define MOST_RANGES 65536

/* Memory that may contain a registry. */
struct range {
	uint64_t start, size;
};

static struct range ranges[MOST_RANGES];
static size_t n_ranges;

static void add_range(uint64_t start, uint64_t size)
{
	if (n_ranges < MOST_RANGES)
		ranges[n_ranges++] = (struct range){ start, size };
}

/* Files that are mapped. */
struct mapping {
	uint64_t start, end, offset;
	char *path;
};

static struct mapping mappings[4096];
static size_t n_mappings;

static void add_mapping(uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
	if (n_mappings < sizeof mappings / sizeof mappings[0] && path[0] == '/')
		mappings[n_mappings++] = (struct mapping){ start, end, offset, strdup(path) };
}

/*
 * Open the file of a mapping.  -1: it can't be opened, or is no regular file (a FIFO would block
 * the reader).
 */
static int open_mapped(const struct mapping *mapping)
{
	struct stat status;
	int file = open(mapping->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
		close(file);
		file = -1;
	}
	return file;
}

/* --- A process ---------------------------------------------------------------------- */

static pid_t pid; /* 0: the target is a core file */

static void read_map(const char *line)
{
	uint64_t start, end, offset, inode;
	char access[5], path[4096] = "";

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %4095[^\n]",
		   &start, &end, access, &offset, &inode, path) < 5 ||
	    end <= start || inode == 0)
		return;
	add_mapping(start, end, offset, path);
	if (access[0] == 'r' && access[1] == 'w' && access[3] == 'p')
		add_range(start, end - start);
}

static void open_process(const char *number)
{
	char path[64], line[4352];
	FILE *file;

	pid = atoi(number);
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (file == NULL)
		die(path);
	while (fgets(line, sizeof line, file) != NULL)
		read_map(line);
	fclose(file);
}

/* --- A core file -------------------------------------------------------------------- */

static int core;

/* The memory in the core file. */
static struct segment {
	uint64_t start, size, offset;
} segments[MOST_RANGES];
static size_t n_segments;

static uint64_t number(const char *numbers, uint64_t index)
{
	uint64_t value;

	memcpy(&value, numbers + index * sizeof(value), sizeof(value));
	return value;
}

/*
 * The note has the number of mapped files and the size of a page; then start, end and offset (in
 * pages) of each file; then the names.
 */
static void read_files(const char *note, size_t size)
{
	size_t room = size / sizeof(uint64_t), n = room < 2 ? 0 : (room - 2) / 3, length;
	const char *name, *end = note + size;

	if (n == 0 || number(note, 0) > n)
		return;
	n = number(note, 0);
	name = note + (2 + 3 * n) * sizeof(uint64_t);
	for (size_t i = 0; i < n; i++, name += length + 1) {
		length = strnlen(name, (size_t)(end - name));
		if (length == (size_t)(end - name))
			return;
		add_mapping(number(note, 2 + 3 * i), number(note, 3 + 3 * i),
			    number(note, 4 + 3 * i) * number(note, 1), name);
	}
}

static void read_notes(Elf *elf, const GElf_Phdr *header)
{
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)header->p_offset, header->p_filesz,
					      ELF_T_NHDR);
	size_t at = 0, name, content;
	GElf_Nhdr note;

	while (data != NULL && (at = gelf_getnote(data, at, &note, &name, &content)) != 0)
		if (note.n_type == 0x46494c45) /* NT_FILE */
			read_files((const char *)data->d_buf + content, note.n_descsz);
}

static void add_segment(const GElf_Phdr *header)
{
	if (n_segments == MOST_RANGES || header->p_filesz > UINT64_MAX - header->p_vaddr ||
	    header->p_filesz > UINT64_MAX - header->p_offset)
		return;
	segments[n_segments++] =
	    (struct segment){ header->p_vaddr, header->p_filesz, header->p_offset };
	if ((header->p_flags & PF_R) != 0 && (header->p_flags & PF_W) != 0)
		add_range(header->p_vaddr, header->p_filesz);
}

static void open_core(const char *path)
{
	GElf_Phdr header;
	Elf *elf;
	size_t n;

	elf_version(EV_CURRENT);
	core = open(path, O_RDONLY | O_CLOEXEC);
	elf = elf_begin(core, ELF_C_READ_MMAP, NULL);
	if (core < 0 || elf == NULL || elf_getphdrnum(elf, &n) != 0)
		die(path);
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, &header) == NULL)
			continue;
		if (header.p_type == PT_NOTE)
			read_notes(elf, &header);
		else if (header.p_type == PT_LOAD)
			add_segment(&header);
	}
	elf_end(elf);
}

/* The segment with the byte at `address`; NULL: none. */
static const struct segment *segment_at(uint64_t address)
{
	static size_t last; /* mostly the next address lies in the same segment */

	for (size_t n = 0; n < n_segments; n++, last = (last + 1) % n_segments)
		if (address - segments[last].start < segments[last].size)
			return &segments[last];
	return NULL;
}

/* What lies together in memory may lie in several segments, as initialized data and other data. */
static bool read_core(uint64_t address, void *buffer, size_t size)
{
	while (size > 0) {
		const struct segment *segment = segment_at(address);
		uint64_t in = segment != NULL ? address - segment->start : 0;
		size_t n = segment != NULL && segment->size - in < size ? segment->size - in : size;

		if (segment == NULL ||
		    pread(core, buffer, n, (off_t)(segment->offset + in)) != (ssize_t)n)
			return false;
		address += n;
		buffer = (char *)buffer + n;
		size -= n;
	}
	return true;
}

/* --- Memory of either --------------------------------------------------------------- */

static bool read_memory(uint64_t address, void *buffer, size_t size)
{
	struct iovec here = { buffer, size }, there = { (void *)(uintptr_t)address, size };

	if (pid != 0) {
		ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

		if (n < 0 && errno == EPERM)
			die("process_vm_readv");
		return n == (ssize_t)size;
	}
	return read_core(address, buffer, size);
}

/* Read a string from a file that is mapped.  Returns its length. */
static size_t read_from_file(uint64_t address, char *string, size_t size)
{
	ssize_t n = 0;

	for (size_t i = 0; i < n_mappings && n <= 0; i++) {
		const struct mapping *mapping = &mappings[i];
		int file;

		if (address < mapping->start || address >= mapping->end)
			continue;
		file = open_mapped(mapping);
		n = pread(file, string, size - 1,
			  (off_t)(mapping->offset + address - mapping->start));
		close(file);
	}
	return n > 0 ? (size_t)n : 0;
}

/* A core file may lack memory that can be read from the file that was mapped there. */
static void read_string(uint64_t address, char *string, size_t size)
{
	size_t n = 0;

	for (; n + 1 < size && read_memory(address + n, &string[n], 1); n++)
		if (string[n] == '\0')
			return;
	if (n == 0)
		n = read_from_file(address, string, size);
	string[n] = '\0';
}

/* --- Finding registries ------------------------------------------------------------- */

#define MOST_REGISTRIES 64
#define MOST_SEARCHED (UINT64_C(1) << 30) /* bytes of one range */

static uint64_t found[MOST_REGISTRIES];
static size_t n_found;

/* Whether a registry begins at this address: it is no copy, and has a layout that we know. */
static bool is_registry(uint64_t address)
{
	struct tdt_registry registry;

	if (!read_memory(address, &registry, sizeof registry) || registry.self != address)
		return false;
	if (registry.version == TDT_REGISTRY_VERSION && registry.size >= sizeof registry &&
	    registry.record_size >= sizeof(struct tdt_task_record) &&
	    registry.stride >= registry.record_size && registry.stride <= 65536)
		return true;
	fprintf(stderr, "registry_reader: a registry at %#" PRIx64 " has another layout\n",
		address);
	return false;
}

static void search(const struct range *range)
{
	static char page[65536];
	uint64_t end = range->start +
		       (range->size < MOST_SEARCHED ? range->size : MOST_SEARCHED);

	for (uint64_t at = (range->start + 63) & ~UINT64_C(63); at < end; at += sizeof page) {
		size_t size = end - at < sizeof page ? end - at : sizeof page;

		if (!read_memory(at, page, size))
			return;
		for (size_t i = 0; i + 8 <= size; i += 64)
			if (memcmp(&page[i], TDT_REGISTRY_MAGIC, 8) == 0 &&
			    n_found < MOST_REGISTRIES && is_registry(at + i))
				found[n_found++] = at + i;
	}
}

/* --- The records -------------------------------------------------------------------- */

#define MOST_SLABS 65536
#define MOST_RECORDS (UINT64_C(1) << 24)

static struct tdt_registry_slab slab_at(uint64_t address)
{
	struct tdt_registry_slab slab;

	if (!read_memory(address, &slab, sizeof slab))
		die("a slab");
	if (slab.used > slab.room)
		refuse("a slab has more records than room");
	return slab;
}

/*
 * Read the record until nothing of it changes, or only what changes in each poll.  False: there is
 * no task.
 */
static bool read_record(uint64_t address, struct tdt_task_record *record, bool *still)
{
	uint64_t at_seq = address + offsetof(struct tdt_task_record, seq);
	struct tdt_task_record first;
	uint32_t seq;

	*still = false;
	for (int i = 0; i < 100; i++) {
		if (!read_memory(address, &first, sizeof first) ||
		    !read_memory(address, record, sizeof *record) ||
		    !read_memory(at_seq, &seq, sizeof seq))
			die("a record");
		if (first.seq != record->seq || seq != record->seq)
			continue;
		if (record->seq % 2 != 0 || record->state == TDT_TASK_RECORD_FREE)
			return false;
		*still = memcmp(&first, record, sizeof first) == 0;
		if (*still || i >= 10)
			return true;
	}
	return false;
}

static void print_escaped(const char *text, size_t size)
{
	for (size_t i = 0; i < size && text[i] != '\0'; i++)
		if (text[i] == '\\')
			printf("\\\\");
		else if (text[i] >= ' ' && text[i] <= '~')
			putchar(text[i]);
		else
			printf("\\x%02x", (unsigned char)text[i]);
}

static const char *state_of(const struct tdt_task_record *record)
{
	static const char *const states[] = { "free", "idle", "polling", "ended" };

	if (record->state == TDT_TASK_RECORD_IDLE && record->woken != 0 &&
	    record->woken_polls == (uint32_t)record->polls)
		return "runnable";
	return states[record->state & 3];
}

/* The name belongs to the host: use it only if the task was not polled meanwhile. */
static void print_wait_name(uint64_t address, const struct tdt_task_record *record)
{
	char name[TDT_TASK_RECORD_NAME_SIZE];
	struct tdt_task_record after;
	bool still;

	if (record->wait_name == 0)
		return;
	read_string(record->wait_name, name, sizeof name);
	if (!read_record(address, &after, &still) || after.seq != record->seq ||
	    after.state != record->state || after.polls != record->polls ||
	    after.wait_name != record->wait_name)
		return;
	putchar(',');
	print_escaped(name, sizeof name);
}

static void print_wait(uint64_t address, const struct tdt_task_record *record)
{
	printf("%d,%" PRIu64 ",%" PRIu64, record->wait_kind, record->wait_object,
	       record->wait_owner);
	print_wait_name(address, record);
}

#define MOST_LISTED 16

/* Read the functions of a list that is in force.  Returns how many there are. */
static uint32_t read_list(const struct tdt_task_record *record, char names[MOST_LISTED][64])
{
	struct tdt_leaf leaf;
	uint32_t n = 0;

	if (record->state != TDT_TASK_RECORD_IDLE || record->leaf == 0 ||
	    !read_memory(record->leaf, &leaf, sizeof leaf) || leaf.task != record->id ||
	    leaf.polls != record->polls || leaf.kind != TDT_LEAF_NAMED)
		return 0;
	for (; n < leaf.n && n < MOST_LISTED; n++) {
		struct tdt_leaf_frame frame;

		if (!read_memory((uintptr_t)leaf.frames + n * sizeof frame, &frame, sizeof frame))
			break;
		names[n][0] = '\0';
		if (frame.function != NULL)
			read_string((uintptr_t)frame.function, names[n], sizeof names[n]);
	}
	return n;
}

/* The list belongs to the host: use it only if the task has not gone on meanwhile. */
static void print_list(uint64_t address, const struct tdt_task_record *record)
{
	char names[MOST_LISTED][64];
	uint32_t n = read_list(record, names);
	struct tdt_task_record after;
	bool still;

	if (n == 0 || !read_record(address, &after, &still) || after.seq != record->seq ||
	    after.state != record->state || after.polls != record->polls ||
	    after.leaf != record->leaf)
		return;
	printf(" at");
	for (uint32_t i = 0; i < n; i++) {
		putchar(' ');
		print_escaped(names[i], sizeof names[i]);
	}
}

static void print(uint64_t address, const struct tdt_task_record *record, bool still)
{
	char file[256] = "";

	if (record->file != 0)
		read_string(record->file, file, sizeof file);
	printf("%" PRIu64 " %s %" PRIu64 " %" PRIu64 " ", record->id, state_of(record),
	       record->parent, record->polls);
	if (still && record->state == TDT_TASK_RECORD_IDLE && record->wait_count != 0 &&
	    record->wait_polls == (uint32_t)record->polls)
		print_wait(address, record);
	else
		putchar('-');
	printf(" %" PRIu32 " ", record->line);
	print_escaped(file, sizeof file);
	putchar(' ');
	print_escaped(record->name, sizeof record->name);
	if (still)
		print_list(address, record);
	putchar('\n');
}

/* What is counted while the records are read. */
struct sums {
	uint64_t records, live, polls;
};

static void print_slab(const struct tdt_registry *registry, const struct tdt_registry_slab *slab,
		       struct sums *sums)
{
	for (uint32_t i = 0; i < slab->used; i++) {
		uint64_t address = slab->records + (uint64_t)i * registry->stride;
		struct tdt_task_record record;
		bool still;

		if (sums->records++ == MOST_RECORDS)
			refuse("too many records");
		if (!read_record(address, &record, &still))
			continue;
		print(address, &record, still);
		sums->live += record.state != TDT_TASK_RECORD_ENDED;
		sums->polls += record.polls;
	}
}

static void print_slabs(const struct tdt_registry *registry, struct sums *sums)
{
	uint64_t address = registry->slabs;

	for (int n = 0; address != 0; n++) {
		struct tdt_registry_slab slab;

		if (n == MOST_SLABS)
			refuse("too many slabs");
		slab = slab_at(address);
		print_slab(registry, &slab, sums);
		address = slab.next;
	}
}

/* --- The process -------------------------------------------------------------------- */

#define MOST_COUNTERS 1024
#define MOST_THREADS 65536
#define MOST_PANICS 1024

static struct tdt_registry_counters sum_counters(const struct tdt_registry *registry)
{
	struct tdt_registry_counters sum = { 0 }, one;

	if (registry->n_counters > MOST_COUNTERS)
		refuse("too many counters");
	for (uint32_t i = 0; i < registry->n_counters; i++) {
		if (!read_memory(registry->counters + i * sizeof one, &one, sizeof one))
			die("a counter");
		sum.spawned += one.spawned;
		sum.panicked += one.panicked;
		sum.polls += one.polls;
		sum.captures += one.captures;
		sum.dumps += one.dumps;
	}
	return sum;
}

static void print_threads(const struct tdt_registry *registry)
{
	struct tdt_registry_thread thread;
	uint64_t address;

	if (registry->n_threads > MOST_THREADS)
		refuse("too many threads");
	for (uint32_t i = 0; i < registry->n_threads; i++)
		if (read_memory(registry->threads + i * sizeof address, &address, sizeof address) &&
		    address != 0 && read_memory(address, &thread, sizeof thread) &&
		    thread.id % registry->n_threads == i)
			printf("thread %" PRIu32 "%s%s\n", thread.id,
			       thread.worker != 0 ? " worker" : "",
			       thread.parked != 0 ? " parked" : "");
}

static void print_panics(const struct tdt_registry *registry)
{
	struct tdt_registry_panic panic;
	uint32_t before, after;

	if (registry->n_panics > MOST_PANICS || (registry->n_panics != 0 &&
	    registry->panic_size < sizeof(struct tdt_registry_panic)))
		refuse("panics have another layout");
	for (uint32_t i = 0; i < registry->n_panics; i++) {
		uint64_t at = registry->panics + i * (uint64_t)registry->panic_size;

		if (!read_memory(at, &before, sizeof before) ||
		    !read_memory(at, &panic, sizeof panic) ||
		    !read_memory(at, &after, sizeof after))
			die("a panic");
		if (panic.number == 0 || before % 2 != 0 || before != panic.seq || before != after)
			continue;
		printf("panic %" PRIu64 " task %" PRIu64 " ", panic.number, panic.id);
		print_escaped(panic.name, sizeof panic.name);
		putchar('\n');
	}
}

static void print_process(const struct tdt_registry *registry,
			  const struct tdt_registry_counters *counters, const struct sums *sums)
{
	printf("libtdt ");
	print_escaped(registry->library, sizeof registry->library);
	printf(" in process %" PRIu32 "\n", registry->pid);
	printf("%" PRIu64 " spawned %" PRIu64 " ended %" PRIu64 " panicked %" PRIu64
	       " polls %" PRIu64 " captures %" PRIu64 " dumps\n",
	       counters->spawned, counters->spawned - sums->live, counters->panicked,
	       counters->polls + sums->polls, counters->captures, counters->dumps);
	print_threads(registry);
	print_panics(registry);
}

static void print_registry(uint64_t address, bool all)
{
	struct tdt_registry_counters counters;
	struct tdt_registry registry;
	struct sums sums = { 0 };

	if (!read_memory(address, &registry, sizeof registry))
		die("the registry");
	counters = sum_counters(&registry);
	print_slabs(&registry, &sums);
	if (all)
		print_process(&registry, &counters, &sums);
}

int main(int argc, char **argv)
{
	bool all = argc > 1 && strcmp(argv[1], "-a") == 0;
	const char *target = argv[1 + all];

	if (argc != 2 + all)
		return 2;
	if (strspn(target, "0123456789") == strlen(target))
		open_process(target);
	else
		open_core(target);
	for (size_t i = 0; i < n_ranges; i++)
		search(&ranges[i]);
	if (n_found == 0)
		refuse("no registry");
	for (size_t i = 0; i < n_found; i++)
		print_registry(found[i], all);
	return 0;
}
