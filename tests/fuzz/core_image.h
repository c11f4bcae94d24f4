/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_FUZZ_CORE_IMAGE_H
#define TESTS_FUZZ_CORE_IMAGE_H

/*
 * A sound core file: a registry, a task that waits and has a last tree, a task that is being polled
 * by a thread with a stack, a suspended fiber, a task with a list of frames, and the rings of the
 * flight recorder.  The input of a target says what is damaged in it:
 *
 *	one byte: how many bytes are changed, 1, 4 or 8 (modulo 3)
 *	two bytes: where in the file
 *	the bytes
 *
 * and so on.  So any input is of use.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORE_IMAGE_PATH 32 /* the room for its path */

/* Make the file, which has no damage. */
void core_image_make(void);

/* Read the module that is mapped in it, as if it were a file (elf_facts.h). */
bool core_image_read_module(void *unused, uint64_t offset, void *buffer, size_t size);

/* Write the file to memory, and find its path.  The caller closes the descriptor. */
int core_image_open(char path[CORE_IMAGE_PATH]);

struct damage {
	uint8_t kind; /* the first byte */
	size_t at, length;
	const uint8_t *bytes;
};

/* Take the next damage from the input.  False: there is none. */
bool damage_next(struct damage *damage, const uint8_t **data, size_t *size);

void core_image_damage(const struct damage *damage);

#endif
