// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Whether standard input is what a benchmark prints with --json: one line, with a figure at least.
 * Else says why not; 77 if the benchmark itself says why it could not measure.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static int no(const char *why)
{
	printf("%s\n", why);
	return EXIT_FAILURE;
}

/* Nothing was measured: because something is missing here, or because the benchmark is broken. */
static int no_figure(const json_t *figures)
{
	static const char missing[] = "Not measured: ";
	const json_t *figure;
	size_t index;

	json_array_foreach(figures, index, figure) {
		const char *remark = json_string_value(json_object_get(figure, "remark"));

		if (remark != NULL && strncmp(remark, missing, strlen(missing)) == 0) {
			printf("%s\n", remark + strlen(missing));
			return 77;
		}
	}
	return no("nothing was measured");
}

int main(void)
{
	static char text[1 << 20];
	size_t length = fread(text, 1, sizeof text - 1, stdin), index;
	json_t *report = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *figure;
	int measured = 0, status;

	if (report == NULL)
		return no("no JSON");
	if (strchr(text, '\n') != text + length - 1)
		return no("not one line");
	if (!json_is_string(json_object_get(report, "bench")) ||
	    !json_is_string(json_object_get(report, "unit")))
		return no("no name, or no unit");
	json_array_foreach(json_object_get(report, "figures"), index, figure)
		measured += json_is_real(json_object_get(figure, "median"));
	status = measured > 0 ? EXIT_SUCCESS : no_figure(json_object_get(report, "figures"));
	json_decref(report);
	return status;
}
