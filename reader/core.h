/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A core file that was opened: the segments of memory that it has, and its notes.  The target
 * (target.h) has it, and reads from it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/procfs.h>

struct tdt__segment {
	uint64_t start, size; /* in memory; only what the file has */
	uint64_t offset;      /* in the file */
	bool writable;
};

struct tdt__core {
	int file;
	struct tdt__segment *segment; /* by start */
	size_t n_segments;
	uint64_t missing; /* bytes of memory that the file should have: it was truncated */
	struct elf_prstatus *thread; /* the registers of the threads */
	size_t n_threads, threads_room;
	uint64_t entry; /* the program's first instruction; 0: unknown */
};

/* The end of the segment that has `address`; 0: none has it. */
uint64_t tdt__core_end(const struct tdt__core *core, uint64_t address);

/* Read memory from the core file.  Returns how many bytes there are from `address` on. */
size_t tdt__core_read(const struct tdt__core *core, uint64_t address, void *buffer, size_t size);

/* The registers of the thread `id`; NULL: there is no such thread. */
const struct elf_prstatus *tdt__core_thread(const struct tdt__core *core, uint32_t id);

void tdt__core_free(struct tdt__core *core); /* NULL does nothing */
