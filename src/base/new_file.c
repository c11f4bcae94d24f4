// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A file that replaces another one.
 *
 * The folder may be one in which other users create files.  mkostemp() creates the file with a name
 * that did not exist, and follows no symbolic link.  rename() replaces a symbolic link, and does
 * not follow it either.  What is not a regular file is refused nevertheless: the user did not mean
 * to replace a link or /dev/null.
 */

#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_place(const char *path)
{
	struct stat about;

	if (lstat(path, &about) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(about.st_mode))
		return -ELOOP;
	return S_ISREG(about.st_mode) ? 0 : -EINVAL;
}

int tdt__new_file_open(struct tdt__new_file *file, const char *path)
{
	int error, n;

	if (path == NULL || path[0] == '\0')
		return -EINVAL;
	n = snprintf(file->name, sizeof file->name, "%s.XXXXXX", path);
	if (n < 0 || (size_t)n >= sizeof file->name)
		return -ENAMETOOLONG;
	error = check_place(path);
	if (error != 0)
		return error;
	file->path = path;
	file->fd = mkostemp(file->name, O_CLOEXEC);
	if (file->fd < 0)
		return -errno;
	tdt__write_signals_block(&file->signals);
	return 0;
}

int tdt__new_file_write(const struct tdt__new_file *file, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size > 0) {
		ssize_t n = write(file->fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

FILE *tdt__new_file_stream(const struct tdt__new_file *file)
{
	int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	FILE *stream = NULL;

	if (fd >= 0 && ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0)
		stream = fdopen(fd, "w");
	if (stream == NULL && fd >= 0)
		close(fd);
	return stream;
}

int tdt__new_file_close(struct tdt__new_file *file, int error)
{
	tdt__write_signals_restore(&file->signals);
	if (close(file->fd) != 0 && error == 0)
		error = -errno;
	if (error == 0 && rename(file->name, file->path) != 0)
		error = -errno;
	if (error != 0)
		unlink(file->name);
	return error;
}
