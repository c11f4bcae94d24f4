# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Of what the library says of a program of coroutines (run.c), keep what the program can know: its
# own frames, and those that nothing is known of.  (Assembly in tdt/coroutine.hpp has names and no
# lines.)  Names lose their templates' arguments, and lambdas theirs.
BEGIN { FS = OFS = "\t" }

function own(frame) { return frame !~ /^tdt__|@((.*\/)?(include\/tdt|src)\/|\/usr\/)/ }

function plain(frame, place) {
	place = substr(frame, index(frame, "@"))
	sub(/ inlined/, "", place)
	frame = substr(frame, 1, index(frame, "@") - 1)
	gsub(/<[^<>]*>/, "", frame)
	if (frame ~ /operator\(\)$/)
		frame = "lambda"
	return frame place
}

{
	n = split($2, frame, ";")
	$2 = ""
	for (i = 1; i <= n; i++)
		if (own(frame[i]))
			$2 = $2 ($2 != "" ? ";" : "") plain(frame[i])
	print
}
