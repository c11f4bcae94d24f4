// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Decompressing core files: see unpack.h.
 *
 * The program of the format does it: libdw, which could, keeps all in memory, and knows zstd only
 * where the distribution has it so.  The program inherits the limits of this process.
 */

#include "reader/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct packing {
	const char *magic; /* the first bytes */
	const char *program;
} packings[] = {
	{ "\x28\xb5\x2f\xfd", "zstd" },
	{ "\xfd\x37zXZ", "xz" },
	{ "\x04\x22\x4d\x18", "lz4" },
	{ "\x1f\x8b", "gzip" },
};

/* NULL: the file is not compressed. */
static const char *program_for(int file)
{
	char head[8] = "";

	if (pread(file, head, sizeof head, 0) <= 0)
		return NULL;
	for (size_t i = 0; i < sizeof packings / sizeof packings[0]; i++)
		if (memcmp(head, packings[i].magic, strlen(packings[i].magic)) == 0)
			return packings[i].program;
	return NULL;
}

/* Not below /tmp, which may be memory. */
static int make_unnamed_file(void)
{
	const char *directory = secure_getenv("TMPDIR");
	char path[PATH_MAX];
	int file;

	snprintf(path, sizeof path, "%s/tdt-core-XXXXXX",
		 directory != NULL ? directory : "/var/tmp");
	file = mkostemp(path, O_CLOEXEC);
	if (file >= 0)
		unlink(path);
	return file;
}

/* Returns 0 or an errno. */
static int start_program(const char *program, int from, int to, pid_t *child)
{
	char options[] = "-dcq", *arguments[] = { (char *)(uintptr_t)program, options, NULL };
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);

	if (error != 0)
		return error;
	error = posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
	if (error == 0)
		error = posix_spawnp(child, program, &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

/* Decompress one file to the other.  Returns NULL, or what went wrong. */
static const char *run_program(const char *program, int from, int to)
{
	int error, status = 0;
	pid_t child;

	if (to < 0)
		return strerror(errno);
	error = start_program(program, from, to, &child);
	if (error != 0 && error != ENOENT)
		return strerror(error);
	while (error == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	/* If vfork() is a fork(), as under valgrind, the child says by 127 that it is missing. */
	if (error != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
		return "it is not installed";
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : "it failed";
}

int tdt__unpack(int file, const char *path, struct tdt__trouble *trouble)
{
	const char *program = program_for(file), *why;
	int unpacked;

	if (program == NULL)
		return file;
	unpacked = make_unnamed_file();
	why = run_program(program, file, unpacked);
	close(file);
	if (why == NULL)
		return unpacked;
	if (unpacked >= 0)
		close(unpacked);
	return tdt__trouble(trouble, -EIO,
			    "%s is compressed, and %s could not decompress it below $TMPDIR or "
			    "/var/tmp: %s.  %s -dc FILE >core or coredumpctl -o core dump PID "
			    "make a file for --core=core",
			    path, program, why, program);
}
