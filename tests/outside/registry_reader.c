// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A reader outside: lists the tasks of a process, or of a core file, with nothing of libtdt's in it
 * but the layout that <tdt/registry.h> tells.
 *
 * 	registry_reader PID
 * 	registry_reader CORE-FILE
 *
 * It prints a line a task: its id, state, parent, polls, whether what it waits for is told (kind
 * object owner, or -), the line and the file where it was spawned, its name.  Bytes of names that
 * are no printable ASCII come out as \x1b.
 *
 * What it reads may be damaged, or made to do harm.  The reader compares it with what the layout
 * allows, and always comes to an end.
 */

#include <config.h>

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <tdt/registry.h>

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

/* --- What is mapped --------------------------------------------------------------- */

struct mapping {
	uint64_t start, end, offset;
	char *path;
};

static struct mapping mappings[4096];
static size_t n_mappings;
/* Where those of the program lie in memory, which tells the program from its libraries. */
static uint64_t program_headers;

static void add_mapping(uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
	if (n_mappings < sizeof mappings / sizeof mappings[0] && path[0] == '/')
		mappings[n_mappings++] = (struct mapping){ start, end, offset, strdup(path) };
}

/*
 * Open the file that is said to be mapped; -1: it can't be, or is no regular file (a FIFO would
 * block us).
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

static void read_auxv(const uint64_t *auxv, size_t size)
{
	for (size_t i = 0; i + 1 < size / sizeof *auxv; i += 2)
		if (auxv[i] == 3) /* AT_PHDR */
			program_headers = auxv[i + 1];
}

/* --- A process --------------------------------------------------------------------- */

static pid_t pid; /* 0: it is a core file */

static void open_process(const char *number)
{
	char path[64], line[4352], name[4096];
	uint64_t auxv[128], start, end, offset;
	FILE *file;

	pid = atoi(number);
	snprintf(path, sizeof path, "/proc/%d/auxv", pid);
	file = fopen(path, "re");
	if (file == NULL)
		die(path);
	read_auxv(auxv, fread(auxv, 1, sizeof auxv, file));
	fclose(file);
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (file == NULL)
		die(path);
	while (fgets(line, sizeof line, file) != NULL)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %4095[^\n]",
			   &start, &end, &offset, name) == 4)
			add_mapping(start, end, offset, name);
	fclose(file);
}

/* --- A core file --------------------------------------------------------------------- */

static int core;
static Elf *core_elf;

static uint64_t number(const char *numbers, uint64_t index)
{
	uint64_t value;

	memcpy(&value, numbers + index * sizeof(value), sizeof(value));
	return value;
}

/* Mapped files: how many, the size of a page; of each start, end and offset in pages; the names. */
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

static void read_notes(const GElf_Phdr *segment)
{
	Elf_Data *data = elf_getdata_rawchunk(core_elf, (int64_t)segment->p_offset,
					      segment->p_filesz, ELF_T_NHDR);
	size_t at = 0, name, content;
	GElf_Nhdr note;

	while (data != NULL && (at = gelf_getnote(data, at, &note, &name, &content)) != 0) {
		const char *bytes = (const char *)data->d_buf + content;

		if (note.n_type == 0x46494c45) /* NT_FILE */
			read_files(bytes, note.n_descsz);
		else if (note.n_type == 6) /* NT_AUXV */
			read_auxv((const void *)bytes, note.n_descsz);
	}
}

static void open_core(const char *path)
{
	GElf_Phdr segment;
	size_t n;

	core = open(path, O_RDONLY | O_CLOEXEC);
	core_elf = elf_begin(core, ELF_C_READ_MMAP, NULL);
	if (core < 0 || core_elf == NULL || elf_getphdrnum(core_elf, &n) != 0)
		die(path);
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(core_elf, (int)i, &segment) != NULL && segment.p_type == PT_NOTE)
			read_notes(&segment);
}

