// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include "report.h"

#include <getopt.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>
#include <sys/utsname.h>

enum target { NO_TARGET, AT_MOST, AT_LEAST, RATIO_AT_MOST, RATIO_AT_LEAST };

struct figure {
	struct figure *next;
	char *name;
	const char *unit; /* NULL: the report's */
	const struct figure *baseline;
	const struct figure *more, *less; /* of a difference */
	bool remark;                      /* its name is all there is */
	bool uncertain;                   /* figure_uncertain() */
	enum target target;
	double limit;
	double *value; /* in the order of the rounds */
	size_t n, room;
};

int rounds;
bool quick;

static struct {
	const char *program, *question, *unit;
	FILE *keep; /* to which the JSON is appended; NULL: none */
	bool json;
	struct figure *first, **last;
} report = { .last = &report.first };

static void *need(void *memory)
{
	if (memory == NULL)
		die("memory");
	return memory;
}

/* --- What is measured --------------------------------------------------------- */

void report_start(int argc, char **argv, const char *question, const char *unit, int wanted)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "keep", required_argument, NULL, 'k' },
		{ "quick", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	if (strrchr(argv[0], '/') != NULL)
		argv[0] = strrchr(argv[0], '/') + 1; /* getopt_long() begins its messages with it */
	report.program = argv[0];
	report.question = question;
	report.unit = unit;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (option) {
		case 'j':
			report.json = true;
			break;
		case 'k':
			report.keep = fopen(optarg, "ae"); /* a benchmark may leave this directory */
			if (report.keep == NULL)
				die(optarg);
			break;
		case 'q':
			quick = true;
			break;
		case 'h':
			printf("Usage: %s [--json] [--keep=FILE] [--quick]\n%s\n\n"
			       "  --json       print one line of JSON in place of the table\n"
			       "  --keep=FILE  append that line to FILE, too\n"
			       "  --quick      make few rounds, to see that all of it works\n",
			       report.program, question);
			exit(EXIT_SUCCESS);
		default:
			exit(2);
		}
	rounds = quick ? 3 : wanted;
}

static struct figure *new_line(char *name)
{
	struct figure *figure = need(calloc(1, sizeof *figure));

	figure->name = need(name);
	*report.last = figure;
	report.last = &figure->next;
	return figure;
}

struct figure *figure(const char *name, struct figure *baseline)
{
	struct figure *figure = new_line(strdup(name));

	figure->baseline = baseline;
	return figure;
}

struct figure *figure_added(const char *name, struct figure *more, struct figure *less)
{
	struct figure *figure = new_line(strdup(name));

	figure->more = more;
	figure->less = less;
	return figure;
}

struct figure *figure_uncertain(const char *name)
{
	struct figure *figure = new_line(strdup(name));

	figure->uncertain = true;
	return figure;
}

void remark(const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	new_line(text)->remark = true;
}

void add(struct figure *figure, double value)
{
	if (figure->n == figure->room) {
		figure->room = figure->room != 0 ? 2 * figure->room : 16;
		figure->value =
		    need(realloc(figure->value, figure->room * sizeof figure->value[0]));
	}
	figure->value[figure->n++] = value;
}

void in_unit(struct figure *figure, const char *unit)
{
	figure->unit = unit;
}

static void set_target(struct figure *figure, enum target target, double limit)
{
	figure->target = target;
	figure->limit = limit;
}

void at_most(struct figure *figure, double limit)
{
	set_target(figure, AT_MOST, limit);
}

void at_least(struct figure *figure, double limit)
{
	set_target(figure, AT_LEAST, limit);
}

void ratio_at_most(struct figure *figure, double limit)
{
	set_target(figure, RATIO_AT_MOST, limit);
}

void ratio_at_least(struct figure *figure, double limit)
{
	set_target(figure, RATIO_AT_LEAST, limit);
}

/* --- What it comes to --------------------------------------------------------- */

struct spread {
	double min, median, max;
};

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* How many values are left off at either end. */
static size_t left_off(const struct figure *figure)
{
	size_t n = figure->n, off = 0;

	if (!figure->uncertain)
		return 0;
	/* The median's rank is n / 2, with a standard error of sqrt(n) / 2; twice that are 95 %. */
	while (2 * off + 1 < n && (n - 2 * off) * (n - 2 * off) > 4 * n)
		off++;
	return off;
}

static struct spread spread_of(const struct figure *figure)
{
	double *sorted = need(malloc(figure->n * sizeof sorted[0]));
	size_t off = left_off(figure);
	struct spread spread;

	memcpy(sorted, figure->value, figure->n * sizeof sorted[0]);
	qsort(sorted, figure->n, sizeof sorted[0], by_value);
	spread = (struct spread){ sorted[off], sorted[figure->n / 2], sorted[figure->n - 1 - off] };
	free(sorted);
	return spread;
}

static double median(const struct figure *figure)
{
	return spread_of(figure).median;
}

static double ratio_of(const struct figure *figure)
{
	return median(figure) / median(figure->baseline);
}

static bool has_ratio(const struct figure *figure)
{
	return figure->baseline != NULL && figure->baseline->n != 0;
}

/* Work out the differences.  Of figures that were not measured there is none. */
static void subtract(void)
{
	for (struct figure *figure = report.first; figure != NULL; figure = figure->next) {
		if (figure->more == NULL)
			continue;
		for (size_t i = 0; i < figure->more->n && i < figure->less->n; i++)
			add(figure, figure->more->value[i] - figure->less->value[i]);
	}
}

