// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * compare: which figures of the benchmarks differ between two runs of `make bench`.
 *
 *	bench/compare OLD NEW
 *
 * OLD and NEW hold what benchmarks print with --json, a line for each.  A file may hold several
 * runs of a benchmark.
 *
 * A figure that has a baseline is compared as its ratio to the baseline, round by round: both were
 * measured in turn, so the speed of the machine cancels out.  Other figures are compared as they
 * are.  For each figure the program prints both medians, NEW / OLD, and the interval in which that
 * ratio lies with 95 % certainty, by the bootstrap: it draws rounds with replacement from either
 * file, 2,000 times, and takes the ratio of the medians of each draw.
 *
 * Rounds of one run are more alike than rounds of two runs.  So if a file has at least RUNS_ENOUGH
 * runs of a figure, the program draws from the medians of these runs instead of the rounds.  With
 * fewer runs, only a difference that is certainly above RUN_NOISE counts: two runs of one program
 * differ by some 3 % in places, since addresses differ.
 */

#include <config.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLD, NEW, SIDES };
enum { RUNS_ENOUGH = 5, SAMPLE_ENOUGH = 5, DRAWS = 2000 };

#define RUN_NOISE 1.05

struct sample {
	double *value;
	size_t n;
};

struct figure {
	struct figure *next;
	char *bench, *name;
	unsigned nth; /* of the figures with this name in one run of the benchmark, from 0 */
	struct sample rounds[SIDES], medians[SIDES];
};

static struct figure *first, **last = &first;

static void *need(void *memory)
{
	if (memory == NULL) {
		fprintf(stderr, "compare: %s\n", strerror(ENOMEM));
		exit(EXIT_FAILURE);
	}
	return memory;
}

/* --- Samples ----------------------------------------------------------------- */

