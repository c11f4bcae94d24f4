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
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MISSING 127 /* the exit status, as of shells, if there is no such program */

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

/*
 * It ends with the thread that waits for it, as a target's file may unpack to anything.  What runs
 * between fork() and exec may be in a copy of a process with threads.
 */
static void __attribute__((noreturn))
be_program(const char *program, int from, int to, pid_t parent)
{
	char options[] = "-dcq", *arguments[] = { (char *)(uintptr_t)program, options, NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && dup2(from, STDIN_FILENO) >= 0 && dup2(to, STDOUT_FILENO) >= 0)
		execvp(program, arguments);
	_exit(errno == ENOENT ? MISSING : EXIT_FAILURE);
}

/* Decompress one file to the other.  Returns NULL, or what went wrong. */
static const char *run_program(const char *program, int from, int to)
{
	pid_t parent = getpid(), child = to >= 0 ? fork() : -1;
	int status = EXIT_FAILURE << 8; /* of one that nobody can wait for, as SIGCHLD is ignored */

	if (child < 0)
		return strerror(errno);
	if (child == 0)
		be_program(program, from, to, parent);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == MISSING)
		return "it is not installed";
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
		return "the file would be too large";
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
