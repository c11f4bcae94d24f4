# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Compare what is true of a program's leaves with what the library says, frame for frame:
#
#	awk -f classes.awk -f compare.awk -v flags=FLAGS symbols truth ours
#
# `symbols` is of nm, `truth` of frames.py, `ours` of run.c.  The leaves of a poll are compared as
# a set, since a tree orders them its own way: first those that are the same as they stand, then
# those that are so by classes.awk, and what is left is paired by what the stacks have in common. 
# Prints `compared LEAVES FRAMES INLINED`, a line `class NAME` for each leaf that was the same by
# that class, and `mismatch ...` with both stacks.
BEGIN { FS = "\t" }

# A path is written in more than one way: of the library's files, which are mapped, the name stands
# for all of it.  Its polls have a second symbol.
{ while (gsub(/\/\.\//, "/")); }
FILENAME != ARGV[1] {
	gsub(/@([^@;|\t]*\/)?(include\/tdt|src\/[a-z]+)\//, "@")
	gsub(/\.poll@/, "@")
}

FILENAME == ARGV[1] {
	split($0, word, " ")
	sub(/\.[0-9]+$/, "", word[3])
	if (!(word[1] in at))
		at[word[1]] = word[3]
	symbol[word[3]] = at[word[1]]
	next
}
FILENAME == ARGV[2] && $0 == "end" { next }
FILENAME == ARGV[2] {
	n++
	true_poll[n] = $1
	became[n] = $2
	by_addr2line[n] = true[n] = $3
	gsub(/\|[^; ]*/, "", true[n])
	gsub(/@[^@|;]*\|/, "@", by_addr2line[n])
	next
}
$0 !~ /^[0-9]+\t/ { print "mismatch: " $0; next }
{
	m++
	our_poll[m] = $1
	guessed += gsub(/ guessed/, "", $2) > 0
	ours[m] = $2
	unsure[m] = $3
}

# How many frames two stacks have in common, from the outermost on.
function common(a, b, n, m, i, x, y) {
	n = split(a, x, ";")
	m = split(b, y, ";")
	for (i = 1; i <= n && i <= m && x[i] == y[i]; i++)
		;
	return i - 1
}

# The leaf of ours, not paired yet, that is the leaf `i`; 0: none.
function same(i, j) {
	for (j = 1; j <= m; j++)
		if (our_poll[j] == true_poll[i] && !(j in paired) &&
		    (ours[j] == true[i] || ours[j] == by_addr2line[i]))
			return j
	return 0
}

# That which has most in common with it.
function nearest(i, j, best) {
	for (j = 1; j <= m; j++)
		if (our_poll[j] == true_poll[i] && !(j in paired) &&
		    (!best || common(true[i], ours[j]) > common(true[i], ours[best])))
			best = j
	return best
}

# Pair leaves that wait with the same ones of ours.
function pair_same(i, j, name) {
	for (i = 1; i <= n; i++) {
		if (became[i] != "waits" || (j = same(i)) == 0)
			continue
		paired[j] = 1
		became[i] = "paired"
		if (ours[j] != true[i])
			print "class " LINES
		for (name in classes)
			if ((i, name) in true_classes || (j, name) in our_classes)
				print "class " name
	}
}

function rewrite(i, name, found) {
	for (i = 1; i <= n; i++) {
		split("", found)
		true[i] = canonical(true[i], found)
		by_addr2line[i] = canonical(by_addr2line[i], found)
		for (name in found)
			classes[name] = true_classes[i, name] = 1
	}
	for (i = 1; i <= m; i++) {
		split("", found)
		ours[i] = canonical(ours[i], found)
		for (name in found)
			classes[name] = our_classes[i, name] = 1
	}
}

# Leaves of ours that are over, as the program says.
function pair_over(i, j, name) {
	for (i = 1; i <= n; i++) {
		name = surplus(became[i])
		if (name != "" && (j = same(i)) != 0) {
			print "class " name (unsure[j] > 0 ? ", marked" : ", not marked")
			paired[j] = 1
		}
	}
}

function mismatch(poll, what, truth, ours) {
	printf "mismatch in poll %d%s\n", poll, what
	show("truth", truth)
	show("ours ", ours)
}

function show(who, stack, n, i, frame) {
	n = split(stack, frame, ";")
	if (n == 0)
		print "  " who " none"
	for (i = 1; i <= n; i++)
		print "  " who " " frame[i]
}

function print_mismatches(i, j) {
	for (i = 1; i <= n; i++) {
		if (became[i] != "waits")
			continue
		j = nearest(i)
		if (j)
			paired[j] = 1
		if (j && unsure[j] == "marked")
			print "class from outside: wrong from some frame on, and marked"
		else
			mismatch(true_poll[i], "", true[i], j ? ours[j] : "")
	}
	for (j = 1; j <= m; j++)
		if (!(j in paired))
			mismatch(our_poll[j], ", of a leaf that doesn't wait", "", ours[j])
}

function count(stack, n, i, frame) {
	n = split(stack, frame, ";")
	leaves++
	frames += n
	for (i = 1; i <= n; i++)
		inlined += frame[i] ~ / inlined$/
}

END {
	for (i = 1; i <= n; i++)
		if (became[i] == "waits")
			count(true[i])
	pair_same()
	rewrite()
	pair_same()
	pair_over()
	print_mismatches()
	printf "compared %d %d %d\n", leaves, frames, inlined
}
