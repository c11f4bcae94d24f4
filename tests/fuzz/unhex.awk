# SPDX-License-Identifier: Apache-2.0 OR MIT
# Print the bytes that pairs of hexadecimal digits spell; # begins a comment.  Run this with
# LC_ALL=C, so that a character is a byte.

{
	sub(/#.*/, "")
	gsub(/[ \t\r]/, "")
	line = tolower($0)
	for (i = 1; i < length(line); i += 2)
		printf "%c", 16 * digit(substr(line, i, 1)) + digit(substr(line, i + 1, 1))
}

function digit(character)
{
	return index("0123456789abcdef", character) - 1
}
