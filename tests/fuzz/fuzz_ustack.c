// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The whole program tdt-join-ustack.  The input holds both of its files: JSON, the line `%%`, and a
 * tracer's output.  An input without that line is a tracer's output; the JSON is `trace` below
 * then.  Neither a tree nor a message may harm a terminal.
 */

#include <config.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#define main join_ustack_main
static int join_ustack_main(int argc, char **argv);
#include "cli/join-ustack.c"
#undef main

#define SEPARATOR "\n%%\n"

static const char trace[] = "{\"tdt\":1,\"task\":{\"id\":7,\"name\":\"serve\",\"file\":\"s.c\","
			    "\"line\":88,\"state\":\"waiting\"},\"nodes\":["
			    "{\"id\":0,\"kind\":\"task\"},"
			    "{\"id\":1,\"parent\":0,\"kind\":\"frame\",\"function\":\"serve_poll\","
			    "\"file\":\"/b/s.c\",\"pc\":\"0x1010\","
			    "\"symbol\":\"serve_poll\",\"symbol_offset\":\"0x9b\"},"
			    "{\"id\":2,\"parent\":1,\"kind\":\"frame\",\"function\":\"read_poll\","
			    "\"pc\":\"0x1010\",\"inlined\":true},"
			    "{\"id\":3,\"parent\":2,\"kind\":\"frame\",\"function\":\"tdt_select\","
			    "\"pc\":\"0x2010\",\"symbol\":\"tdt_select\","
			    "\"symbol_offset\":\"0x48\"},"
			    "{\"id\":4,\"parent\":3,\"kind\":\"frame\",\"function\":\"ns::leaf\","
			    "\"symbol\":\"_ZN2ns4leafEv\",\"leaves\":1},"
			    "{\"id\":5,\"parent\":3,\"kind\":\"frame\",\"function\":\"timer_poll\","
			    "\"pc\":\"0x1030\",\"leaves\":1},"
			    "{\"id\":6,\"parent\":0,\"kind\":\"cut\",\"cut\":\"no-info\"}]}\n";

/* A file in memory, and the name to open it by. */
struct file {
	int fd;
	char name[32];
};

static void create(struct file *file, const void *bytes, size_t n)
{
	file->fd = memfd_create("fuzz", MFD_CLOEXEC);
	CLAIM(file->fd >= 0 && write(file->fd, bytes, n) == (ssize_t)n);
	snprintf(file->name, sizeof(file->name), "/proc/self/fd/%d", file->fd);
}

/* A terminal may have to show what the program prints with these options. */
struct form {
	char format[16];
	char lines[16];
	char color[16];
};

static struct form forms[] = {
	{ "--format=text", "--ascii", "--color=never" },
	{ "--format=text", "--utf8", "--color=always" },
	{ "--format=json", "--ascii", "--color=never" },
};

/* Run the program, and look at what it writes. */
static void run(struct form *form, struct file *traces, struct file *stacks)
{
	static char name[] = "tdt-join-ustack";
	char *argv[] = { name,         form->format, form->lines, form->color,
			 traces->name, stacks->name, NULL };
	FILE *streams[2] = { stdout, stderr };
	char *text[2];
	size_t n[2];

	stdout = open_memstream(&text[0], &n[0]);
	stderr = open_memstream(&text[1], &n[1]);
	CLAIM(stdout != NULL && stderr != NULL);
	optind = 0; /* glibc's getopt begins anew */
	CLAIM(join_ustack_main(6, argv) <= EXIT_BAD_INPUT);
	fclose(stdout);
	fclose(stderr);
	stdout = streams[0];
	stderr = streams[1];
	if (strcmp(form->format, "--format=json") == 0)
		claim_json(text[0], n[0]);
	else
		claim_harmless(text[0], n[0], strcmp(form->lines, "--utf8") == 0,
			       strcmp(form->color, "--color=always") == 0);
	claim_harmless(text[1], n[1], false, false);
	free(text[0]);
	free(text[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *separator =
	    size > 0 ? memmem(data, size, SEPARATOR, strlen(SEPARATOR)) : NULL;
	const uint8_t *second = separator != NULL ? separator + strlen(SEPARATOR) : data;
	struct file traces, stacks;

	if (separator != NULL)
		create(&traces, data, (size_t)(separator - data));
	else
		create(&traces, trace, strlen(trace));
	create(&stacks, second, size - (size_t)(second - data));
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		run(&forms[i], &traces, &stacks);
	close(traces.fd);
	close(stacks.fd);
	return 0;
}
