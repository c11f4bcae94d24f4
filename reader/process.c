// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Opening a process.  The directory /proc/PID stays open: if the process ends and another one gets
 * its id, the files of the directory cannot be read any more.
 *
 * Most of this file finds out why a process cannot be read, so that the user learns what helps.
 */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/proc_text.h"
#include "base/text.h"
#include "reader/target.h"

#define STATUS_SIZE 8192

/* The text behind `key` ("\nUid:") in /proc/PID/status; "" if it is not there. */
static const char *status_value(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	if (line == NULL)
		return "";
	line += strlen(key);
	return line + strspn(line, " \t");
}

/* The value of kernel.yama.ptrace_scope; 0 where there is no such setting. */
static int ptrace_scope(void)
{
	char text[16];

	tdt__proc_text(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
	return atoi(text);
}

static bool has_capability(int number)
{
	char text[STATUS_SIZE];

	tdt__proc_text(AT_FDCWD, "/proc/self/status", text, sizeof text);
	return (strtoull(status_value(text, "\nCapEff:"), NULL, 16) >> number & 1) != 0;
}

#define SYS_PTRACE 19 /* the number of CAP_SYS_PTRACE */

static int refused(const struct tdt__target *target, const char *status,
		   struct tdt__trouble *trouble)
{
	unsigned long owner = strtoul(status_value(status, "\nUid:"), NULL, 10);
	int scope = ptrace_scope();

	if (has_capability(SYS_PTRACE))
		return tdt__trouble(trouble, -EPERM,
				    "the kernel refuses to let process %d be read.  It may belong "
				    "to another user namespace: run tdt outside of the container",
				    target->pid);
	if (owner != geteuid())
		return tdt__trouble(trouble, -EPERM,
				    "process %d belongs to the user with the id %lu: run tdt as "
				    "that user, or as root (sudo tdt)",
				    target->pid, owner);
	if (scope == 3)
		return tdt__trouble(trouble, -EPERM,
				    "no process may be read until the next boot, since "
				    "kernel.yama.ptrace_scope is 3");
	if (scope != 0)
		return tdt__trouble(trouble, -EPERM,
				    "process %d may not be read, since kernel.yama.ptrace_scope is "
				    "%d: run tdt as root (sudo tdt), or give it the capability "
				    "(setcap cap_sys_ptrace+ep), or allow it "
				    "(sysctl kernel.yama.ptrace_scope=0)",
				    target->pid, scope);
	return tdt__trouble(trouble, -EPERM,
			    "process %d may not be read: it has privileges that tdt has not, or "
			    "forbids it (PR_SET_DUMPABLE), or this container has no "
			    "CAP_SYS_PTRACE.  Run tdt as root (sudo tdt); in a container, add the "
			    "capability (--cap-add SYS_PTRACE)",
			    target->pid);
}

static int no_process(pid_t pid, struct tdt__trouble *trouble)
{
	if (access("/proc/self", F_OK) != 0)
		return tdt__trouble(trouble, -ENOENT, "/proc is not mounted here: mount it");
	if (pid > 0 && kill(pid, 0) != 0 && errno == EPERM)
		return tdt__trouble(trouble, -EPERM,
				    "process %d belongs to another user, and is hidden here "
				    "(hidepid): run tdt as root (sudo tdt)",
				    pid);
	return tdt__trouble(trouble, -ESRCH,
			    "there is no process %d here.  If it is in another PID namespace, "
			    "run tdt there, or see all processes (docker run --pid=host)",
			    pid);
}

/* In /proc/PID/maps, a newline in a path is written as \012. */
static void unescape_path(char *path)
{
	char *to = path;

	for (const char *from = path; *from != '\0'; to++) {
		*to = *from;
		if (tdt__starts_with(from, "\\012"))
			*to = '\n';
		from += *to != *from ? 4 : 1;
	}
	*to = '\0';
}

/* Read a line.  False: no memory. */
static bool add_line(struct tdt__target *target, char *line)
{
	struct tdt__mapping mapping = { 0 };
	char access[5] = "";
	uint64_t inode;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n",
		   &mapping.start, &mapping.end, access, &mapping.offset, &inode, &path) < 5 ||
	    mapping.end <= mapping.start || strlen(access) != 4)
		return true;
	mapping.is_file = inode != 0;
	mapping.readable = access[0] == 'r';
	mapping.writable = access[1] == 'w';
	mapping.executable = access[2] == 'x';
	mapping.shared = access[3] == 's';
	mapping.path = line + (path != 0 ? (size_t)path : strlen(line));
	unescape_path(mapping.path);
	return tdt__target_add_mapping(target, &mapping);
}

