// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making the file of a recording, and removing those of processes that are gone. */

#include <config.h>

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
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tdt/recording.h>

/* --- Processes ------------------------------------------------------------- */

/*
 * When the process was started, in clock ticks since boot.  0: there is no such process, or it
 * cannot be read.  The name of the program, in parentheses, may contain anything.
 */
static uint64_t start_of(uint64_t pid)
{
	char text[1024], path[32], *at;
	uint64_t start = 0;
	ssize_t n;
	int file;

	snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	n = read(file, text, sizeof text - 1);
	close(file);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at != NULL)
		start = strtoull(at, NULL, 10);
	return start;
}

/* --- The files of a directory ---------------------------------------------- */

struct found {
	char name[48];
	uint64_t bytes; /* that it takes */
	struct timespec changed;
	bool is_gone;   /* its process is */
};

#define FOUND_MOST 4096 /* no more files are looked at */

static bool is_recording(int dir, const char *name)
{
	char magic[8] = "";
	int file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = file >= 0 ? read(file, magic, sizeof magic) : -1;

	if (file >= 0)
		close(file);
	return n == sizeof magic && memcmp(magic, TDT_RECORDING_MAGIC, sizeof magic) == 0;
}

/* Whether the file is a recording of ours, and if so, what is to be known of it. */
static bool look_at_file(int dir, const char *name, struct found *found)
{
	uint64_t pid, start;
	struct stat about;
	int n = 0;

	if (strlen(name) >= sizeof found->name ||
	    sscanf(name, "tdt-%" SCNu64 "-%" SCNu64 ".rec%n", &pid, &start, &n) != 2 ||
	    name[n] != '\0' || n == 0)
		return false;
	if (fstatat(dir, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode) ||
	    about.st_uid != geteuid() || !is_recording(dir, name))
		return false;
	strcpy(found->name, name);
	found->bytes = (uint64_t)about.st_blocks * 512;
	found->changed = about.st_mtim;
	found->is_gone = start_of(pid) != start;
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
		if (list[i].is_gone && unlinkat(dir, list[i].name, 0) == 0)
			all -= list[i].bytes;
	free(list);
	return all <= dir_size;
}

/* --- The file of this process ---------------------------------------------- */

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

/* Whether a file may be so large.  Otherwise the kernel would send SIGXFSZ. */
static bool may_have(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	       size <= limit.rlim_cur;
}

static int map_file(int file, uint64_t size, uint64_t allocated, void **memory)
{
	int error;

	if (!may_have(size))
		return -EFBIG;
	if (ftruncate(file, (off_t)size) != 0)
		return -errno;
	error = posix_fallocate(file, 0, (off_t)allocated);
	if (error != 0)
		return -error;
	*memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	return *memory != MAP_FAILED ? 0 : -errno;
}

static int make_file(struct tdt__record_file *file, int dir, const char *name, uint64_t size,
		     uint64_t allocated, void **memory)
{
	int opened = create_file(dir, name), error;
	struct stat about;

	if (opened < 0)
		return -errno;
	error = map_file(opened, size, allocated, memory);
	if (error == 0 && fstat(opened, &about) == 0) {
		file->device = about.st_dev;
		file->inode = about.st_ino;
	}
	close(opened);
	if (error != 0)
		unlinkat(dir, name, 0);
	return error;
}

static int make_in(struct tdt__record_file *file, const char *dir, int opened, uint64_t size,
		   uint64_t allocated, void **memory)
{
	char name[48];

	snprintf(name, sizeof name, "tdt-%d-%" PRIu64 ".rec", getpid(),
		 start_of((uint64_t)getpid()));
	if ((size_t)snprintf(file->path, sizeof file->path, "%s/%s", dir, name) >=
	    sizeof file->path)
		return -ENAMETOOLONG;
	return make_file(file, opened, name, size, allocated, memory);
}

int tdt__record_file_make(struct tdt__record_file *file, const char *dir, uint64_t dir_size,
			  uint64_t size, uint64_t allocated, void **memory)
{
	int opened = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;

	file->path[0] = '\0';
	file->dir_size = dir_size;
	if (opened < 0)
		return -errno;
	error = room_in_dir(opened, dir_size, allocated)
			? make_in(file, dir, opened, size, allocated, memory)
			: -ENOSPC;
	close(opened);
	if (error != 0)
		file->path[0] = '\0';
	return error;
}

static int open_again(const struct tdt__record_file *file)
{
	int opened = open(file->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat about;

	if (opened < 0)
		return -errno;
	if (fstat(opened, &about) == 0 && about.st_dev == file->device &&
	    about.st_ino == file->inode)
		return opened;
	close(opened);
	return -ESTALE;
}

/* Whether the directory of the file has room for `more` bytes. */
static bool has_room(const struct tdt__record_file *file, uint64_t more)
{
	size_t length = (size_t)(strrchr(file->path, '/') - file->path);
	char path[PATH_MAX];
	bool has;
	int dir;

	snprintf(path, sizeof path, "%.*s/", (int)length, file->path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	has = dir >= 0 && room_in_dir(dir, file->dir_size, more);
	if (dir >= 0)
		close(dir);
	return has;
}

int tdt__record_file_allocate(const struct tdt__record_file *file, uint64_t offset, uint64_t size)
{
	int opened = open_again(file), error = -ENOSPC;

	if (opened < 0)
		return opened;
	if (has_room(file, size))
		error = -posix_fallocate(opened, (off_t)offset, (off_t)size);
	close(opened);
	return error;
}

void tdt__record_file_remove(struct tdt__record_file *file)
{
	int opened = file->path[0] != '\0' ? open_again(file) : -ENOENT;

	if (opened >= 0) {
		unlink(file->path);
		close(opened);
	}
	file->path[0] = '\0';
}
