// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt print: print traces and dumps that were saved as JSON, in any of the forms; and the summary
 * of a recording of the flight recorder.  Before there was tdt, this was a program of its own,
 * tdt-tree.  A link of that name still does the same.
 */

#include "cli/tdt.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tdt/dump.h>
#include <tdt/layout/recording.h>

#include "cli/read_json.h"
#include "cli/recordings.h"
#include "symbolize/debugfile.h"
#include "tree-printer/terminal.h"

struct print_command {
	struct options options;
	const char *file;
};

static bool exports(const struct options *options)
{
	return options->perfetto != NULL || options->otlp != NULL;
}

static bool reads_recording(const struct print_command *command)
{
	return command->options.summary || exports(&command->options);
}

static void check_command(const struct print_command *command)
{
	const struct options *options = &command->options;

	if ((options->print.full && exports(options)) ||
	    ((!options->summary || exports(options)) &&
	     (options->rows != 0 || options->since != 0)))
		bad_usage("this option needs --summary", "");
	if (options->longer != 0 && options->otlp == NULL)
		bad_usage("--longer needs --otlp", "");
	if (!reads_recording(command))
		return;
	if (strcmp(command->file, "-") == 0)
		bad_usage("no recording is named", "");
	if (options->print.format == TDT_PRINT_FOLDED)
		bad_usage("--summary has no form ", "folded");
}

static int print_one(struct tdt_trace *trace, struct dump *dump,
		     const struct tdt_print_options *options)
{
	const struct tdt_dump_options dump_options = { .size = sizeof(dump_options),
						       .print = options };
	int err = trace != NULL ? tdt_trace_print_with(trace, stdout, options)
				: tdt_snapshot_print(dump_snapshot(dump), stdout, &dump_options);

	tdt_trace_free(trace);
	dump_free(dump);
	return err;
}

/* Whether what is no dump is a recording, or a directory, which may have some. */
static bool has_recordings(FILE *file)
{
	char magic[sizeof TDT_RECORDING_MAGIC];
	struct stat status;

	if (fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode))
		return true;
	return fseek(file, 0, SEEK_SET) == 0 && fread(magic, sizeof magic, 1, file) == 1 &&
	       memcmp(magic, TDT_RECORDING_MAGIC, sizeof magic) == 0;
}

static int print_all(const struct print_command *command, FILE *file)
{
	struct reader reader = { .file = file };
	struct tdt_trace *trace;
	struct dump *dump;
	int result;

	while ((result = reader_next(&reader, &trace, &dump)) > 0) {
		int err = print_one(trace, dump, &command->options.print);

		if (err != 0)
			return program_output_failed(-err);
	}
	if (result < 0 && has_recordings(file))
		bad_usage("recordings are read with --summary, --perfetto=OUT or --otlp=OUT: ",
			  command->file);
	return result == 0 ? EXIT_SUCCESS
			   : program_input_failed(command->file, reader.line, (long)reader.column,
						  reader.message);
}

static int print_saved(struct print_command *command)
{
	FILE *file = program_open(&command->file);
	int status;

	if (file == NULL)
		return EXIT_BAD_INPUT;
	status = print_all(command, file);
	program_close(file);
	return status;
}

/* Print the list if there are several recordings, and the summary of the chosen one; or a trace. */
static int print_recording(const struct print_command *command,
			   const struct recording_files *files)
{
	const struct options *options = &command->options;
	struct recording_read read;
	int status = recording_read(files->file[files->chosen].path, &read);

	if (status != PROGRAM_GOES_ON)
		return status;
	bound_more(read.size);
	if (exports(options)) {
		recordings_say_chosen(files);
		status = options->perfetto != NULL
				 ? write_trace(&read, options, options->perfetto)
				 : EXIT_SUCCESS;
		if (status == EXIT_SUCCESS && options->otlp != NULL)
			status = write_otlp(&read, options);
	} else {
		status = report_output(NULL, files->n > 1
						 ? recordings_print(files, &options->print)
						 : 0);
		if (status == EXIT_SUCCESS)
			status = write_summary(&read, options);
	}
	recording_read_free(&read);
	return status;
}

static int print_recordings(const struct print_command *command)
{
	struct recording_files files;
	int status;

	bound_time(BOUND_SECONDS);
	status = recordings_list(command->file, &files);
	if (status != PROGRAM_GOES_ON)
		return status;
	tdt__debugfile_by_environment();
	status = print_recording(command, &files);
	recordings_free(&files);
	return status;
}

static int run_print(enum command_number number, int argc, char **argv)
{
	struct print_command command = { .file = "-" };

	options_read(number, &command.options, &argc, &argv);
	if (argc > 1)
		bad_usage("more than one file: ", argv[1]);
	if (argc == 1)
		command.file = argv[0];
	command.options.print.max_depth = (uint32_t)command.options.depth;
	check_command(&command);
	tdt__terminal_choose(&command.options.print, stdout);
	return reads_recording(&command) ? print_recordings(&command) : print_saved(&command);
}

int command_print(int argc, char **argv)
{
	int status = run_print(COMMAND_PRINT, argc, argv);

	return status == EXIT_BAD_INPUT ? EXIT_BAD_USAGE : status;
}

int print_as_tdt_tree(int argc, char **argv)
{
	program_name = "tdt-tree";
	return run_print(COMMAND_TREE, argc, argv);
}
