/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_HOST_PLUGIN_H
#define TDT_TESTS_HOST_PLUGIN_H

/* What a host and its plugins (host_plugin.c) know of each other. */

/* A way through a plugin's functions, which ends in a function of the host. */
struct host_walk {
	void (*stay)(void *arg); /* what the innermost function of the plugin calls */
	void *arg;
	unsigned depth; /* how many functions of the plugin were called; the host sets 0 */
};

/* What dlsym(plugin, "host_plugin") gives. */
struct host_plugin {
	char name; /* 'a', 'b'... */
	void (*enter)(struct host_walk *walk);
};

/* Where the constructor of plugin d reads a byte, if the environment has it; else it sleeps. */
#define HOST_CONSTRUCTOR_FD "TDT_TEST_CONSTRUCTOR_FD"

#endif
