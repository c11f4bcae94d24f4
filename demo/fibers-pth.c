// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A bakery of threads of GNU Pth.  Nothing in this file is for tdt: pth_fibers.c, which is linked
 * to it, makes each thread a task.
 *
 * The baker waits for flour: for a line on standard input.  Two customers wait for bread.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pth.h>

#include "help.h"

static pth_mutex_t counter = PTH_MUTEX_INIT; /* protects `loaves` */
static pth_cond_t bread = PTH_COND_INIT;     /* there is some */
static int loaves;

static void fetch_flour(void)
{
	char line[80];

	if (pth_read(STDIN_FILENO, line, sizeof(line)) > 0)
		return;
	fprintf(stderr, "fibers-pth: there is no flour\n");
	exit(EXIT_FAILURE);
}

static void *bake(void *unused)
{
	printf("The bakery is open.\n");
	fflush(stdout);
	for (;;) {
		fetch_flour();
		pth_mutex_acquire(&counter, FALSE, NULL);
		loaves += 2;
		pth_cond_notify(&bread, TRUE);
		pth_mutex_release(&counter);
	}
	return unused;
}

static void take_loaf(void)
{
	pth_mutex_acquire(&counter, FALSE, NULL);
	while (loaves == 0)
		pth_cond_await(&bread, &counter, NULL);
	loaves--;
	pth_mutex_release(&counter);
}

static void *buy_bread(void *name)
{
	take_loaf();
	printf("%s has bread.\n", (char *)name);
	return NULL;
}

static pth_t start(char *name, void *(*function)(void *))
{
	pth_attr_t attr = pth_attr_new();
	pth_t thread;

	pth_attr_set(attr, PTH_ATTR_NAME, name);
	thread = pth_spawn(attr, function, name);
	pth_attr_destroy(attr);
	if (thread == NULL) {
		perror("fibers-pth: pth_spawn");
		exit(EXIT_FAILURE);
	}
	return thread;
}

static const char pth_help[] =
	"Usage: fibers-pth [--help]\n"
	"Sell bread.  Each line of standard input is flour for two loaves.\n";

int main(int argc, char **argv)
{
	static char ann_name[] = "Ann", ben_name[] = "Ben", baker_name[] = "baker";
	int error = read_options(argc, argv, pth_help);
	pth_t ann, ben, baker;

	if (error >= 0)
		return error;
	pth_init();
	ann = start(ann_name, buy_bread);
	ben = start(ben_name, buy_bread);
	baker = start(baker_name, bake);
	pth_join(ann, NULL);
	pth_join(ben, NULL);
	pth_cancel(baker);
	pth_kill();
	return EXIT_SUCCESS;
}
