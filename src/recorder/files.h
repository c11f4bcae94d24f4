/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_RECORDER_FILES_H
#define TDT_SRC_RECORDER_FILES_H

/*
 * The files of recordings in a directory: dir/tdt-PID-START.rec.
 *
 * All bytes of a file that threads write to are allocated before: a full file system must not end
 * the process by SIGBUS.  The descriptor is closed at once, because a daemon may close it and use
 * its number for something else.  To allocate more, the file is opened again, by its path.
 */

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

struct tdt__record_file {
	char path[PATH_MAX]; /* "": there is no file */
	dev_t device;        /* to recognize the file */
	ino_t inode;
	uint64_t dir_size;   /* the most bytes of all recordings in the directory */
};

/*
 * Make the file of this process in the directory, whose path is absolute, and map it.  It has
 * `size` bytes, of which `allocated` are allocated.  Files of processes that are gone are removed
 * first, the oldest first, as long as all files would have more than `dir_size` bytes.  Returns 0
 * or a negative errno; -ENOSPC: files of live processes leave no room, or the file system is full.
 */
int tdt__record_file_make(struct tdt__record_file *file, const char *dir, uint64_t dir_size,
			  uint64_t size, uint64_t allocated, void **memory);

/*
 * Allocate more of the file, within the same limit.  Returns 0 or a negative errno; -ESTALE: the
 * path is that of another file by now.
 */
int tdt__record_file_allocate(const struct tdt__record_file *file, uint64_t offset, uint64_t size);

/* Remove the file and forget it, if it is there. */
void tdt__record_file_remove(struct tdt__record_file *file);

#endif
