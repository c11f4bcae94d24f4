# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Differences between gdb and the library that are neither's fault, or gdb's, or known.  Each is a
# rewriting that is applied to the stacks of both sides: stacks that are the same afterwards differ
# in these classes alone.  corpus/ has a program for each.  `flags` are those that the program was
# built with.

# gdb passes over the lines of the line table that begin no statement, addr2line doesn't
# (frames.py).  To be one with either is to be right.
BEGIN { LINES = "gdb passes over lines that begin no statement" }

# Rewrite `stack`; the names of the classes that had something to rewrite are added to classes[].
function canonical(stack, classes) {
	stack = rewritten(stack, tail_calls(stack), "gdb adds tail calls", classes)
	stack = rewritten(stack, linkage_names(stack), "gdb prefers linkage names", classes)
	stack = rewritten(stack, relative_paths(stack), "relative directories", classes)
	stack = rewritten(stack, symbol_suffixes(stack), "gdb has other suffixes of symbols",
		classes)
	# After that, which leaves frames known by their symbols.
	stack = rewritten(stack, folded_functions(stack), "functions are folded", classes)
	if (flags !~ /-O0/)
		stack = rewritten(stack, split_functions(stack), "gcc splits functions", classes)
	return stack
}

function rewritten(stack, new, name, classes) {
	if (new != stack)
		classes[name] = 1
	return new
}

# A call that was made as a jump has no frame.  gdb guesses from the call sites which functions
# were left so.
function tail_calls(stack) {
	gsub(/[^;]* tail call;/, "", stack)
	return stack
}

# glibc calls its functions by hidden names, DW_AT_linkage_name, which gdb shows; the library shows
# DW_AT_name.
function linkage_names(stack) {
	gsub(/__GI_/, "", stack)
	return stack
}

# Units of glibc are compiled in a relative directory, which gdb puts before their files' names.
function relative_paths(stack) {
	gsub(/@\.[^;]*\//, "@", stack)
	return stack
}

# foo.constprop.0 is foo.constprop to gdb, and foo.cold is foo[cold], if it is known by the symbol
# table alone.
function symbol_suffixes(stack) {
	gsub(/\[cold\]/, ".cold", stack)
	gsub(/\.[0-9]+@\?/, "@?", stack)
	return stack
}

# Functions with the same code may be made one, which has several symbols: gdb shows another than
# the library.  A frame without a line is known by its symbol.  symbol[] has one of all names for
# each name, by nm.
function folded_functions(stack, n, i, frame, result) {
	n = split(stack, frame, ";")
	for (i = 1; i <= n; i++) {
		if (frame[i] ~ /@\?:0$/ && name_of(frame[i]) in symbol)
			frame[i] = symbol[name_of(frame[i])] "@?:0"
		result = result (i > 1 ? ";" : "") frame[i]
	}
	return result
}

# A function that gcc has split in two is inlined into itself at its head.
function split_functions(stack, n, i, frame, result) {
	n = split(stack, frame, ";")
	for (i = 1; i <= n; i++) {
		if (i < n && frame[i + 1] ~ / inlined$/ &&
		    name_of(frame[i]) == name_of(frame[i + 1])) {
			sub(/ inlined$/, "", frame[i + 1])
			if (frame[i] ~ / inlined$/)
				frame[i + 1] = frame[i + 1] " inlined"
			continue
		}
		result = result (result != "" ? ";" : "") frame[i]
	}
	return result
}

function name_of(frame) { return substr(frame, 1, index(frame, "@") - 1) }

# A leaf that only the library has, and that is over: the name of a class, or "".  Whose waker is
# kept by a resource may still be woken, and so the library can't tell it from one that waits,
# unless names do.
function surplus(became) {
	if (became == "over, its waker kept")
		return "a finished leaf whose waker is kept"
	return ""
}
