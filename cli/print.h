/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Saved data that is printed.  Both functions read a command line, whose first word is the name
 * for the messages of getopt_long(), and return an exit status.
 */

/* tdt print: 0, or 2 if anything went wrong. */
int command_print(int argc, char **argv);

/* The same as the program tdt-tree, which ends with EXIT_BAD_INPUT if what it reads is damaged. */
int print_as_tdt_tree(int argc, char **argv);
