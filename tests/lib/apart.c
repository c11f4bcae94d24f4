// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See apart.h. */

#include <config.h>

#include "lib/apart.h"

#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * A word that all processes share; several threads write it.  The text is at the same place in all
 * of them.  Relaxed: it orders nothing, and a text that is told late harms nobody.
 */
static _Atomic(const char *) *doing;

void apart_doing(const char *what)
{
	atomic_store_explicit(doing, what, memory_order_relaxed);
}

static const char *doing_now(void)
{
	return atomic_load_explicit(doing, memory_order_relaxed);
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* How long Check gives a test is multiplied where tests are slow. */
static unsigned limit_ms(void)
{
	const char *times = getenv("CK_TIMEOUT_MULTIPLIER");

	return APART_SECONDS * 1000 *
	       (times != NULL && atoi(times) > 1 ? (unsigned)atoi(times) : 1);
}

static _Noreturn void be_child(void (*body)(void *arg), void *arg)
{
	signal(SIGALRM, SIG_DFL); /* Check's is not of use here */
	body(arg);
	fflush(stdout);
	_exit(0);
}

int apart(void (*body)(void *arg), void *arg, char wrong[256])
{
	pid_t child;
	int status = 0;

	if (doing == NULL)
		doing = mmap(NULL, sizeof *doing, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(doing != MAP_FAILED);
	apart_doing("beginning");
	fflush(stdout);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		be_child(body, arg);
	for (unsigned ms = 0; waitpid(child, &status, WNOHANG) == 0; ms += 5) {
		if (ms >= limit_ms()) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			snprintf(wrong, 256, "it hangs: %.128s", doing_now());
			return -1;
		}
		sleep_ms(5);
	}
	if (WIFEXITED(status)) {
		snprintf(wrong, 256, "status %d: %.128s", WEXITSTATUS(status), doing_now());
		return WEXITSTATUS(status);
	}
	snprintf(wrong, 256, "signal %d: %.128s", WTERMSIG(status), doing_now());
	return -1;
}

void apart_must(void (*body)(void *arg), void *arg)
{
	char wrong[256];
	int status = apart(body, arg, wrong);

	ck_assert_msg(status == 0, "%s", wrong);
}
