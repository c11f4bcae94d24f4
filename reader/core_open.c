// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Opening a core file, made by the kernel or by a debugger.  The file cannot be trusted, so its
 * headers are read by hand: all numbers are compared with the size of the file.
 */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/regular_file.h"
#include "reader/core.h"
#include "reader/elf_facts.h"
#include "reader/target.h"
#include "reader/unpack.h"

#define MOST_SEGMENTS (1u << 20)
#define MOST_NOTE_BYTES (UINT64_C(64) << 20)
#define MOST_CORE_THREADS 65536

struct core_opening {
	struct tdt__target *target;
	struct tdt__core *core;
	const char *path;
	uint64_t size; /* of the file */
	struct tdt__trouble *trouble;
};

static bool read_core_file(const struct core_opening *opening, uint64_t offset, void *buffer,
			   size_t size)
{
	return offset <= opening->size && size <= opening->size - offset &&
	       pread(opening->core->file, buffer, size, (off_t)offset) == (ssize_t)size;
}

static int damaged(const struct core_opening *opening)
{
	return tdt__trouble(opening->trouble, -ENOEXEC, "%s is no core file, or is damaged",
			    opening->path);
}

static int core_no_memory(const struct core_opening *opening)
{
	return tdt__trouble(opening->trouble, -ENOMEM, "there is not enough memory");
}

static uint64_t note_word(const char *words, size_t index)
{
	uint64_t word;

	memcpy(&word, words + index * sizeof word, sizeof word);
	return word;
}

/*
 * NT_FILE has the number of mapped files and the size of a page; then start, end and offset (in
 * pages) of each file; then the paths.
 */
static bool add_files(struct core_opening *opening, char *note, size_t size)
{
	size_t room = size / sizeof(uint64_t), n = room < 2 ? 0 : (room - 2) / 3, length;
	char *path, *end = note + size;

	if (n == 0 || note_word(note, 0) > n)
		return true;
	n = (size_t)note_word(note, 0);
	path = note + (2 + 3 * n) * sizeof(uint64_t);
	for (size_t i = 0; i < n; i++, path += length + 1) {
		struct tdt__mapping mapping = {
			.start = note_word(note, 2 + 3 * i),
			.end = note_word(note, 3 + 3 * i),
			.offset = note_word(note, 4 + 3 * i) * note_word(note, 1),
			.is_file = true,
			.readable = true,
			.path = path,
		};

		length = strnlen(path, (size_t)(end - path));
		if (length == (size_t)(end - path))
			return true;
		if (mapping.end > mapping.start &&
		    !tdt__target_add_mapping(opening->target, &mapping))
			return false;
	}
	return true;
}

static bool add_thread(struct tdt__core *core, const char *note, size_t size)
{
	if (size < sizeof core->thread[0] || core->n_threads == MOST_CORE_THREADS)
		return true;
	if (!tdt__array_grow(&core->thread, core->n_threads, &core->threads_room,
			     sizeof core->thread[0]))
		return false;
	memcpy(&core->thread[core->n_threads++], note, sizeof core->thread[0]);
	return true;
}

static void note_entry(struct tdt__core *core, const char *note, size_t size)
{
	for (size_t i = 0; i + 1 < size / sizeof(uint64_t); i += 2)
		if (note_word(note, i) == AT_ENTRY)
			core->entry = note_word(note, i + 1);
}

/* False: no memory. */
static bool use_note(struct core_opening *opening, const Elf64_Nhdr *note, char *content)
{
	switch (note->n_type) {
	case NT_FILE:
		return add_files(opening, content, note->n_descsz);
	case NT_PRSTATUS:
		return add_thread(opening->core, content, note->n_descsz);
	case NT_AUXV:
		note_entry(opening->core, content, note->n_descsz);
	}
	return true;
}

/* Notes of core files are aligned to 4 bytes. */
static bool use_notes(struct core_opening *opening, char *notes, size_t size)
{
	Elf64_Nhdr note;

	for (size_t at = 0; size - at >= sizeof note;) {
		size_t content;

		memcpy(&note, notes + at, sizeof note);
		content = at + sizeof note + (((size_t)note.n_namesz + 3) & -(size_t)4);
		if (content > size || note.n_descsz > size - content)
			return true;
		if (!use_note(opening, &note, notes + content))
			return false;
		at = content + (((size_t)note.n_descsz + 3) & -(size_t)4);
		if (at > size)
			return true;
	}
	return true;
}

static int read_core_notes(struct core_opening *opening, const Elf64_Phdr *header)
{
	char *notes;
	int error = 0;

	if (header->p_filesz > MOST_NOTE_BYTES)
		return damaged(opening);
	if (header->p_offset > opening->size || header->p_filesz > opening->size - header->p_offset)
		return tdt__trouble(opening->trouble, -ENOEXEC,
				    "%s is truncated: it lacks what describes the process",
				    opening->path);
	notes = malloc(header->p_filesz + 1);
	if (notes == NULL)
		return core_no_memory(opening);
	if (!read_core_file(opening, header->p_offset, notes, header->p_filesz))
		error = damaged(opening);
	else if (!use_notes(opening, notes, header->p_filesz))
		error = core_no_memory(opening);
	free(notes);
	return error;
}