static bool read_core(uint64_t address, void *buffer, size_t size)
{
	GElf_Phdr segment;
	size_t n;

	if (elf_getphdrnum(core_elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(core_elf, (int)i, &segment) == NULL || segment.p_type != PT_LOAD ||
		    address < segment.p_vaddr || address - segment.p_vaddr > segment.p_filesz ||
		    size > segment.p_filesz - (address - segment.p_vaddr))
			continue;
		return pread(core, buffer, size,
			     (off_t)(segment.p_offset + address - segment.p_vaddr)) ==
		       (ssize_t)size;
	}
	return false;
}

/* --- Memory of either ------------------------------------------------------------------ */

/* `twice`: read it a second time, after the first, behind that. */
static bool read_memory(uint64_t address, void *buffer, size_t size, bool twice)
{
	struct iovec here = { buffer, twice ? 2 * size : size };
	struct iovec there[] = { { (void *)(uintptr_t)address, size },
				 { (void *)(uintptr_t)address, size } };

	if (pid != 0)
		return process_vm_readv(pid, &here, 1, there, twice ? 2 : 1, 0) ==
		       (ssize_t)here.iov_len;
	return read_core(address, buffer, size) &&
	       (!twice || read_core(address, (char *)buffer + size, size));
}

/* As a core file may not have what can be read from the file that is mapped there. */
static void read_string(uint64_t address, char *string, size_t size)
{
	size_t n = 0;

	for (; n + 1 < size && read_memory(address + n, &string[n], 1, false); n++)
		if (string[n] == '\0')
			return;
	for (size_t i = 0; i < n_mappings && n == 0; i++) {
		int file;

		if (address < mappings[i].start || address >= mappings[i].end)
			continue;
		file = open_mapped(&mappings[i]);
		n = (size_t)pread(file, string, size - 1,
				  (off_t)(mappings[i].offset + address - mappings[i].start));
		close(file);
		if (n >= size)
			n = 0;
	}
	string[n] = '\0';
}

/* --- The symbol -------------------------------------------------------------------------- */

/* The value of the symbol, if this section defines it; or 0. */
static uint64_t find_in(Elf_Scn *section, const GElf_Shdr *header, Elf *elf)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (int i = 0; data != NULL && gelf_getsym(data, i, &symbol) != NULL; i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (symbol.st_shndx != SHN_UNDEF && name != NULL &&
		    strcmp(name, "tdt_registry") == 0)
			return symbol.st_value;
	}
	return 0;
}

/*
 * The symbol's address in a file's own terms, and the address its first byte is to be at in those.
 */
static uint64_t find_in_file(Elf *elf, uint64_t *base)
{
	Elf_Scn *section = NULL;
	GElf_Phdr segment;
	GElf_Shdr header;
	uint64_t found = 0;
	size_t n;

	*base = 0;
	if (elf_getphdrnum(elf, &n) != 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &segment) != NULL && segment.p_type == PT_LOAD &&
		    segment.p_offset == 0)
			*base = segment.p_vaddr;
	while (found == 0 && (section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) != NULL &&
		    (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB))
			found = find_in(section, &header, elf);
	return found;
}

/* Where the file mapped there has the symbol in memory; or 0. */
static uint64_t address_by(const struct mapping *mapping)
{
	int file = open_mapped(mapping);
	Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
	uint64_t base, value = elf != NULL ? find_in_file(elf, &base) : 0;

	elf_end(elf);
	close(file);
	return value != 0 ? mapping->start - base + value : 0;
}

/* The program's own comes first: it may have taken the library's over by a copy relocation. */
static uint64_t find_registry(void)
{
	uint64_t found = 0;

	for (size_t i = 0; i < n_mappings; i++) {
		const struct mapping *mapping = &mappings[i];
		bool program = program_headers >= mapping->start && program_headers < mapping->end;
		uint64_t address =
		    mapping->offset == 0 && (found == 0 || program) ? address_by(mapping) : 0;

		if (address != 0)
			found = address;
		if (address != 0 && program)
			break;
	}
	return found;
}

