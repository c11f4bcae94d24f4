// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Switching by the C library's contexts. */

#include <config.h>

#include "switch.h"

#include <pthread.h>
#include <signal.h>

void tdt__context_make(struct tdt__context *context, void *low, size_t size, void (*entry)(void))
{
	getcontext(&context->place);
	context->place.uc_stack.ss_sp = low;
	context->place.uc_stack.ss_size = size;
	context->place.uc_link = NULL;
	makecontext(&context->place, entry, 0);
}

/* The signal mask is the thread's, and stays as it is: a context would bring its own along. */
__attribute__((noinline)) void tdt__context_switch(struct tdt__context *from, struct tdt__context *to)
{
	pthread_sigmask(SIG_SETMASK, NULL, &to->place.uc_sigmask);
	swapcontext(&from->place, &to->place);
}
