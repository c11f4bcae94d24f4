// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See odd_frames.h: what compilers make. */

#include "lib/odd_frames.h"

#include <stddef.h>
#include <unistd.h>

#ifndef ODD_FRAMES
#define ODD_FRAMES odd_frames
#endif

#define NOINLINE __attribute__((noinline))
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

/*
 * Clang 14 says that the frame is made only behind the instructions that save xmm6 to xmm15 in it.
 */
#ifdef __clang__
#define CLANG_MS_ABI "clang is wrong about frames of ms_abi functions that are being made"
#else
#define CLANG_MS_ABI NULL
#endif

static volatile int some = 40;

static void plain(void (*inner)(void))
{
	inner();
	USE(inner);
}

static void large(void (*inner)(void))
{
	char room[20000];

	USE(room);
	inner();
	USE(room);
}

/* The frame is found by a register that is not the frame pointer until it has one (gcc: r10). */
static void aligned(void (*inner)(void))
{
	_Alignas(64) char room[100];

	USE(room);
	inner();
	USE(room);
}

static void aligned_and_variable(void (*inner)(void))
{
	_Alignas(64) char room[100];
	char *more = __builtin_alloca((size_t)some);

	USE(room);
	USE(more);
	inner();
	USE(room);
}

static void variable(void (*inner)(void))
{
	char *more = __builtin_alloca((size_t)some);

	USE(more);
	inner();
	USE(more);
}

static void nothing(void)
{
}

/*
 * Calls itself, and is gone: its frames are left in the room that it makes when it is called once
 * more.
 */
static NOINLINE void over_itself(void (*inner)(void), int room, int depth)
{
	char *more = __builtin_alloca((size_t)room);

	USE(more);
	if (depth > 0)
		over_itself(inner, room, depth - 1);
	else
		inner();
	USE(more);
}

static void variable_over_itself(void (*inner)(void))
{
	over_itself(nothing, 16, 6);
	over_itself(inner, 40 * some, 0);
	USE(inner);
}

static NOINLINE int many(int a, int b, int c, int d, int e, int f, int g, int h,
			 void (*inner)(void))
{
	inner();
	USE(inner);
	return a + b + c + d + e + f + g + h;
}

static void with_arguments_on_the_stack(void (*inner)(void))
{
	some = many(1, 2, 3, 4, 5, 6, 7, some, inner) - 28;
	USE(inner);
}

#if defined(__x86_64__)
/* It saves xmm6 to xmm15, since its callers expect that. */
static NOINLINE __attribute__((ms_abi)) int saves_vectors(int a, void (*inner)(void))
{
	double half = a * 0.5;

	inner();
	USE(inner);
	return a + (int)half;
}

static void ms_abi(void (*inner)(void))
{
	some = saves_vectors(40, inner) - 20;
	USE(inner);
}

static NOINLINE __attribute__((ms_abi)) int saves_vectors_and_aligns(int a, void (*inner)(void))
{
	_Alignas(64) char room[64];

	USE(room);
	inner();
	USE(room);
	return a;
}

static void ms_abi_aligned(void (*inner)(void))
{
	some = saves_vectors_and_aligns(40, inner);
	USE(inner);
}

static NOINLINE __attribute__((ms_abi)) int takes_any(void (*inner)(void), ...)
{
	__builtin_ms_va_list list;
	int sum;

	__builtin_ms_va_start(list, inner);
	inner();
	sum = __builtin_va_arg(list, int);
	__builtin_ms_va_end(list);
	return sum;
}

static void ms_abi_variable(void (*inner)(void))
{
	some = takes_any(inner, 40);
	USE(inner);
}
#endif

/* The first call of a function in a library: the dynamic linker looks for it. */
static void bound_lazily(void (*inner)(void))
{
	some += getpgrp() == 0;
	inner();
	USE(inner);
}

const struct odd_frame ODD_FRAMES[] = {
	{ "plain", plain, NULL },
	{ "large", large, NULL },
	{ "aligned", aligned, NULL },
	{ "aligned_and_variable", aligned_and_variable, NULL },
	{ "variable", variable, NULL },
	{ "variable_over_itself", variable_over_itself, NULL },
	{ "with_arguments_on_the_stack", with_arguments_on_the_stack, NULL },
#if defined(__x86_64__)
	{ "ms_abi", ms_abi, CLANG_MS_ABI },
	{ "ms_abi_aligned", ms_abi_aligned, CLANG_MS_ABI },
	{ "ms_abi_variable", ms_abi_variable, CLANG_MS_ABI },
#endif
	{ "bound_lazily", bound_lazily, NULL },
	{ NULL, NULL, NULL },
};
