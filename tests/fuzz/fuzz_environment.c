// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Three syntaxes: the values of TDT_WATCH and of TDT_DUMP, and the options of tdt print.  The first
 * line of the input is a value of both variables, which references in this file read, too.  Each
 * line is an argument of tdt-tree, which is tdt print.
 */

#include <config.h>

#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tdt.h"
#include "cli/program.h"
#include "dump/dump_variable.h"
#include "fuzz.h"
#include "watch/watch.h"

/* The number that begins `text`, at most INT64_MAX and 1, and how many digits it has. */
static uint64_t leading_number(const char *text, size_t *digits)
{
	const uint64_t too_large = (uint64_t)INT64_MAX + 1;
	uint64_t value = 0;

	*digits = strspn(text, "0123456789");
	for (size_t i = 0; i < *digits && value < too_large; i++) {
		__uint128_t next = (__uint128_t)value * 10 + (uint64_t)(text[i] - '0');

		value = next < too_large ? (uint64_t)next : too_large;
	}
	return value;
}

/* How many nanoseconds a unit has; 0: it is none. */
static uint64_t nanoseconds(const char *unit)
{
	return strcmp(unit, "ns") == 0				  ? 1
	       : strcmp(unit, "us") == 0			  ? 1000
	       : strcmp(unit, "ms") == 0 || strcmp(unit, "") == 0 ? 1000000
	       : strcmp(unit, "s") == 0				  ? 1000000000
								  : 0;
}

/* What tdt__watch_parse() is to return: tdt(3), "Environment". */
static int64_t interval(const char *text)
{
	size_t digits;
	uint64_t number = leading_number(text, &digits), unit = nanoseconds(text + digits);
	__uint128_t whole = (__uint128_t)number * unit;

	if (text[0] == '\0')
		return 0;
	if (digits == 0 || unit == 0 || number > INT64_MAX || whole > INT64_MAX)
		return -1;
	return (int64_t)whole;
}

/* The signal whose name or number `name` is, which is compared with all that there are; or 0. */
static int signal_called(const char *name)
{
	char known[32];
	size_t digits;
	uint64_t value = leading_number(name, &digits);

	if (digits > 0)
		return name[digits] == '\0' && digits <= 3 ? (int)value : 0;
	name += strncmp(name, "SIG", 3) == 0 ? 3 : 0;
	for (int signo = 1; signo < SIGRTMIN; signo++)
		if (sigabbrev_np(signo) != NULL && strcmp(name, sigabbrev_np(signo)) == 0)
			return signo;
	if (strcmp(name, "RTMIN") == 0 || strcmp(name, "RTMAX") == 0)
		return name[3] == 'I' ? SIGRTMIN : SIGRTMAX;
	for (int i = 0; i <= SIGRTMAX - SIGRTMIN; i++) {
		for (int digits_of = 1; digits_of <= 3; digits_of++) {
			snprintf(known, sizeof known, "RTMIN+%0*d", digits_of, i);
			if (strcmp(name, known) == 0)
				return SIGRTMIN + i;
			snprintf(known, sizeof known, "RTMAX-%0*d", digits_of, i);
			if (strcmp(name, known) == 0)
				return SIGRTMAX - i;
		}
	}
	return 0;
}

/* What tdt__dump_variable() is to make of `text`: tdt(3), "ENVIRONMENT". */
static void claim_choice(const char *text)
{
	struct tdt__dump_choice choice;
	char *name = strndup(text, strcspn(text, ":"));
	const char *path = strchr(text, ':') != NULL ? strchr(text, ':') + 1 : "";
	int signo;

	CLAIM(name != NULL);
	signo = signal_called(name);
	if (tdt__dump_variable(text, &choice))
		CLAIM(choice.signo == signo && signo > 0 && strcmp(choice.path, path) == 0);
	else
		CLAIM(signo == 0 || strlen(name) > 15 || strlen(path) >= PATH_MAX);
	free(name);
}

#define ARGUMENTS_MAX 16

/* Split `text` at its line ends, which are overwritten. */
static int split(char *text, char **argv)
{
	static char name[] = "tdt-tree";
	int argc = 0;

	argv[argc++] = name;
	for (char *line = strtok(text, "\n"); line != NULL && argc < ARGUMENTS_MAX - 1;
	     line = strtok(NULL, "\n"))
		argv[argc++] = line;
	argv[argc] = NULL;
	return argc;
}

static jmp_buf ended;
static bool runs;

/* Wrong usage ends the program: here, it ends what the target tries. */
void exit(int status)
{
	if (runs)
		longjmp(ended, status + 1);
	fflush(NULL);
	_exit(status);
}

/* The exit status of the program. */
static int run_to_end(int argc, char **argv)
{
	int status = setjmp(ended);

	runs = status == 0;
	if (runs)
		status = print_as_tdt_tree(argc, argv) + 1;
	runs = false;
	return status - 1;
}

/* The program, with nothing to read.  (Not with the name of a file, which may be there.) */
static void run_tree(int argc, char **argv)
{
	FILE *streams[3] = { stdin, stdout, stderr };
	char *text = NULL;
	size_t n;

	stdin = fopen("/dev/null", "re");
	stdout = open_memstream(&text, &n);
	stderr = fopen("/dev/null", "we");
	CLAIM(stdin != NULL && stdout != NULL && stderr != NULL);
	optind = 0; /* glibc's getopt begins anew */
	CLAIM(run_to_end(argc, argv) <= EXIT_BAD_USAGE);
	fclose(stdin);
	fclose(stdout);
	fclose(stderr);
	stdin = streams[0];
	stdout = streams[1];
	stderr = streams[2];
	claim_harmless(text, n, false, false);
	free(text);
}

/* Whether `argv` has no argument that may be a file's name: an option, or the value of one. */
static bool names_no_file(char *const *argv)
{
	for (argv++; *argv != NULL; argv++)
		if ((*argv)[0] != '-' || strcmp(*argv, "--") == 0)
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);
	char *argv[ARGUMENTS_MAX];
	char *line;
	int argc;

	CLAIM(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	line = strndup(text, strcspn(text, "\n"));
	CLAIM(line != NULL && tdt__watch_parse(line) == interval(line));
	claim_choice(line);
	free(line);
	argc = split(text, argv);
	if (names_no_file(argv))
		run_tree(argc, argv);
	free(text);
	return 0;
}
