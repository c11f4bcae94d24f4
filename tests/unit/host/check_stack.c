// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers host/thread, host/readable.  Where a thread's own stack lies, as the library finds out. */

#include <ucontext.h>

#include "host/readable.h"
#include "host/thread.h"
#include "lib/test.h"

static uintptr_t here(void)
{
	return (uintptr_t)__builtin_frame_address(0);
}

/*
 * All that the C library says is stack, from here on.  (Of the main thread's it leaves out what the
 * kernel put there.)
 */
static bool is_right(void)
{
	pthread_attr_t attr;
	void *low;
	size_t size;

	MUST(pthread_getattr_np(pthread_self(), &attr) == 0);
	MUST(pthread_attr_getstack(&attr, &low, &size) == 0);
	pthread_attr_destroy(&attr);
	return tdt__stack_is_own(here(), (uintptr_t)low + size) &&
	       !tdt__stack_is_own(here(), tdt__thread.stack_high + 1) &&
	       !tdt__stack_is_own(tdt__thread.stack_low - 1, here());
}

static bool is_found(void)
{
	tdt__thread.stack_low = tdt__thread.stack_high = 0;
	tdt__stack_find();
	return is_right();
}

CASE(stack)

TEST(the_main_thread_finds_its_own)
{
	static char data;
	void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(is_found());
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert(!tdt__stack_is_own((uintptr_t)memory, (uintptr_t)memory + 1));
	ck_assert(!tdt__stack_is_own((uintptr_t)&data, (uintptr_t)&data + 1));
	munmap(memory, 4096);
}

static void *find(void *main_frame)
{
	MUST(is_found());
	MUST(!tdt__stack_is_own((uintptr_t)main_frame, (uintptr_t)main_frame + 1));
	return NULL;
}

TEST(another_thread_finds_its_own)
{
	run_on_thread(find, (void *)here());
}

/* It is the main thread of the child, on the stack of the thread that it was. */
static void *find_in_child(void *main_frame)
{
	pid_t child = fork();
	int status;

	MUST(child >= 0);
	if (child == 0) {
		find(main_frame);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0) == child && status == 0);
	return NULL;
}

TEST(a_thread_that_forks_finds_its_own_in_the_child)
{
	run_on_thread(find_in_child, (void *)here());
}

/* The first look-up is on a stack that is not the thread's own. */
static ucontext_t outside, inside;
static uintptr_t outside_frame;

static void find_on_coroutine(void)
{
	tdt__stack_find();
	MUST(!tdt__stack_is_own(here(), here() + 1));
	MUST(tdt__stack_is_own(outside_frame, outside_frame + 1));
	swapcontext(&inside, &outside);
}

TEST(the_own_stack_is_found_from_another_one)
{
	static _Alignas(16) char memory[256 << 10];

	NOT_TRIED_IF(TSAN || ASAN, "sanitizers have to be told of stacks");
	outside_frame = here();
	getcontext(&inside);
	inside.uc_stack.ss_sp = memory;
	inside.uc_stack.ss_size = sizeof memory;
	makecontext(&inside, find_on_coroutine, 0);
	swapcontext(&outside, &inside);
}
