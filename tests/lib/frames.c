// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See frames.h. */

#include "lib/frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

static NOINLINE void plain(struct frames *frames)
{
	frames->next(frames);
	USE(frames);
}

/* May become a jump: then it has no frame, for whoever walks. */
static NOINLINE void jumps(struct frames *frames)
{
	frames->next(frames);
}

static NOINLINE void twice(struct frames *frames)
{
	frames->next(frames);
	frames->next(frames);
	USE(frames);
}

static NOINLINE void in_a_loop(struct frames *frames)
{
	for (unsigned n = 1 + frames_random(frames, 2); n > 0; n--)
		frames->next(frames);
}

static NOINLINE void array(struct frames *frames)
{
	char buffer[200];

	USE(buffer);
	frames->next(frames);
	USE(buffer);
}

static NOINLINE void large(struct frames *frames)
{
	char buffer[50000];

	USE(buffer);
	frames->next(frames);
	USE(buffer);
}

static NOINLINE void grows(struct frames *frames)
{
	for (int i = 0; i < 3; i++)
		USE(__builtin_alloca(frames_random(frames, 700)));
	frames->next(frames);
	USE(frames);
}

static NOINLINE void aligned(struct frames *frames)
{
	char buffer[96] __attribute__((aligned(64)));

	USE(buffer);
	frames->next(frames);
	USE(buffer);
}

static NOINLINE void aligned_and_grows(struct frames *frames)
{
	char buffer[96] __attribute__((aligned(64)));
	char *more = __builtin_alloca(frames_random(frames, 300));

	USE(buffer);
	USE(more);
	frames->next(frames);
	USE(buffer);
	frames->next(frames);
	USE(more);
}

static NOINLINE void page_aligned_and_grows(struct frames *frames)
{
	char buffer[32] __attribute__((aligned(4096)));
	char *more = __builtin_alloca(frames_random(frames, 300));

	USE(buffer);
	USE(more);
	frames->next(frames);
	USE(buffer);
	USE(more);
}

/*
 * So much lives across the call that every register is saved, the frame pointer too if it is no
 * frame pointer.
 */
static NOINLINE void busy(struct frames *frames)
{
	volatile uint64_t *source = &frames->random;
	uint64_t a = *source, b = *source + 1, c = *source ^ 2, d = *source - 3, e = *source * 5,
		 f = ~*source;

	frames->next(frames);
	a = a * b + c * d + e * f;
	USE(a);
	USE(b ^ c ^ d ^ e ^ f);
}

/* Keeps something else than a frame in the frame pointer, if it may. */
static NOINLINE void busy_in_a_loop(struct frames *frames)
{
	char *here = (char *)&frames;
	uint64_t a = frames->random, b = a ^ 1, c = a ^ 2, d = a ^ 3;

	for (int i = 0; i < 2; i++) {
		USE(here + i);
		frames->next(frames);
		a += b;
		b ^= c;
		c += d;
		d ^= a;
		USE(a ^ b ^ c ^ d);
	}
}

static NOINLINE void takes_ten(struct frames *frames, uint64_t a, uint64_t b, uint64_t c,
			       uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
			       uint64_t i)
{
	frames->next(frames);
	USE(a + b + c + d + e + f + g + h + i);
}

static NOINLINE void gives_ten(struct frames *frames)
{
	uint64_t a = frames->random;

	takes_ten(frames, a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, a + 8);
	takes_ten(frames, a, a ^ 1, a ^ 2, a ^ 3, a ^ 4, a ^ 5, a ^ 6, a ^ 7, a ^ 8);
	USE(frames);
}

struct big {
	char bytes[333];
};

static NOINLINE struct big takes_big(struct frames *frames, struct big big)
{
	frames->next(frames);
	big.bytes[7]++;
	return big;
}

static NOINLINE void gives_big(struct frames *frames)
{
	struct big big;

	memset(&big, 1, sizeof big);
	big = takes_big(frames, big);
	USE(&big);
}

static NOINLINE void takes_any(struct frames *frames, const char *format, ...)
{
	va_list list;
	double sum = 0;

	va_start(list, format);
	for (; *format != '\0'; format++)
		sum += *format == 'd' ? va_arg(list, double) : va_arg(list, int);
	frames->next(frames);
	USE(&sum);
	va_end(list);
}

static NOINLINE void gives_any(struct frames *frames)
{
	takes_any(frames, "idid", 1, 2.0, 3, 4.0);
	USE(frames);
}

static NOINLINE void recurses(struct frames *frames, unsigned n)
{
	char buffer[40];

	USE(buffer);
	if (n == 0)
		frames->next(frames);
	else
		recurses(frames, n - 1);
	USE(buffer);
}

static NOINLINE void recursive(struct frames *frames)
{
	recurses(frames, frames_random(frames, 5));
	USE(frames);
}

static void clean_up(int *value)
{
	USE(value);
}

static NOINLINE void cleans_up(struct frames *frames)
{
	int value __attribute__((cleanup(clean_up))) = 1;

	USE(&value);
	frames->next(frames);
}

static NOINLINE void may_jump_back(struct frames *frames)
{
	jmp_buf here;

	if (setjmp(here) == 0)
		frames->next(frames);
	USE(&here);
}

static NOINLINE void variable_array(struct frames *frames)
{
	unsigned n = 1 + frames_random(frames, 100);
	double *values = __builtin_alloca(n * sizeof values[0]);
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		values[i] = i;
	frames->next(frames);
	for (unsigned i = 0; i < n; i++)
		sum += values[i];
	USE(&sum);
}

/* The frame is made only where it is needed. */
static NOINLINE void leaves_early(struct frames *frames)
{
	uint64_t random = frames->random;
	char buffer[100];

	if (frames_random(frames, 1000) == 0)
		return;
	USE(buffer);
	frames->next(frames);
	USE(buffer);
	USE(random);
}

const frames_fn FRAMES_TABLE[] = {
	plain,	   jumps,	   twice,	  in_a_loop,	     array,
	large,	   grows,	   aligned,	  aligned_and_grows, page_aligned_and_grows,
	busy,	   busy_in_a_loop, gives_ten,	  gives_big,	     gives_any,
	recursive, cleans_up,	   may_jump_back, variable_array,    leaves_early,
	NULL,
};
