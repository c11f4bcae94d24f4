/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The files of recordings in a directory: dir/tdt-PID-START.rec.
 *
 * All bytes of a file that threads write to are allocated before they are mapped: a full file
 * system must not end the process by SIGBUS.  So a file grows as the recorder's thread needs it.
 *
 * The file and its directory are kept open for that, since after setuid() or chroot(), or when the
 * file has another name, or none, they can't be opened again.  But a daemon may have closed the
 * descriptors, and have used their numbers for something else.  So a descriptor is used only if it
 * is still that of the file, by device and inode; otherwise the file is opened by its path.
 */

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

struct tdt__record_file {
	char path[PATH_MAX]; /* "": there is no file */
	int descriptor, dir; /* -1: none */
	dev_t device;        /* to recognize the file */
	ino_t inode;
	dev_t dir_device; /* the same of its directory */
	ino_t dir_inode;
	uint64_t dir_size;   /* the most bytes of all recordings in the directory */
};

/*
 * Make the file of this process in the directory, whose path is absolute.  It is empty.  Returns 0
 * or a negative errno.
 */
int tdt__record_file_make(struct tdt__record_file *file, const char *dir, uint64_t dir_size);

/*
 * Allocate bytes of the file, and map them at `memory`, in the place of what is there.  Files of
 * processes that are gone are removed first, the oldest first, as long as all files would have more
 * than `dir_size` bytes.  Returns 0 or a negative errno; -ENOSPC: files of live processes leave no
 * room, or the file system is full; -ESTALE: neither the descriptor nor the path is that of the
 * file any more.
 */
int tdt__record_file_map(struct tdt__record_file *file, void *memory, uint64_t offset,
			 uint64_t size);

/* Close what is kept open.  The file stays. */
void tdt__record_file_close(struct tdt__record_file *file);

/* Remove the file, if it is there, and forget it. */
void tdt__record_file_remove(struct tdt__record_file *file);
