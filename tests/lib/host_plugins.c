// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See host_plugins.h. */

#include <config.h>

#include "lib/host_plugins.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/must.h"

#define COPIES PLUGINS "/host_copies"

/* Copy 0 is the plugin itself.  The copies lie where a `make clean` finds them. */
static void path_of_copy(char path[4096], char name, unsigned number)
{
	if (number == 0)
		snprintf(path, 4096, PLUGINS "/host_plugin_%c.so", name);
	else
		snprintf(path, 4096, COPIES "/host_plugin_%c_%u.so", name, number);
}

static void copy_file(const char *from_path, const char *to_path)
{
	char buffer[65536];
	FILE *from = fopen(from_path, "re"), *to = fopen(to_path, "we");
	size_t n;

	MUST(from != NULL && to != NULL);
	while ((n = fread(buffer, 1, sizeof buffer, from)) > 0)
		MUST(fwrite(buffer, 1, n, to) == n);
	MUST(!ferror(from) && fclose(to) == 0);
	fclose(from);
}

/* Another process may use a copy just now, so it is made under another name, and renamed. */
void host_copy(char name, unsigned n)
{
	char original[4096], path[4096], fresh[4096 + 16];

	MUST(mkdir(COPIES, 0777) == 0 || errno == EEXIST);
	path_of_copy(original, name, 0);
	for (unsigned number = 1; number <= n; number++) {
		path_of_copy(path, name, number);
		snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid());
		copy_file(original, fresh);
		MUST(rename(fresh, path) == 0);
	}
}

void host_load_copy(struct host_loaded *loaded, char name, unsigned number)
{
	char path[4096];

	path_of_copy(path, name, number);
	loaded->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	MUST(loaded->library != NULL);
	loaded->plugin = dlsym(loaded->library, "host_plugin");
	MUST(loaded->plugin != NULL && loaded->plugin->name == name);
}

void host_load(struct host_loaded *loaded, char name)
{
	host_load_copy(loaded, name, 0);
}

void host_unload(struct host_loaded *loaded)
{
	MUST(dlclose(loaded->library) == 0);
	loaded->library = NULL;
}

__attribute__((noinline)) void host_run(const struct host_loaded *loaded, void (*stay)(void *arg),
					void *arg)
{
	struct host_walk walk = { stay, arg, 0 };

	loaded->plugin->enter(&walk);
	__asm__ volatile("" : : "r"(&walk) : "memory");
}

/* --- What a trace says ----------------------------------------------------------- */

/* The functions of a plugin, from the outermost on. */
static const char *const forwards[] = { "_enter", "_zero", "_one", "_two" };
static const char *const backwards[] = { "_enter", "_two", "_one", "_zero" };

#define STEPS (sizeof forwards / sizeof forwards[0])

/* Plugins b and c go backwards: tests/local.mk builds them so. */
static const char *const *path_of(char plugin)
{
	return plugin == 'b' || plugin == 'c' ? backwards : forwards;
}

/* The plugin whose function it is, and the function's place on the way; '\0': it is of none. */
static char plugin_of(const struct tdt_node *node, unsigned *step)
{
	const char *name = tdt_node_frame(node)->function;

	if (name == NULL || strncmp(name, "host_", 5) != 0 || name[5] == '\0' || name[6] != '_')
		return '\0';
	for (*step = 0; *step < STEPS; ++*step)
		if (strcmp(name + 6, path_of(name[5])[*step]) == 0)
			return name[5];
	return '\0';
}

/* Whether nothing can be missing between the node and its parent. */
static bool is_sure(const struct tdt_node *node)
{
	const struct tdt_frame *frame = tdt_node_frame(node);

	return frame->kind == TDT_NODE_FRAME && !frame->guessed;
}

/* What can't be of a node that is of a plugin, seen from the nearest other one outside of it. */
static const char *look_outwards(const struct tdt_node *node, char plugin, unsigned step)
{
	const struct tdt_node *outer = tdt_node_parent(node);
	bool sure = is_sure(node);
	unsigned outer_step = 0;
	char other = '\0';

	for (; outer != NULL; outer = tdt_node_parent(outer)) {
		other = plugin_of(outer, &outer_step);
		if (other != '\0')
			break;
		sure = sure && is_sure(outer);
	}
	if (outer == NULL)
		return NULL;
	if (other != plugin)
		return "frames of two plugins are on one stack";
	if (sure ? step != outer_step + 1 : step <= outer_step)
		return "the frames of a plugin are in an order that is another's";
	return NULL;
}

/* Whether a plugin's frame may be a wrong guess, since this frame inside of it (or itself) is one.
 */
static bool spoils_plugin(const struct tdt_node *node)
{
	unsigned step;

	if (!tdt_node_frame(node)->guessed)
		return false;
	for (; node != NULL; node = tdt_node_parent(node))
		if (plugin_of(node, &step) != '\0')
			return true;
	return false;
}

struct host_said host_said(const struct tdt_trace *trace)
{
	const struct tdt_node *node = tdt_trace_root(trace);
	struct host_said said = { 0 };

	for (; node != NULL; node = tdt_node_next(node)) {
		unsigned step;
		char plugin = plugin_of(node, &step);

		said.guessed = said.guessed || spoils_plugin(node);
		if (plugin == '\0')
			continue;
		said.frames++;
		if (said.plugin != '\0' && said.plugin != plugin)
			said.wrong = "two plugins are named";
		said.plugin = plugin;
		if (said.wrong == NULL)
			said.wrong = look_outwards(node, plugin, step);
	}
	return said;
}

bool host_names(const struct tdt_trace *trace, const char *function)
{
	const struct tdt_node *node = tdt_trace_root(trace);

	for (; node != NULL; node = tdt_node_next(node)) {
		const char *name = tdt_node_frame(node)->function;

		if (name != NULL && strcmp(name, function) == 0)
			return true;
	}
	return false;
}