static bool is_met(const struct figure *figure)
{
	switch (figure->target) {
	case AT_MOST:
		return median(figure) <= figure->limit;
	case AT_LEAST:
		return median(figure) >= figure->limit;
	case RATIO_AT_MOST:
		return has_ratio(figure) && ratio_of(figure) <= figure->limit;
	case RATIO_AT_LEAST:
		return has_ratio(figure) && ratio_of(figure) >= figure->limit;
	case NO_TARGET:
		break;
	}
	return true;
}

/* --- The table ------------------------------------------------------------------ */

#define NAME_WIDTH 52

/* As many digits as say something. */
static const char *number(double value, char text[32])
{
	double size = value < 0 ? -value : value;

	snprintf(text, 32, "%.*f", size >= 1000 ? 0 : size >= 10 ? 1 : size >= 2 ? 2 : 3, value);
	return text;
}

static void print_target(const struct figure *figure)
{
	static const char *const signs[] = { [AT_MOST] = "<=",
					     [AT_LEAST] = ">=",
					     [RATIO_AT_MOST] = "x <=",
					     [RATIO_AT_LEAST] = "x >=" };
	char text[32];

	if (figure->target == NO_TARGET)
		return;
	snprintf(text, sizeof text, "%s %g", signs[figure->target], figure->limit);
	printf("  %-10s %s", text, is_met(figure) ? "met" : "MISSED");
}

static void print_name(const struct figure *figure)
{
	char *name = NULL;

	if (figure->unit != NULL && asprintf(&name, "%s, %s", figure->name, figure->unit) < 0)
		die("memory");
	printf("%-*s", NAME_WIDTH, name != NULL ? name : figure->name);
	free(name);
}

static void print_line(const struct figure *figure)
{
	struct spread spread;
	char text[32];

	if (figure->remark) {
		printf("%s\n", figure->name);
		return;
	}
	print_name(figure);
	if (figure->n == 0) {
		printf(" not measured\n");
		return;
	}
	spread = spread_of(figure);
	printf(" %11s", number(spread.min, text));
	printf(" %11s", number(spread.median, text));
	printf(" %11s", number(spread.max, text));
	if (has_ratio(figure))
		printf(" %8.3g", ratio_of(figure));
	else if (figure->target != NO_TARGET)
		printf(" %8s", "");
	print_target(figure);
	putchar('\n');
}

static void print_table(void)
{
	printf("%s\n%s, of %d round%s\n", report.question, report.unit, rounds,
	       rounds == 1 ? "" : "s");
	printf("%-*s %11s %11s %11s %8s  %s\n", NAME_WIDTH, "", "min", "median", "max", "ratio",
	       "target");
	for (const struct figure *figure = report.first; figure != NULL; figure = figure->next)
		print_line(figure);
	putchar('\n');
}

/* --- JSON -------------------------------------------------------------------------- */

static json_t *json_of_values(const struct figure *figure)
{
	json_t *values = json_array();

	for (size_t i = 0; i < figure->n; i++)
		json_array_append_new(values, json_real(figure->value[i]));
	return values;
}

static json_t *json_of(const struct figure *figure)
{
	json_t *line = json_pack("{s:s}", figure->remark ? "remark" : "name",
				 figure->name + strspn(figure->name, " "));
	struct spread spread;

	if (figure->unit != NULL)
		json_object_set_new(line, "unit", json_string(figure->unit));
	if (figure->n == 0)
		return line;
	spread = spread_of(figure);
	json_object_update_new(
	    line, json_pack("{s:I, s:f, s:f, s:f}", "rounds", (json_int_t)figure->n,
			    figure->uncertain ? "low" : "min", spread.min, "median", spread.median,
			    figure->uncertain ? "high" : "max", spread.max));
	json_object_set_new(line, "values", json_of_values(figure));
	if (has_ratio(figure))
		json_object_update_new(
		    line, json_pack("{s:s, s:f}", "to",
				    figure->baseline->name + strspn(figure->baseline->name, " "),
				    "ratio", ratio_of(figure)));
	if (figure->target != NO_TARGET) {
		static const char *const kinds[] = { [AT_MOST] = "median_at_most",
						     [AT_LEAST] = "median_at_least",
						     [RATIO_AT_MOST] = "ratio_at_most",
						     [RATIO_AT_LEAST] = "ratio_at_least" };

		json_object_update_new(line,
				       json_pack("{s:{s:f}, s:b}", "target", kinds[figure->target],
						 figure->limit, "met", is_met(figure)));
	}
	return line;
}

static void print_json(FILE *out)
{
	json_t *lines = json_array(), *all;
	struct utsname machine;

	if (uname(&machine) != 0)
		die("uname");
	for (const struct figure *figure = report.first; figure != NULL; figure = figure->next)
		json_array_append_new(lines, json_of(figure));
	all = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "bench", report.program, "question",
			report.question, "unit", report.unit, "kernel", machine.release, "machine",
			machine.machine, "figures", lines);
	if (all == NULL || json_dumpf(all, out, JSON_REAL_PRECISION(6)) != 0)
		die("JSON");
	json_decref(all);
	putc('\n', out);
}

int report_end(void)
{
	subtract();
	if (report.keep != NULL) {
		print_json(report.keep);
		if (fclose(report.keep) != 0)
			die("--keep");
	}
	if (report.json)
		print_json(stdout);
	else
		print_table();
	while (report.first != NULL) {
		struct figure *figure = report.first;

		report.first = figure->next;
		free(figure->name);
		free(figure->value);
		free(figure);
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