static void add(struct sample *sample, double value)
{
	sample->value = need(reallocarray(sample->value, sample->n + 1, sizeof(double)));
	sample->value[sample->n++] = value;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median of `value`, which is sorted by this. */
static double median(double *value, size_t n)
{
	qsort(value, n, sizeof(*value), by_value);
	return n % 2 == 1 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

/* The same numbers in each run of the program (xorshift64). */
static uint64_t random_number(void)
{
	static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* The median of as many values, drawn with replacement.  `room` has room for them. */
static double draw(const struct sample *sample, double *room)
{
	for (size_t i = 0; i < sample->n; i++)
		room[i] = sample->value[random_number() % sample->n];
	return median(room, sample->n);
}

/* The interval of new / old with 95 % certainty. */
static void interval(const struct sample *old, const struct sample *new, double *low, double *high)
{
	double *room = need(calloc(old->n > new->n ? old->n : new->n, sizeof(double)));
	double ratio[DRAWS], below;

	for (int i = 0; i < DRAWS; i++) {
		below = draw(old, room);
		ratio[i] = below > 0 ? draw(new, room) / below : INFINITY;
	}
	qsort(ratio, DRAWS, sizeof(ratio[0]), by_value);
	*low = ratio[DRAWS / 40];
	*high = ratio[DRAWS - 1 - DRAWS / 40];
	free(room);
}

/* --- Input ------------------------------------------------------------------- */

static struct figure *find(const char *bench, const char *name, unsigned nth)
{
	struct figure *figure;

	for (figure = first; figure != NULL; figure = figure->next)
		if (strcmp(figure->bench, bench) == 0 && strcmp(figure->name, name) == 0 &&
		    figure->nth == nth)
			return figure;
	figure = need(calloc(1, sizeof(*figure)));
	figure->bench = need(strdup(bench));
	figure->name = need(strdup(name));
	figure->nth = nth;
	*last = figure;
	last = &figure->next;
	return figure;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static double number_at(const json_t *values, size_t index)
{
	return json_number_value(json_array_get(values, index));
}

/* The values of the last figure before `index` that has this name; NULL: there is none. */
static const json_t *values_before(const json_t *figures, size_t index, const char *name)
{
	while (index-- > 0) {
		const json_t *figure = json_array_get(figures, index);

		if (strcmp(text_of(figure, "name"), name) == 0)
			return json_object_get(figure, "values");
	}
	return NULL;
}

static unsigned count_before(const json_t *figures, size_t index, const char *name)
{
	unsigned n = 0;

	while (index-- > 0)
		n += strcmp(text_of(json_array_get(figures, index), "name"), name) == 0;
	return n;
}

/* "a traced poll, to a bare poll" or "memory, bytes".  The caller frees it. */
static char *full_name(const json_t *report, const json_t *figure, bool relative)
{
	const char *unit = text_of(figure, relative ? "to" : "unit");
	char *name;

	if (*unit == '\0')
		unit = text_of(report, "unit");
	if (asprintf(&name, "%s, %s%s", text_of(figure, "name"), relative ? "to " : "", unit) < 0)
		name = NULL;
	return need(name);
}

static void add_figure(const json_t *report, const json_t *figures, size_t index, int side)
{
	const json_t *line = json_array_get(figures, index);
	const json_t *values = json_object_get(line, "values");
	const json_t *baseline = values_before(figures, index, text_of(line, "to"));
	size_t n = json_array_size(values);
	bool relative = baseline != NULL && json_array_size(baseline) == n;
	char *name = full_name(report, line, relative);
	struct figure *figure = find(text_of(report, "bench"), name,
				     count_before(figures, index, text_of(line, "name")));
	struct sample run = { 0 };

	for (size_t i = 0; i < n; i++) {
		double value = number_at(values, i);

		if (relative)
			value /= number_at(baseline, i);
		add(&figure->rounds[side], value);
		add(&run, value);
	}
	if (n > 0)
		add(&figure->medians[side], median(run.value, n));
	free(run.value);
	free(name);
}

static bool add_report(const char *text, int side)
{
	json_t *report = json_loads(text, 0, NULL);
	const json_t *figures = json_object_get(report, "figures");
	bool right = json_is_string(json_object_get(report, "bench")) && json_is_array(figures);

	for (size_t i = 0; right && i < json_array_size(figures); i++)
		if (json_object_get(json_array_get(figures, i), "remark") == NULL)
			add_figure(report, figures, i, side);
	json_decref(report);
	return right;
}

static int read_side(const char *name, int side)
{
	FILE *file = fopen(name, "re");
	size_t room = 0, number = 0;
	char *text = NULL;
	bool right = true;

	if (file == NULL) {
		fprintf(stderr, "compare: %s: %s\n", name, strerror(errno));
		return EXIT_FAILURE;
	}
	while (right && getline(&text, &room, file) > 0) {
		number++;
		right = add_report(text, side);
	}
	if (!right)
		fprintf(stderr, "compare: %s:%zu: not a line of a benchmark\n", name, number);
	free(text);
	fclose(file);
	return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --- Output ------------------------------------------------------------------ */

static const struct sample *sample_of(const struct figure *figure, int side)
{
	bool of_runs = figure->medians[side].n >= RUNS_ENOUGH;

	return of_runs ? &figure->medians[side] : &figure->rounds[side];
}

/* The ratio that a difference has to exceed. */
static double noise(const struct figure *figure)
{
	bool of_runs = figure->medians[OLD].n >= RUNS_ENOUGH &&
		       figure->medians[NEW].n >= RUNS_ENOUGH;

	return of_runs ? 1 : RUN_NOISE;
}

/* Print the line of a figure that both have.  Returns whether it differs for certain. */
static bool print_figure(const struct figure *figure)
{
	const struct sample *old = sample_of(figure, OLD), *new = sample_of(figure, NEW);
	double before = median(old->value, old->n), after = median(new->value, new->n), low, high;
	bool more, less;

	printf("  %-68s %10.4g %10.4g", figure->name, before, after);
	if (before <= 0 || after <= 0) {
		puts("  no ratio");
		return false;
	}
	printf(" %7.3f", after / before);
	if (old->n < SAMPLE_ENOUGH || new->n < SAMPLE_ENOUGH) {
		puts("  too few rounds");
		return false;
	}
	interval(old, new, &low, &high);
	more = low > noise(figure);
	less = high < 1 / noise(figure);
	printf("  %.3f to %.3f%s\n", low, high, more ? "  MORE" : less ? "  LESS" : "");
	return more || less;
}

static void print_all(void)
{
	const char *bench = "";
	unsigned compared = 0, different = 0;

	for (const struct figure *figure = first; figure != NULL; figure = figure->next) {
		bool in_old = figure->rounds[OLD].n > 0, in_new = figure->rounds[NEW].n > 0;

		if (strcmp(bench, figure->bench) != 0 && (in_old || in_new))
			printf("%-70s %10s %10s %7s  95 %% certain\n", bench = figure->bench, "old",
			       "new", "ratio");
		if (in_old && in_new) {
			compared++;
			different += print_figure(figure);
		} else if (in_old || in_new) {
			printf("  %-68s only in %s\n", figure->name, in_old ? "old" : "new");
		}
	}
	printf("%u of %u figures differ for certain\n", different, compared);
}

static void free_all(void)
{
	struct figure *figure;

	while ((figure = first) != NULL) {
		first = figure->next;
		for (int side = 0; side < SIDES; side++) {
			free(figure->rounds[side].value);
			free(figure->medians[side].value);
		}
		free(figure->bench);
		free(figure->name);
		free(figure);
	}
}

int main(int argc, char **argv)
{
	static const char usage[] =
		"Usage: compare OLD NEW\n"
		"Compare two files of results of the benchmarks, as `make bench` keeps them.\n";
	int status;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		return EXIT_SUCCESS;
	}
	if (argc != 3) {
		fputs(usage, stderr);
		return 2;
	}
	status = read_side(argv[1], OLD);
	if (status == EXIT_SUCCESS)
		status = read_side(argv[2], NEW);
	if (status == EXIT_SUCCESS)
		print_all();
	free_all();
	return status;
}
