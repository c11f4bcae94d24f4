// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading about other threads of this process from /proc: see proc(5). */

#include "host/proc_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc_syscall.h"
#include "base/proc_text.h"

#define PATH_SIZE 64

/* /proc/self/task/THREAD/NAME */
static void make_path(char path[PATH_SIZE], uint32_t thread, const char *name)
{
	char digits[10], *end = stpcpy(path, "/proc/self/task/");
	size_t n = 0;

	do
		digits[n++] = (char)('0' + thread % 10);
	while ((thread /= 10) != 0);
	while (n > 0)
		*end++ = digits[--n];
	*end++ = '/';
	strcpy(end, name);
}

/* Read as much of the file as has room into `text`.  Returns 0 or a negative errno. */
static int read_thread(uint32_t thread, const char *name, char *text, size_t size)
{
	char path[PATH_SIZE];
	ssize_t n;

	make_path(path, thread, name);
	n = tdt__proc_text(AT_FDCWD, path, text, size);
	if (n == -ENOENT && access("/proc/self/task", F_OK) == 0)
		return -ESRCH;
	return n < 0 ? (int)n : 0;
}

int tdt__proc_blocked(uint32_t thread, struct tdt__blocked *blocked)
{
	int error = read_thread(thread, "syscall", blocked->text, sizeof blocked->text);
	struct tdt__proc_syscall parsed;

	if (error != 0)
		return error;
	blocked->runs = strncmp(blocked->text, "running", 7) == 0;
	if (blocked->runs)
		return 0;
	if (!tdt__proc_syscall_parse(blocked->text, &parsed))
		return -EIO;
	blocked->call = parsed.call;
	blocked->sp = (uintptr_t)parsed.sp;
	blocked->pc = (uintptr_t)parsed.pc;
	return blocked->sp != 0 ? 0 : -ESRCH; /* without an sp the thread is exiting */
}

int tdt__proc_signals_blocked(uint32_t thread, uint64_t *mask)
{
	char text[4096];
	int error = read_thread(thread, "status", text, sizeof text);
	const char *line;

	if (error != 0)
		return error;
	line = strstr(text, "\nSigBlk:");
	if (line == NULL)
		return -EIO;
	*mask = strtoull(line + 8, NULL, 16);
	return 0;
}
