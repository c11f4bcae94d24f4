// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Printing what has names in it: see tdt.h. */

#include "cli/tdt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/new_file.h"
#include "symbolize/modules.h"

struct printing {
	apart_fn *print;
	void *arg;
	const struct tdt__new_file *file; /* NULL: standard output */
};

/* An apart_fn.  A child that tried before may have written something to the file. */
static int print_to_file(FILE *out, void *arg)
{
	const struct printing *printing = arg;
	FILE *file;
	int error;

	if (printing->file == NULL)
		return printing->print(out, printing->arg);
	file = tdt__new_file_stream(printing->file);
	if (file == NULL)
		return -errno;
	error = printing->print(file, printing->arg);
	if (fclose(file) != 0 && error == 0)
		error = -errno;
	return error;
}

static int print_apart(struct printing *printing, struct tdt__modules *modules,
		       const struct options *options)
{
	uint64_t start = tdt__clock();
	const char *why = "";
	int error;

	if (!options->no_symbols) {
		error = do_apart(stdout, print_to_file, printing, bound_names(), &why);
		report_time(options, "looking up names and printing", start);
		if (error != -ECANCELED)
			return error;
		report_trouble("the look-up of names %s, so there are none", why);
	}
	tdt__modules_withhold(modules);
	return print_to_file(stdout, printing);
}

int report_output(const char *path, int error)
{
	if (error == 0)
		return EXIT_SUCCESS;
	if (error == -ENOMEM)
		return report_no_memory();
	if (path == NULL) {
		program_output_failed(-error);
		return TDT_TROUBLE;
	}
	return report_trouble("%s: %s", path,
			      error == -EINVAL ? "not a regular file" : strerror(-error));
}

int print_named(apart_fn *print, void *arg, struct tdt__modules *modules,
		const struct options *options, const char *path)
{
	struct printing printing = { .print = print, .arg = arg };
	struct tdt__new_file file;
	int error;

	if (path == NULL)
		return report_output(NULL, print_apart(&printing, modules, options));
	error = tdt__new_file_open(&file, path);
	if (error == 0) {
		bound_unfinished(file.name);
		printing.file = &file;
		error = tdt__new_file_close(&file, print_apart(&printing, modules, options));
		bound_unfinished(NULL);
	}
	return report_output(path, error);
}
