// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Whether standard input is what a benchmark prints with --json: one line, with a figure at least.  Else says why not. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static int no(const char *why)
{
	printf("%s\n", why);
	return EXIT_FAILURE;
}

int main(void)
{
	static char text[1 << 20];
	size_t length = fread(text, 1, sizeof text - 1, stdin), index;
	json_t *report = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *figure;
	int measured = 0;

	if (report == NULL)
		return no("no JSON");
	if (strchr(text, '\n') != text + length - 1)
		return no("not one line");
	if (!json_is_string(json_object_get(report, "bench")) || !json_is_string(json_object_get(report, "unit")))
		return no("no name, or no unit");
	json_array_foreach(json_object_get(report, "figures"), index, figure)
		measured += json_is_real(json_object_get(figure, "median"));
	json_decref(report);
	return measured > 0 ? EXIT_SUCCESS : no("nothing was measured");
}
