// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What a request to record needs and may lack: see request.h. */

#include "recorder/request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/write_signals.h"

static int check_dir(const char *path)
{
	struct stat about;

	if (lstat(path, &about) != 0)
		return -errno;
	return S_ISLNK(about.st_mode) ? -ELOOP : S_ISDIR(about.st_mode) ? 0 : -ENOTDIR;
}

/* Put the path of the directory above into `path`, and the name below it after a slash. */
static int resolve_dir(char path[PATH_MAX], char *dir)
{
	char *slash = strrchr(dir, '/'), *name = slash != NULL ? slash + 1 : dir;
	const char *above = slash == NULL ? "." : slash == dir ? "/" : dir;
	size_t n;

	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return realpath(dir, path) != NULL ? 0 : -errno; /* never a symbolic link */
	if (slash != NULL && slash != dir)
		*slash = '\0';
	if (realpath(above, path) == NULL)
		return -errno;
	n = strlen(path);
	if (n + 1 + strlen(name) >= PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(path + n, PATH_MAX - n, "%s%s", n > 1 ? "/" : "", name);
	return 0;
}

int tdt__record_dir(char path[PATH_MAX], const char *dir)
{
	char copy[PATH_MAX];
	size_t n = strlen(dir);
	int error;

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n >= sizeof copy)
		return -ENAMETOOLONG;
	memcpy(copy, dir, n);
	copy[n] = '\0';
	error = resolve_dir(path, copy);
	if (error == 0 && mkdir(path, 0700) != 0 && errno != EEXIST)
		error = access(path, F_OK) == 0 ? 0 : -errno; /* a read-only file system */
	return error == 0 ? check_dir(path) : error;
}

/* Standard error at the start.  Written only before main(), or while dlopen() loads libtdt. */
static struct stat first_stderr;

__attribute__((constructor)) static void note_stderr(void)
{
	int saved = errno;

	if (secure_getenv("TDT_RECORD") == NULL || fstat(STDERR_FILENO, &first_stderr) != 0)
		first_stderr.st_ino = 0;
	errno = saved;
}

static bool is_first_stderr(void)
{
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct stat now;

	return first_stderr.st_ino != 0 && fstat(STDERR_FILENO, &now) == 0 &&
	       now.st_dev == first_stderr.st_dev && now.st_ino == first_stderr.st_ino &&
	       poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0;
}

void tdt__record_say(const char *variable, int error, const char *instead)
{
	const char *value = secure_getenv(variable);
	struct tdt__write_signals signals;
	char line[512], words[128];
	int n;

	if (value == NULL || !is_first_stderr())
		return;
	n = snprintf(line, sizeof line, "tdt: %s=%.256s: %s: %s\n", variable, value,
		     strerror_r(-error, words, sizeof words), instead);
	n = n < (int)sizeof line ? n : (int)sizeof line - 1;
	tdt__write_signals_block(&signals);
	n = (int)write(STDERR_FILENO, line, (size_t)n); /* if that fails, nobody can be told */
	tdt__write_signals_restore(&signals);
}
