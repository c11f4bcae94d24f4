// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Working in a child process. */

#include "cli/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/bound.h"

#define MOST_WRITTEN ((rlim_t)4 << 30)
#define FAILED 100 /* the exit status of a child that has failed is this plus an errno */

static void set_limits(unsigned seconds)
{
	bound_memory();
	bound_limit(RLIMIT_FSIZE, MOST_WRITTEN);
	bound_limit(RLIMIT_CPU, seconds);
	bound_limit(RLIMIT_CORE, 0);
}

int apart_silence(void)
{
	return freopen("/dev/null", "w", stderr) != NULL ? 0 : -errno;
}

/* The exit status is what `work` returns, so that it needs no other way. */
static void __attribute__((noreturn))
be_child(apart_fn *work, void *arg, unsigned seconds, int file, pid_t parent)
{
	int result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(FAILED); /* the parent has ended before */
	bound_unfinished(NULL); /* that is the parent's file */
	set_limits(seconds);
	result = dup2(file, STDOUT_FILENO) >= 0 ? work(stdout, arg) : -errno;
	if (result >= 0 && fflush(stdout) != 0)
		result = -errno;
	_exit(result >= 0 ? result : FAILED - result);
}

/* Wait until the pipe is closed.  False: the time is over first. */
static bool wait_closed(int pipe, unsigned seconds)
{
	struct pollfd end = { .fd = pipe, .events = POLLIN };
	uint64_t deadline = tdt__clock() + seconds * (uint64_t)TDT__SECOND;
	int ready;

	do {
		uint64_t now = tdt__clock(), left = now < deadline ? deadline - now : 0;
		const struct timespec time = tdt__timespec(left);

		ready = ppoll(&end, 1, &time, NULL);
	} while (ready < 0 && errno == EINTR); /* a handler of the program has run */
	return ready != 0;
}

/* The words for a signal that made the child end. */
static const char *what_ended(int signal)
{
	switch (signal) {
	case SIGKILL:
	case SIGXCPU:
		return "took too long";
	case SIGXFSZ:
		return "made too much of it";
	default:
		return "crashed";
	}
}

static int copy_out(int file, FILE *out)
{
	char part[65536];
	ssize_t n;
	off_t at = 0;

	while ((n = pread(file, part, sizeof part, at)) > 0) {
		if (fwrite(part, 1, (size_t)n, out) != (size_t)n)
			return -errno;
		at += n;
	}
	return fflush(out) == 0 ? 0 : -errno;
}

static int result_of(int status, const char **why)
{
	if (!WIFEXITED(status)) {
		*why = what_ended(WTERMSIG(status));
		return -ECANCELED;
	}
	if (WEXITSTATUS(status) >= FAILED)
		return FAILED - WEXITSTATUS(status);
	return WEXITSTATUS(status);
}

int apart_start(struct apart *apart, apart_fn *work, void *arg, unsigned seconds)
{
	pid_t parent = getpid();
	int ends[2], error;

	apart->file = memfd_create("tdt", MFD_CLOEXEC);
	if (apart->file < 0)
		return -errno;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		error = -errno;
		close(apart->file);
		return error;
	}
	fflush(stdout); /* or the child would write it, too */
	apart->child = fork();
	if (apart->child == 0)
		be_child(work, arg, seconds, apart->file, parent);
	error = -errno;
	apart->pipe = ends[0];
	close(ends[1]);
	if (apart->child > 0)
		return 0;
	close(apart->pipe);
	close(apart->file);
	return error;
}

int apart_end(struct apart *apart, bool too_long, const char **why)
{
	int status = 0;

	if (too_long)
		kill(apart->child, SIGKILL);
	while (waitpid(apart->child, &status, 0) < 0 && errno == EINTR)
		;
	close(apart->pipe);
	return result_of(status, why);
}

int do_apart(FILE *out, apart_fn *work, void *arg, unsigned seconds, const char **why)
{
	struct apart apart;
	int result, error;

	seconds = bound_left(seconds);
	result = apart_start(&apart, work, arg, seconds);

	if (result != 0)
		return result;
	result = apart_end(&apart, !wait_closed(apart.pipe, seconds), why);
	error = result >= 0 ? copy_out(apart.file, out) : 0;
	close(apart.file);
	return error != 0 ? error : result;
}
