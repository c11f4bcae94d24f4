/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

/*
 * What a benchmark prints: one table for the question that the program asks, or one line of JSON
 * (--json).
 *
 *	report_start(argc, argv, "What is added to a poll?", "ns a poll", 101);
 *	bare = figure("a bare poll", NULL);
 *	traced = figure("a traced poll", bare);              its ratio is to `bare`
 *	added = figure_added("  added", traced, bare);       round by round what `traced` took more
 *	at_most(added, 6);                                   its target
 *	for (int i = 0; i < rounds; i++) {                   what is compared is measured in turn
 *		add(bare, ...);
 *		add(traced, ...);
 *	}
 *	return report_end();
 *
 * What is compared, and held to a target, is the median; beside it stand the least and the most.  A
 * target that is missed is said, and is no failure: times depend on the machine.
 *
 * Every benchmark has the options --json, --keep=FILE (append the JSON to FILE, for bench/compare),
 * and --quick: few rounds, to see that all of it works.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct figure;

/* How many rounds to make: what the program asked for, or 3 with --quick. */
extern int rounds;

/* With --quick: what takes long may be made smaller. */
extern bool quick;

/*
 * Reads the options; ends the program after --help, or if they are wrong.  `unit` is that of
 * figures without their own.
 */
void report_start(int argc, char **argv, const char *question, const char *unit, int rounds);

/*
 * A new line of the table, printed in the order they were made.  Its ratio is to `baseline`, if
 * that is not NULL.  A name that begins with spaces is printed so, beneath the one before.
 */
struct figure *figure(const char *name, struct figure *baseline);

/* A line that says by how much `more` was above `less`, round by round. */
struct figure *figure_added(const char *name, struct figure *more, struct figure *less);

/*
 * A line of very many values, each of which says little: beside their median stand, in place of the
 * least and the most, those between which it lies with 95 % certainty.  (JSON: low, high.)
 */
struct figure *figure_uncertain(const char *name);

/* A line between the others that is no figure: a heading, or what could not be measured and why. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

void add(struct figure *figure, double value);

/* Have it be in another unit than the rest. */
void in_unit(struct figure *figure, const char *unit);

/* The target: of its median, or of its ratio to the baseline. */
void at_most(struct figure *figure, double limit);
void at_least(struct figure *figure, double limit);
void ratio_at_most(struct figure *figure, double limit);
void ratio_at_least(struct figure *figure, double limit);

/* Print it all; the program's exit status. */
int report_end(void);

static inline int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static inline _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

#endif