/* --- The records --------------------------------------------------------------------------- */

static struct tdt_registry_slab slab_at(uint64_t address)
{
	struct tdt_registry_slab slab;

	if (!read_memory(address, &slab, sizeof slab, false))
		die("a slab");
	if (slab.used > slab.room)
		refuse("a slab has more records than room");
	return slab;
}

/*
 * New slabs come before the first, and none ever changes its place: so the list that begins at
 * `first` ends.  If it does not, one who takes two steps at a time meets one who takes one.
 */
static void check_list(uint64_t first)
{
	for (uint64_t slow = first, fast = first; fast != 0; slow = slab_at(slow).next) {
		fast = slab_at(fast).next;
		if (fast != 0)
			fast = slab_at(fast).next;
		if (fast != 0 && fast == slab_at(slow).next)
			refuse("slabs lead back to each other");
	}
}

/*
 * Read it until nothing of it changes, or only what does with each poll.  False: there is no task.
 */
static bool read_record(uint64_t address, struct tdt_record *record, bool *still)
{
	struct tdt_record both[2];

	*still = false;
	for (int i = 0; i < 100; i++) {
		if (!read_memory(address, both, sizeof both[0], true))
			die("a record");
		*record = both[1];
		if (both[0].seq != both[1].seq || both[0].id != both[1].id)
			continue;
		if (both[1].seq % 2 != 0 || both[1].state == TDT_RECORD_FREE)
			return false;
		*still = memcmp(&both[0], &both[1], sizeof both[0]) == 0;
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

static void print(const struct tdt_record *record, bool still)
{
	static const char *const states[] = { "free", "idle", "polling", "ended" };
	char file[256] = "";

	if (record->file != 0)
		read_string(record->file, file, sizeof file);
	printf("%" PRIu64 " %s %" PRIu64 " %" PRIu64 " ", record->id, states[record->state & 3],
	       record->parent, record->polls);
	if (still && record->state == TDT_RECORD_IDLE && record->wait_count != 0 &&
	    record->wait_polls == (uint32_t)record->polls)
		printf("%d,%" PRIu64 ",%" PRIu64 " ", record->wait_kind, record->wait_object,
		       record->wait_owner);
	else
		printf("- ");
	printf("%" PRIu32 " ", record->line);
	print_escaped(file, sizeof file);
	putchar(' ');
	print_escaped(record->name, sizeof record->name);
	putchar('\n');
}

static void print_slab(const struct tdt_registry *registry, const struct tdt_registry_slab *slab)
{
	for (uint32_t i = 0; i < slab->used; i++) {
		struct tdt_record record;
		bool still;

		if (read_record(slab->records + (uint64_t)i * registry->stride, &record, &still))
			print(&record, still);
	}
}

int main(int argc, char **argv)
{
	struct tdt_registry registry;
	uint64_t address;

	if (argc != 2)
		return 2;
	elf_version(EV_CURRENT);
	if (strspn(argv[1], "0123456789") == strlen(argv[1]))
		open_process(argv[1]);
	else
		open_core(argv[1]);
	address = find_registry();
	if (address == 0)
		refuse("no tdt_registry");
	if (!read_memory(address, &registry, sizeof registry, false))
		die("the registry");
	if (memcmp(registry.magic, TDT_REGISTRY_MAGIC, sizeof registry.magic) != 0 ||
	    registry.version != TDT_REGISTRY_VERSION ||
	    registry.record_size < sizeof(struct tdt_record) ||
	    registry.stride < registry.record_size)
		refuse("another layout");
	check_list(registry.slabs);
	for (uint64_t address_of = registry.slabs; address_of != 0;) {
		struct tdt_registry_slab slab = slab_at(address_of);

		print_slab(&registry, &slab);
		address_of = slab.next;
	}
	return 0;
}
