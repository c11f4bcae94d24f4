/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Whose code a frame is, by its module and by the path of its source. */

#include <stdbool.h>
#include <stddef.h>

#include <tdt/tree.h>

enum tdt__origin {
	TDT__ORIGIN_PROGRAM,  /* the program's own code */
	TDT__ORIGIN_LIBRARY,  /* a library whose sources may lie with those of the program */
	TDT__ORIGIN_PACKAGE,  /* a package that the program depends on */
	TDT__ORIGIN_LANGUAGE, /* the standard library of the language */
	TDT__ORIGIN_BINDING,  /* what binds tdt to Rust or C++: the namespace `tdt` */
	TDT__ORIGIN_TDT,      /* tdt itself */
	TDT__ORIGIN_UNKNOWN   /* not named in time, or code that belongs to no module */
};

enum tdt__origin tdt__origin(const struct tdt_frame *frame);

/* Whether the frame is one of libtdt or libtdt-rt, or a function of their headers. */
bool tdt__is_plumbing(const struct tdt_frame *frame);

/* Whether the function is one of the crate by which it wraps futures and wakers. */
bool tdt__is_crates_wrapper(const struct tdt_frame *frame);

/*
 * Returns the part of the path `file` that begins with the name of the package in which the file
 * lies: `tokio-1.24.2/src/time/sleep.rs`.  NULL: the path is not that of a package.
 */
const char *tdt__in_package(const char *file);

/* The name of a package: the first `n` bytes of `name`, which is NULL if it is unknown. */
struct tdt__package {
	const char *name;
	size_t n;
};

/* The package of a frame that is not the program's own: one of a path, or else a module. */
struct tdt__package tdt__package(const struct tdt_frame *frame);
bool tdt__same_package(struct tdt__package a, struct tdt__package b);

/*
 * Whether the frame is in the code with which Rust clones a waker.  Every leaf does that, so it is
 * not what the leaf waits for.
 */
bool tdt__clones_waker(const struct tdt_frame *frame);

/*
 * Whether the source of `frame` lies with that of `own`, a frame of the program's own code: below
 * the directory that has both the source of `own` and the place where it was compiled.
 */
bool tdt__lies_with(const struct tdt_frame *frame, const struct tdt_frame *own);

/* Whether `path` lies below the directory that is the first `n` bytes of `directory`. */
bool tdt__is_below(const char *path, const char *directory, size_t n);

/* Remove `.`, `..` and doubled slashes from a path, by its text alone.  The path never grows. */
void tdt__normalize(char *path);
