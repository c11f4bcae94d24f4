// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The options of tdt profile. */

#include <config.h>

#include "cli/profile_options.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/profile.h"

static char profile_name[] = "tdt";

static const struct program profile_program = {
	.name = profile_name,
	.forms = (const char *const[]){ "text", "json", "folded", "pprof", NULL },
	.help = "Usage: tdt profile [OPTION]... TARGET\n"
		"Sum up where the async tasks of a process spend their time: waiting, by the place "
		"where they wait; runnable,\n"
		"until a worker polls them; and polling, by the stack that runs.  Each task counts "
		"once, however many leaves it\n"
		"has.  The process watches its tasks meanwhile (as by tdt set watch=10ms), unless "
		"it does so by itself.\n"
		"\n"
		"  -p, --pid=TARGET      the number or the name of a process\n"
		"  -d, --duration=TIME   how long (default: 30s); Ctrl-C ends it, and prints what "
		"there is\n"
		"  -F, --frequency=HZ    looks in a second, 1 to 1000 (default: 19)\n"
		"  --state=STATE,...     only waiting, runnable or polling tasks (default: all)\n"
		"  -o, --output=OUT      the file to write, by its name: OUT.pb.gz for pprof, "
		"OUT.json, OUT.folded for flame\n"
		"                        graphs, otherwise text\n"
		"  --format=FORM         text (the default), json, folded or pprof\n"
		"  --json                the same as --format=json\n"
		"  --rows=N              the most places of the text (default: 20)\n"
		"  --no-request          do not request the tasks' trees when it begins\n"
		"  --max-requests=N      request no more tasks than these (default: 10000)\n"
		"  --no-symbols          look up no names: print modules and offsets\n"
		"  --debug-dir=DIR       separate debug files, instead of /usr/lib/debug\n"
		"  --full-paths          the source's whole path\n"
		"  --full                also the calls in libraries, which are folded otherwise\n"
		"  --plumbing            also the frames of tdt itself\n"
		"  --timeout=TIME        give up so long after the time of the profile (default: "
		"120s)\n"
		"  --verbose             say how long each step took, and what the profile cost\n"
		"  --utf8, --ascii       the characters of names (default: as the locale is)\n"
		"  --color=WHEN          auto (the default: on a terminal), always or never\n"
		"  --help, --version\n"
		"\n"
		"Exit status: 0; 2 if something went wrong.\n",
};

enum {
	OPTION_PROFILE_STATE = OPTIONS_OWN,
	OPTION_ROWS,
	OPTION_UNREQUESTED,
	OPTION_MOST_REQUESTS,
	OPTION_WITHOUT_SYMBOLS
};

static int set_number(uint64_t *number, uint64_t least, uint64_t most, const char *value)
{
	char what[80];

	if (program_number(value, number) && *number >= least && *number <= most)
		return PROGRAM_GOES_ON;
	snprintf(what, sizeof what, "not a number from %" PRIu64 " to %" PRIu64 ": ", least, most);
	return program_bad_usage(&profile_program, what, value);
}

static int set_profile_duration(struct profile_command *command, const char *value)
{
	int status = set_duration(&command->duration, value);

	if (status == PROGRAM_GOES_ON &&
	    (command->duration == 0 || command->duration > 24 * 3600 * (uint64_t)TDT__SECOND))
		return program_bad_usage(&profile_program, "longer than a day, or 0: ", value);
	return status;
}

static int set_profile_states(struct profile_command *command, const char *value)
{
	if (!program_words(profile_states, value, &command->states))
		return program_bad_usage(&profile_program,
					 "tasks are waiting, runnable or polling, not ", value);
	return PROGRAM_GOES_ON;
}

static int set_limits_of_profile(struct profile_command *command, int option, const char *value)
{
	uint64_t number;
	int status = set_number(&number, option == OPTION_MOST_REQUESTS ? 0 : 1,
				option == 'F' ? 1000 : UINT32_MAX, value);

	if (status != PROGRAM_GOES_ON)
		return status;
	if (option == 'F')
		command->hz = (double)number;
	else if (option == OPTION_ROWS)
		command->rows = number;
	else
		command->max_requests = (uint32_t)number;
	return PROGRAM_GOES_ON;
}

static int profile_option(void *arg, int option, const char *value)
{
	struct profile_command *command = arg;

	switch (option) {
	case 'd':
		return set_profile_duration(command, value);
	case 'o':
		command->out = value;
		return PROGRAM_GOES_ON;
	case 'F':
	case OPTION_ROWS:
	case OPTION_MOST_REQUESTS:
		return set_limits_of_profile(command, option, value);
	case OPTION_PROFILE_STATE:
		return set_profile_states(command, value);
	case OPTION_UNREQUESTED:
		command->max_requests = 0;
		return PROGRAM_GOES_ON;
	case OPTION_WITHOUT_SYMBOLS:
		command->no_symbols = true;
		return PROGRAM_GOES_ON;
	case 'f':
	case OPTION_JSON:
		command->formed = true;
		return outside_option(&command->outside, option, value);
	default:
		return outside_option(&command->outside, option, value);
	}
}

static void choose_form(struct profile_command *command)
{
	enum tdt_print_format *format = &command->outside.print.format;

	if (command->formed || command->out == NULL)
		return;
	if (tdt__ends_with(command->out, ".pb.gz"))
		*format = PROFILE_PPROF;
	else if (tdt__ends_with(command->out, ".json"))
		*format = TDT_PRINT_JSON;
	else if (tdt__ends_with(command->out, ".folded"))
		*format = TDT_PRINT_FOLDED;
}

static int check_profile(struct profile_command *command)
{
	if (command->outside.core != NULL || command->outside.dir != NULL)
		return program_bad_usage(&profile_program, "only a process can be profiled", "");
	choose_form(command);
	if (command->states == 0)
		command->states = (1u << TDT__PROFILE_STATES) - 1;
	if (command->outside.print.format == PROFILE_PPROF && command->out == NULL &&
	    isatty(STDOUT_FILENO))
		return program_bad_usage(&profile_program, "pprof's form is not for a terminal: "
							   "-o OUT.pb.gz", "");
	return PROGRAM_GOES_ON;
}

int profile_options(struct profile_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		OPTION_FORMAT,
		{ "duration", required_argument, NULL, 'd' },
		{ "frequency", required_argument, NULL, 'F' },
		{ "state", required_argument, NULL, OPTION_PROFILE_STATE },
		{ "output", required_argument, NULL, 'o' },
		{ "rows", required_argument, NULL, OPTION_ROWS },
		{ "no-request", no_argument, NULL, OPTION_UNREQUESTED },
		{ "max-requests", required_argument, NULL, OPTION_MOST_REQUESTS },
		{ "no-symbols", no_argument, NULL, OPTION_WITHOUT_SYMBOLS },
		OPTIONS_OF_FRAMES,
		OPTION_OF_TIMEOUT,
		OPTIONS_OF_TARGET,
	};
	static const struct command_line line = { .program = &profile_program,
						  .letters = "p:d:F:o:",
						  .options = options,
						  .option = profile_option };
	int status = read_command_line(&line, command, &command->outside, &argc, &argv);

	return status == PROGRAM_GOES_ON ? check_profile(command) : status;
}