/* Returns 0 or a negative errno. */
static int read_maps(struct tdt__target *target)
{
	int opened = openat(target->proc, "maps", O_RDONLY | O_CLOEXEC), error = 0;
	FILE *file = opened >= 0 ? fdopen(opened, "r") : NULL;
	char *line = NULL, buffer[4096];
	size_t room = 0;

	if (file == NULL)
		error = -errno;
	else
		setvbuf(file, buffer, _IOFBF, sizeof buffer);
	errno = 0;
	while (error == 0 && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!add_line(target, line))
			error = -ENOMEM;
	}
	if (error == 0 && !feof(file))
		error = -errno;
	if (file != NULL)
		fclose(file);
	else if (opened >= 0)
		close(opened);
	free(line);
	return error;
}

/* The offset of CLOCK_MONOTONIC in a text of time namespaces(7), in nanoseconds. */
static int64_t monotonic_offset(const char *text)
{
	int64_t seconds = 0, rest = 0;

	if (sscanf(text, "monotonic %" SCNd64 " %" SCNd64, &seconds, &rest) != 2 ||
	    seconds > INT32_MAX || seconds < INT32_MIN)
		return 0;
	return seconds * 1000000000 + rest;
}

/*
 * The offsets of a process are those of its future children, so they say nothing of a process that
 * is in the reader's own namespace.
 */
static bool is_in_our_time(const struct tdt__target *target)
{
	char ours[64] = "", theirs[64] = "";

	return readlink("/proc/self/ns/time", ours, sizeof ours - 1) > 0 &&
	       readlinkat(target->proc, "ns/time", theirs, sizeof theirs - 1) > 0 &&
	       strcmp(ours, theirs) == 0;
}

static int64_t offset_of(int directory, const char *name)
{
	char text[256];

	tdt__proc_text(directory, name, text, sizeof text);
	return monotonic_offset(text);
}

/* All these files are missing where the kernel has no time namespaces. */
static int64_t clock_offset(const struct tdt__target *target)
{
	if (is_in_our_time(target))
		return 0;
	return offset_of(target->proc, "timens_offsets") -
	       offset_of(AT_FDCWD, "/proc/self/timens_offsets");
}

/*
 * Read the first module's header: that shows whether memory may be read at all, and whether the
 * process has our kind of addresses.
 */
static int probe_memory(const struct tdt__target *target, const char *status,
			struct tdt__trouble *trouble)
{
	unsigned char ident[EI_NIDENT];

	for (size_t i = 0; i < target->n_mappings; i++) {
		const struct tdt__mapping *mapping = &target->mapping[i];

		if (!mapping->readable || !mapping->is_file || mapping->offset != 0)
			continue;
		if (!tdt__target_read(target, mapping->start, ident, sizeof ident)) {
			if (errno == EPERM || errno == EACCES)
				return refused(target, status, trouble);
			if (errno == ENOSYS)
				return tdt__trouble(trouble, -ENOSYS,
						    "process_vm_readv(2) is not allowed here: a "
						    "seccomp filter or a sandbox forbids it");
			continue;
		}
		if (memcmp(ident, ELFMAG, SELFMAG) != 0)
			continue;
		if (ident[EI_CLASS] != ELFCLASS64)
			return tdt__trouble(trouble, -ENOEXEC,
					    "process %d is a 32-bit program, and tdt reads only "
					    "64-bit ones",
					    target->pid);
		return 0;
	}
	return 0;
}

static int examine(struct tdt__target *target, struct tdt__trouble *trouble)
{
	char status[STATUS_SIZE];
	int error = (int)tdt__target_proc_text(target, "status", status, sizeof status);

	if (error < 0)
		return no_process(target->pid, trouble);
	if (status_value(status, "\nState:")[0] == 'Z')
		return tdt__trouble(trouble, -ESRCH,
				    "process %d has ended and is a zombie, so it has no memory to "
				    "read; its parent has to wait for it",
				    target->pid);
	error = read_maps(target);
	if (error == -EACCES || error == -EPERM)
		return refused(target, status, trouble);
	if (error == -ENOMEM)
		return tdt__trouble(trouble, error, "there is not enough memory");
	if (error != 0)
		return no_process(target->pid, trouble);
	if (target->n_mappings == 0)
		return tdt__trouble(trouble, -ESRCH,
				    "process %d has no memory of its own: it is a thread of the "
				    "kernel, or is just ending",
				    target->pid);
	return probe_memory(target, status, trouble);
}

int tdt__target_open_process(struct tdt__target *target, pid_t pid, struct tdt__trouble *trouble)
{
	char path[32];
	int error;

	*target = (struct tdt__target){ .pid = pid };
	snprintf(path, sizeof path, "/proc/%d", pid);
	target->proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (target->proc < 0)
		return no_process(pid, trouble);
	error = examine(target, trouble);
	if (error != 0) {
		tdt__target_close(target);
		return error;
	}
	tdt__array_sort(target->mapping, target->n_mappings, sizeof target->mapping[0]);
	target->clock_offset = clock_offset(target);
	return 0;
}
