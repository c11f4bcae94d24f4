// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The parts that all programs share: see program.h. */

#include "cli/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *program_name = "tdt";

bool program_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

char *program_split_host(char *text, const char **port)
{
	char *colon = strrchr(text, ':'), *end = text + strlen(text);

	if (colon != NULL && strchr(colon, ']') == NULL) {
		*colon = '\0';
		*port = colon + 1;
		end = colon;
	}
	if (text[0] != '[' || end[-1] != ']')
		return text;
	end[-1] = '\0';
	return text + 1;
}

void bad_usage(const char *what, const char *value)
{
	fprintf(stderr, "%s: %s%s\nTry '%s --help'.\n", program_name, what, value, program_name);
	exit(EXIT_BAD_USAGE);
}

FILE *program_open(const char **name)
{
	FILE *file = stdin;

	if (strcmp(*name, "-") != 0)
		file = fopen(*name, "re");
	else
		*name = "standard input";
	if (file == NULL)
		fprintf(stderr, "%s: %s: %s\n", program_name, *name, strerror(errno));
	return file;
}

void program_close(FILE *file)
{
	if (file != stdin)
		fclose(file);
}

int program_input_failed(const char *name, unsigned long line, long column, const char *message)
{
	fprintf(stderr, "%s: %s:%lu:", program_name, name, line);
	if (column >= 0)
		fprintf(stderr, "%ld:", column);
	putc(' ', stderr);
	for (; *message != '\0'; message++)
		putc(*message < ' ' || *message > '~' ? '?' : *message, stderr);
	putc('\n', stderr);
	return EXIT_BAD_INPUT;
}

int program_output_failed(int error)
{
	if (error != EPIPE)
		fprintf(stderr, "%s: standard output: %s\n", program_name, strerror(error));
	return EXIT_BAD_INPUT;
}

int program_end_output(void)
{
	return fflush(stdout) == 0 ? EXIT_SUCCESS : program_output_failed(errno);
}
