// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A dump that is appended to a file.
 *
 * The dump is made in memory first, and then written with one call.  So the descriptor is open for
 * a moment only, in which the host may close it by mistake, and processes that share a file do not
 * mix their dumps.
 *
 * The file may lie in a folder in which other users create files.  So the last part of its name
 * must not be a symbolic link, and only a regular file is written to: a FIFO or a device could
 * block, or act on what it reads.  Another user may have made the file to read the dumps, or may
 * have given its name to another file of this user.
 */

#include "dump/dump_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tdt/dump.h>

#include "base/text.h"
#include "base/write_signals.h"
#include "dump/path_pattern.h"
#include "dump/snapshot.h"

/*
 * Whether dumps may be appended to this file.  Root may have made it for the user.  That a group
 * may write to it is the choice of some systems for all files (umask 002).
 */
static int check_file(const struct stat *about)
{
	if (!S_ISREG(about->st_mode))
		return -EINVAL;
	if ((about->st_uid != geteuid() && about->st_uid != 0) || about->st_nlink > 1 ||
	    (about->st_mode & S_IWOTH) != 0)
		return -EPERM;
	return 0;
}

/* Returns a descriptor or a negative errno.  O_NONBLOCK: a FIFO without a reader is refused. */
static int open_file(const char *name)
{
	int fd = open(
	    name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
	    0600);
	struct stat about;
	int error;

	if (fd < 0)
		return -errno;
	error = fstat(fd, &about) == 0 ? check_file(&about) : -errno;
	if (error == 0)
		return fd;
	close(fd);
	return error;
}

/* One call writes everything, except at a limit: of the disk, or of what a call can write. */
static int write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, text, size);

		if (n < 0)
			return -errno;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

static int append(const char *name, const char *text, size_t size)
{
	int fd = open_file(name), error;
	struct tdt__write_signals signals;

	if (fd < 0)
		return fd;
	tdt__write_signals_block(&signals);
	error = write_all(fd, text, size);
	tdt__write_signals_restore(&signals);
	close(fd);
	return error;
}

/*
 * Dump to memory, which the caller frees.  Returns 0 or a negative errno.  Text is good as far as
 * it goes, but readers of the file cannot read a part of an object.
 */
static int dump_to(bool json, char **text, size_t *size)
{
	const struct tdt_print_options print = { .size = sizeof print,
						 .format = json ? TDT_PRINT_JSON : TDT_PRINT_TEXT };
	const struct tdt_dump_options options = { .size = sizeof options, .print = &print };
	FILE *out = open_memstream(text, size);
	int error;

	if (out == NULL)
		return -ENOMEM;
	error = tdt__dump(out, &options, true);
	if (fclose(out) != 0 || *text == NULL) /* glibc: 0 although it had no memory */
		return -ENOMEM;
	return json ? error : 0;
}

int tdt__dump_to_file(const char *pattern)
{
	char name[PATH_MAX], *text = NULL;
	size_t size;
	int error;

	if (!tdt__path_of_pattern(name, pattern, getpid(), time(NULL)))
		return -ENAMETOOLONG;
	error = dump_to(tdt__ends_with(pattern, ".json"), &text, &size);
	if (error == 0)
		error = append(name, text, size);
	free(text);
	return error;
}
