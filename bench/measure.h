/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

/* What every benchmark needs: the time, and the middle of many values. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

static inline int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static inline void sort_values(double *value, int n)
{
	qsort(value, (size_t)n, sizeof value[0], by_value);
}

/* One of the things that are measured, in rounds. */
#define FIGURE_ROUNDS 2001

struct figure {
	const char *name;
	double value[FIGURE_ROUNDS];
	int n;
};

static inline double median(struct figure *figure)
{
	sort_values(figure->value, figure->n);
	return figure->value[figure->n / 2];
}

#endif
