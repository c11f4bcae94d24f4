// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A time that the user may end early: see wait.h. */

#include "cli/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

/* A byte in this pipe ends the time.  The parent and the child have it. */
static int stop_pipe[2];

static void write_stop(int signo)
{
	int error = errno;
	ssize_t written = write(stop_pipe[1], "", 1); /* not if the pipe is full of them */

	(void)signo;
	(void)written;
	errno = error;
}

static void handle_stops(void (*handler)(int signo))
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

int wait_begin(void)
{
	if (pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
		return -errno;
	handle_stops(write_stop);
	return 0;
}

void wait_end(void)
{
	handle_stops(SIG_DFL);
}

int wait_descriptor(void)
{
	return stop_pipe[0];
}

bool wait_until(uint64_t time)
{
	struct pollfd stop = { .fd = stop_pipe[0], .events = POLLIN };
	uint64_t now = tdt__clock(), ns = time > now ? time - now : 0;
	const struct timespec left = tdt__timespec(ns);

	return ppoll(&stop, 1, &left, NULL) <= 0;
}

void show_progress(const char *what, uint64_t passed, uint64_t all)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%s: %.0f s of %.0f s (Ctrl-C ends it) ", what,
			(double)passed / 1e9, (double)all / 1e9);
}

void clear_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}
