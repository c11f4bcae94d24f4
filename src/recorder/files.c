// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making the file of a recording, and removing those of processes that are gone. */

#include "recorder/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tdt/layout/recording.h>

#include "base/write_signals.h"
#include "recording/process.h"

struct found {
	char name[48];
	uint64_t bytes; /* that it takes */
	struct timespec changed;
	bool is_gone;   /* its process is */
};

#define FOUND_MOST 4096 /* no more files are looked at */

static bool read_recording_header(int dir, const char *name, struct tdt_recording *header)
{
	int file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = file >= 0 ? read(file, header, sizeof *header) : -1;

	if (file >= 0)
		close(file);
	return n == sizeof *header &&
	       memcmp(header->magic, TDT_RECORDING_MAGIC, sizeof header->magic) == 0;
}

/* Whether the file is a recording of ours, and if so, what is to be known of it. */
static bool look_at_file(int dir, const char *name, struct found *found)
{
	struct tdt_recording header;
	uint64_t pid, start;
	struct stat about;
	int n = 0;

	if (strlen(name) >= sizeof found->name ||
	    sscanf(name, "tdt-%" SCNu64 "-%" SCNu64 ".rec%n", &pid, &start, &n) != 2 ||
	    name[n] != '\0' || n == 0)
		return false;
	if (fstatat(dir, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode) ||
	    about.st_uid != geteuid() || !read_recording_header(dir, name, &header))
		return false;
	strcpy(found->name, name);
	found->bytes = (uint64_t)about.st_blocks * 512;
	found->changed = about.st_mtim;
	found->is_gone = tdt__recorded_process_gone(&header, pid, start);
	return true;
}

static int older_first(const void *a, const void *b)
{
	const struct timespec *x = &((const struct found *)a)->changed,
			      *y = &((const struct found *)b)->changed;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* List the recordings of the directory, the oldest first.  The caller frees the list. */
static struct found *list_files(int dir, size_t *n)
{
	struct found *list = calloc(FOUND_MOST, sizeof *list);
	int copy = dup(dir);
	DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *entry;

	*n = 0;
	if (entries != NULL)
		rewinddir(entries); /* its position is that of the descriptor that is kept */
	while (list != NULL && entries != NULL && *n < FOUND_MOST &&
	       (entry = readdir(entries)) != NULL)
		*n += look_at_file(dir, entry->d_name, &list[*n]);
	if (entries != NULL)
		closedir(entries);
	else if (copy >= 0)
		close(copy);
	if (list != NULL)
		qsort(list, *n, sizeof *list, older_first);
	return list;
}

/*
 * Whether the directory has room for `more` bytes in recordings, if necessary after files of
 * processes that are gone were removed.  Without memory for the list, it has none.
 */
static bool room_in_dir(int dir, uint64_t dir_size, uint64_t more)
{
	uint64_t all = more;
	size_t n;
	struct found *list = list_files(dir, &n);

	if (list == NULL)
		return false;
	for (size_t i = 0; i < n; i++)
		all += list[i].bytes;
	for (size_t i = 0; i < n && all > dir_size; i++)
		if (list[i].is_gone && (unlinkat(dir, list[i].name, 0) == 0 || errno == ENOENT))
			all -= list[i].bytes;
	free(list);
	return all <= dir_size;
}

/*
 * Create the file.  One of that name was left by this process, which has begun another block; or by
 * a process with the same id, which was started at the same time after an earlier boot.
 */
static int create_file(int dir, const char *name)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int file = openat(dir, name, flags, 0600);
	struct found found;

	if (file >= 0 || errno != EEXIST || !look_at_file(dir, name, &found))
		return file;
	unlinkat(dir, name, 0);
	return openat(dir, name, flags, 0600);
}

static int open_dir(struct tdt__record_file *file, const char *dir)
{
	int opened = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat about;

	if (opened < 0)
		return -errno;
	if (fstat(opened, &about) != 0) {
		close(opened);
		return -EIO;
	}
	file->dir = opened;
	file->dir_device = about.st_dev;
	file->dir_inode = about.st_ino;
	return 0;
}

static int make_in(struct tdt__record_file *file, const char *dir)
{
	struct stat about;
	char name[48];

	snprintf(name, sizeof name, "tdt-%d-%" PRIu64 ".rec", getpid(),
		 tdt__process_start((uint64_t)getpid()));
	if ((size_t)snprintf(file->path, sizeof file->path, "%s/%s", dir, name) >=
	    sizeof file->path)
		return -ENAMETOOLONG;
	file->descriptor = create_file(file->dir, name);
	if (file->descriptor < 0 || fstat(file->descriptor, &about) != 0)
		return -errno;
	file->device = about.st_dev;
	file->inode = about.st_ino;
	return 0;
}

