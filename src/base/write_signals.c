// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Writing without the signals that may come of it: see write_signals.h. */

#include "base/write_signals.h"

#include <errno.h>
#include <time.h>

void tdt__write_signals_block(struct tdt__write_signals *signals)
{
	sigset_t pending, all;

	sigemptyset(&pending);
	sigemptyset(&signals->ours);
	sigaddset(&signals->ours, SIGXFSZ);
	sigaddset(&signals->ours, SIGPIPE);
	all = signals->ours;
	sigaddset(&all, SIGTTOU); /* a terminal does not send it to a thread that blocks it */
	pthread_sigmask(SIG_BLOCK, &all, &signals->mask);
	sigpending(&pending);
	if (sigismember(&pending, SIGXFSZ) == 1)
		sigdelset(&signals->ours, SIGXFSZ);
	if (sigismember(&pending, SIGPIPE) == 1)
		sigdelset(&signals->ours, SIGPIPE);
}

/* The kernel sent the signal to this thread, so it is pending already, and no other takes it. */
void tdt__write_signals_restore(const struct tdt__write_signals *signals)
{
	const struct timespec now = { 0 };
	int saved = errno;

	sigtimedwait(&signals->ours, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &signals->mask, NULL);
	errno = saved;
}