/* A file that was cut short has less of a segment than its header says. */
static void add_segment(struct core_opening *opening, const Elf64_Phdr *header)
{
	struct tdt__core *core = opening->core;
	uint64_t size = header->p_filesz;

	if ((header->p_flags & PF_R) == 0)
		return;
	if (header->p_offset >= opening->size)
		size = 0;
	else if (size > opening->size - header->p_offset)
		size = opening->size - header->p_offset;
	core->missing += header->p_filesz - size;
	if (size == 0 || size > UINT64_MAX - header->p_vaddr)
		return;
	core->segment[core->n_segments++] = (struct tdt__segment){
		.start = header->p_vaddr,
		.size = size,
		.offset = header->p_offset,
		.writable = (header->p_flags & PF_W) != 0,
	};
}

/* The number of program headers; where there are many, section 0 says it. */
static uint64_t count_headers(const struct core_opening *opening, const Elf64_Ehdr *elf)
{
	Elf64_Shdr section;

	if (elf->e_phnum != PN_XNUM)
		return elf->e_phnum;
	return read_core_file(opening, elf->e_shoff, &section, sizeof section) ? section.sh_info
									       : 0;
}

static int read_headers(struct core_opening *opening, uint64_t at, size_t n)
{
	struct tdt__core *core = opening->core;
	Elf64_Phdr header;
	int error = 0;

	core->segment = malloc(n * sizeof core->segment[0]);
	if (core->segment == NULL)
		return core_no_memory(opening);
	for (size_t i = 0; i < n && error == 0; i++, at += sizeof header) {
		if (!read_core_file(opening, at, &header, sizeof header))
			return damaged(opening);
		if (header.p_type == PT_NOTE)
			error = read_core_notes(opening, &header);
		else if (header.p_type == PT_LOAD)
			add_segment(opening, &header);
	}
	tdt__array_sort(core->segment, core->n_segments, sizeof core->segment[0]);
	return error;
}

static int read_elf(struct core_opening *opening)
{
	Elf64_Ehdr elf;
	uint64_t n;

	if (!read_core_file(opening, 0, &elf, sizeof elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_type != ET_CORE)
		return damaged(opening);
	if (elf.e_ident[EI_CLASS] != ELFCLASS64)
		return tdt__trouble(opening->trouble, -ENOEXEC,
				    "%s is of a 32-bit program, and tdt reads only 64-bit ones",
				    opening->path);
	if (elf.e_machine != TDT__OWN_MACHINE || elf.e_ident[EI_DATA] != TDT__OWN_DATA)
		return tdt__trouble(opening->trouble, -ENOEXEC,
				    "%s is of another architecture (ELF machine %d): read it with "
				    "a tdt that was built for that one",
				    opening->path, elf.e_machine);
	n = count_headers(opening, &elf);
	if (n == 0 || n > MOST_SEGMENTS || elf.e_phentsize != sizeof(Elf64_Phdr) ||
	    n > opening->size / sizeof(Elf64_Phdr))
		return damaged(opening);
	return read_headers(opening, elf.e_phoff, (size_t)n);
}

/* What is writable is known of segments; files are mapped there. */
static void mark_writable(struct tdt__target *target)
{
	const struct tdt__core *core = target->core;

	for (size_t i = 0; i < core->n_segments; i++) {
		struct tdt__mapping *mapping = tdt__target_mapping(target, core->segment[i].start);

		if (mapping != NULL && core->segment[i].writable)
			mapping->writable = true;
	}
}

static int open_core_file(const char *path, struct tdt__trouble *trouble)
{
	int file = tdt__regular_open(AT_FDCWD, path);

	if (file == -EINVAL)
		return tdt__trouble(trouble, file, "%s is not a regular file", path);
	if (file < 0)
		return tdt__trouble(trouble, file, "%s: %s", path, strerror(-file));
	return tdt__unpack(file, path, trouble);
}

int tdt__target_open_core(struct tdt__target *target, const char *path,
			  struct tdt__trouble *trouble)
{
	struct core_opening opening = { .target = target, .path = path, .trouble = trouble };
	struct stat status;
	int file = open_core_file(path, trouble), error;

	if (file < 0)
		return file;
	*target = (struct tdt__target){ .proc = -1 };
	opening.core = target->core = calloc(1, sizeof *target->core);
	if (target->core == NULL) {
		close(file);
		return core_no_memory(&opening);
	}
	target->core->file = file;
	opening.size = fstat(file, &status) == 0 ? (uint64_t)status.st_size : 0;
	error = read_elf(&opening);
	if (error != 0) {
		tdt__target_close(target);
		return error;
	}
	tdt__array_sort(target->mapping, target->n_mappings, sizeof target->mapping[0]);
	mark_writable(target);
	return 0;
}
