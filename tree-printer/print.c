// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Prints a trace: reads the options, and handles the stream and its errors. */

#include "forms.h"

#include <errno.h>

#include "terminal.h"

/* The rule for the sizes of callers' structs. */
#include "base/options.h"

static bool is_choice(enum tdt_print_choice choice)
{
	return (unsigned int)choice <= TDT_PRINT_YES;
}

int tdt__print_options_read(struct tdt_print_options *options,
			    const struct tdt_print_options *theirs, FILE *out)
{
	int err = tdt__options_read(options, sizeof(*options), theirs);

	if (err != 0)
		return err;
	if ((unsigned int)options->format > TDT_PRINT_FOLDED || !is_choice(options->utf8) ||
	    !is_choice(options->color) || (out == NULL && options->write == NULL))
		return -EINVAL;
	tdt__terminal_choose(options, out);
	return 0;
}

int tdt__print_locked(FILE *file, const struct tdt_print_options *options,
		      void (*form)(struct tdt__out *out, const void *arg), const void *arg)
{
	struct tdt__out out = { .file = file, .write = options->write, .arg = options->arg };
	int err;

	if (file != NULL)
		flockfile(file);
	form(&out, arg);
	err = tdt__out_end(&out);
	if (file != NULL)
		funlockfile(file);
	return err;
}

struct printed_trace {
	const struct tdt_trace *trace;
	const struct tdt_node *root;
	struct tdt_print_options options;
};

static void print_trace_form(struct tdt__out *out, const void *arg)
{
	const struct printed_trace *of = arg;

	if (of->options.format == TDT_PRINT_TEXT)
		tdt__print_text(out, of->trace, of->root, &of->options);
	else if (of->options.format == TDT_PRINT_JSON)
		tdt__print_json(out, of->trace, of->root);
	else
		tdt__print_folded(out, of->trace, of->root, &of->options);
}

static int print_trace(const struct tdt_trace *trace, FILE *out,
		       const struct tdt_print_options *theirs)
{
	struct printed_trace of = { .trace = trace };
	int err = trace == NULL ? -EINVAL : tdt__print_options_read(&of.options, theirs, out);

	if (err != 0)
		return err;
	of.root = tdt_trace_root(trace); /* may take long, so the stream is not locked yet */
	if (of.root == NULL)
		return -errno;
	return tdt__print_locked(out, &of.options, print_trace_form, &of);
}

int tdt_trace_print_with(const struct tdt_trace *trace, FILE *out,
			 const struct tdt_print_options *options)
{
	int saved = errno; /* asking whether `out` is a terminal may set errno without an error */
	int err = print_trace(trace, out, options);

	errno = err == 0 ? saved : -err;
	return err;
}

int tdt_trace_print(const struct tdt_trace *trace, FILE *out)
{
	return tdt_trace_print_with(trace, out, NULL);
}
