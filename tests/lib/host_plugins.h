/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_HOST_PLUGINS_H
#define TDT_TESTS_HOST_PLUGINS_H

/* A host's side of its plugins; and whether a trace names them rightly. */

#include <stdbool.h>

#include <tdt/tree.h>

#include "lib/host_plugin.h"

struct host_loaded {
	void *library;
	const struct host_plugin *plugin;
};

/* Load plugin `name`, which must be there. */
void host_load(struct host_loaded *loaded, char name);

/* Make `n` copies of plugin `name`, numbered from 1: each is a module of its own.  Then load one.
 */
void host_copy(char name, unsigned n);
void host_load_copy(struct host_loaded *loaded, char name, unsigned number);

/* Unload it. */
void host_unload(struct host_loaded *loaded);

/* Run in the plugin: its innermost function calls `stay`. */
void host_run(const struct host_loaded *loaded, void (*stay)(void *arg), void *arg);

/* What the frames of plugins in a trace say. */
struct host_said {
	char plugin;	   /* which one is named; '\0': none */
	unsigned frames;   /* how many frames have a name of it */
	bool guessed;	   /* one of these frames is marked as guessed */
	const char *wrong; /* what can't be; NULL: all is right */
};

/*
 * What `trace` (whose names are looked up) says.  Wrong are frames of two plugins, and frames of
 * one in an order that the plugin never calls its functions in.  Where frames are marked as guessed
 * or cut, some may be missing between two, but the order is the same.
 */
struct host_said host_said(const struct tdt_trace *trace);

/* Whether a frame of `trace` has this function. */
bool host_names(const struct tdt_trace *trace, const char *function);

#endif
