#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Each input that is kept of fuzzing (tests/fuzz/README) is given to its target, in a process of its
# own.  Those listed in tests/fuzz/known are expected to fail.  To try an input alone:
#
#	tests/fuzz/replay_TARGET FILE
#
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

fuzz=$top_srcdir/tests/fuzz
TMPDIR=${tmp:?} # a target that fails may leave a file
export TMPDIR

# known TARGET/INPUT: why it fails; nothing if it should not.
known()
{
	sed -n "s|^$1 \(.*\)|\1|p" "$fuzz/known"
}

# replay TARGET FILE SECONDS: an endless loop fails, too, by the CPU's time, which other work on the
# machine does not spend.
replay()
{
	(ulimit -t "$3" && exec "${top_builddir:?}/tests/fuzz/replay_$1" "$2")
}

for target in json ustack environment reader recording door serve symbolize top; do
	sh "$fuzz/make_seeds.sh" $target "$tmp/$target"
	for file in "$tmp/$target"/*; do
		name=${file##*/}
		why=$(known "$target/$name")
		limit=${why:+5} # what is known to fail may be cut short
		claim "$target copes with $name${why:+ # TODO $why}" \
			replay $target "$file" "${limit:-60}"
	done
done
plan
