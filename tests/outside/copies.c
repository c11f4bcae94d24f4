// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process with several copies of the library: one is linked to it, one is loaded, and one is
 * loaded into a namespace of the loader's own.  Each copy has a task that is named after it.
 *
 *	copies LIBTDT.SO
 */

#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <tdt/trace.h>

#include "lib/must.h"

typedef struct tdt_traced make_task_fn(struct tdt_future future, const struct tdt_task_attr *attr);

static tdt_poll_t never(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static void nothing(void *state)
{
	(void)state;
}

static void spawn_by(make_task_fn *make, const char *name)
{
	struct tdt_future future = { NULL, never, nothing };

	MUST(make(future, TDT_TASK_ATTR(.name = name)).handle != NULL);
}

static make_task_fn *loaded_function(void *library)
{
	if (library == NULL)
		fprintf(stderr, "copies: %s\n", dlerror());
	MUST(library != NULL);
	return (make_task_fn *)(uintptr_t)dlsym(library, "tdt_traced_with");
}

int main(int argc, char **argv)
{
	MUST(argc == 2);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	spawn_by(tdt_traced_with, "linked");
	spawn_by(loaded_function(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)), "loaded");
	spawn_by(loaded_function(dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL)), "apart");
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	_exit(EXIT_SUCCESS);
}