int tdt__record_file_make(struct tdt__record_file *file, const char *dir, uint64_t dir_size)
{
	int error;

	*file = (struct tdt__record_file){ .descriptor = -1, .dir = -1, .dir_size = dir_size };
	error = open_dir(file, dir);
	if (error == 0)
		error = make_in(file, dir);
	if (error != 0) {
		tdt__record_file_close(file);
		file->path[0] = '\0';
	}
	return error;
}

static bool is_that_file(int descriptor, dev_t device, ino_t inode)
{
	struct stat about;

	return fstat(descriptor, &about) == 0 && about.st_dev == device && about.st_ino == inode;
}

/*
 * A descriptor of what is kept open, which the caller closes.  It is copied before it is looked at:
 * the host may close the kept one at any time.  Otherwise what has the path, if it is the same.
 */
static int open_again(int kept, const char *path, int flags, dev_t device, ino_t inode)
{
	int copy = kept >= 0 ? fcntl(kept, F_DUPFD_CLOEXEC, 0) : -1;

	if (copy >= 0 && is_that_file(copy, device, inode))
		return copy;
	if (copy >= 0)
		close(copy);
	copy = open(path, flags | O_CLOEXEC);
	if (copy < 0)
		return -errno;
	if (is_that_file(copy, device, inode))
		return copy;
	close(copy);
	return -ESTALE;
}

static int open_file_again(const struct tdt__record_file *file)
{
	return open_again(file->descriptor, file->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK,
			  file->device, file->inode);
}

static int open_dir_again(const struct tdt__record_file *file)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%.*s/", (int)(strrchr(file->path, '/') - file->path),
		 file->path);
	return open_again(file->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, file->dir_device,
			  file->dir_inode);
}

/*
 * Whether the directory of the file, which is `opened`, has room for `more` bytes.  After setuid()
 * this file is passed over in the directory, as those of other users are.
 */
static bool has_room(const struct tdt__record_file *file, int opened, uint64_t more)
{
	int dir = open_dir_again(file);
	struct stat own;
	bool has;

	if (fstat(opened, &own) == 0 && own.st_uid != geteuid())
		more += (uint64_t)own.st_blocks * 512;
	has = dir >= 0 && room_in_dir(dir, file->dir_size, more);
	if (dir >= 0)
		close(dir);
	return has;
}

/*
 * Under mlockall(MCL_FUTURE) the kernel fills a mapping with all its pages, unless it cannot be
 * accessed.
 */
static int map_part(int opened, void *memory, uint64_t offset, uint64_t size)
{
	if (mmap(memory, size, PROT_NONE, MAP_SHARED | MAP_FIXED, opened, (off_t)offset) ==
	    MAP_FAILED)
		return -errno;
	munlock(memory, size);
	return mprotect(memory, size, PROT_READ | PROT_WRITE) == 0 ? 0 : -errno;
}

int tdt__record_file_map(struct tdt__record_file *file, void *memory, uint64_t offset,
			 uint64_t size)
{
	int opened = open_file_again(file), error = -ENOSPC;
	struct tdt__write_signals signals;

	if (opened < 0)
		return opened;
	tdt__write_signals_block(&signals);
	if (has_room(file, opened, size))
		error = -posix_fallocate(opened, (off_t)offset, (off_t)size);
	tdt__write_signals_restore(&signals);
	if (error == 0)
		error = map_part(opened, memory, offset, size);
	close(opened);
	return error;
}

static void close_kept(int *descriptor, dev_t device, ino_t inode)
{
	if (*descriptor >= 0 && is_that_file(*descriptor, device, inode))
		close(*descriptor);
	*descriptor = -1;
}

void tdt__record_file_close(struct tdt__record_file *file)
{
	close_kept(&file->descriptor, file->device, file->inode);
	close_kept(&file->dir, file->dir_device, file->dir_inode);
}

void tdt__record_file_remove(struct tdt__record_file *file)
{
	struct stat about;

	if (file->path[0] != '\0' && lstat(file->path, &about) == 0 &&
	    about.st_dev == file->device && about.st_ino == file->inode)
		unlink(file->path);
	tdt__record_file_close(file);
	file->path[0] = '\0';
}
