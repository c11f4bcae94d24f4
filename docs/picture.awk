# SPDX-License-Identifier: Apache-2.0 OR MIT
# Draw what a program wrote to a terminal as an SVG.  picture.sh runs this.
#
# It knows the colours that tdt's programs use (tree-printer/terminal.h) and nothing else of
# terminals: bold, dim, four colours, and plain.  A line that is too long is continued at a space.
# Run it with LC_ALL=C: the columns of a text are the bytes that begin a character.

BEGIN {
	columns = 112
	width = 8.4 # pixels of a character
	height = 19 # pixels of a line
	margin = 16
	escape = sprintf("%c", 27) "[[]" # a regular expression
	class["1"] = "b"
	class["2"] = "d"
	class["31"] = "r"
	class["32"] = "g"
	class["33"] = "y"
	class["36"] = "c"
}

function length_of(text)
{
	gsub(/[\200-\277]/, "", text)
	return length(text)
}

# Write `text` where the last text ended.  Fonts differ in width, so each text has its place and
# its length.  Spaces at the beginning are left out, since not all viewers draw them.
function emit(text,	n, at)
{
	if (match(text, /^ +/))
		column += RLENGTH
	sub(/^ +/, "", text)
	n = length_of(text)
	if (n == 0)
		return
	gsub(/&/, "\\&amp;", text)
	gsub(/</, "\\&lt;", text)
	gsub(/>/, "\\&gt;", text)
	at = sprintf("x=\"%.1f\" textLength=\"%.1f\"", margin + column * width, n * width)
	at = at " lengthAdjust=\"spacingAndGlyphs\""
	body = body "<tspan " at (style == "" ? "" : " class=\"" style "\"") ">" text "</tspan>"
	column += n
}

function begin_line()
{
	column = 0
	body = body sprintf("<text y=\"%d\">", margin + ++lines * height - 5)
}

function end_line()
{
	body = body "</text>\n"
}

# Write `text`, of one style, and continue on a new line wherever a word has no room.
function write(text,	word, run)
{
	run = ""
	while (match(text, /^ *[^ ]+/) || match(text, /^ +/)) {
		word = substr(text, 1, RLENGTH)
		text = substr(text, RLENGTH + 1)
		if (column + length_of(run word) > columns) {
			emit(run)
			end_line()
			begin_line()
			column = 4
			run = ""
			sub(/^ +/, "", word)
		}
		run = run word
	}
	emit(run)
}

{
	n = split($0, parts, escape)
	style = ""
	begin_line()
	write(parts[1])
	for (i = 2; i <= n; i++) {
		end = index(parts[i], "m")
		style = class[substr(parts[i], 1, end - 1)]
		write(substr(parts[i], end + 1))
	}
	end_line()
}

END {
	w = 2 * margin + columns * width
	h = 2 * margin + lines * height
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\""
	printf "  width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", w, h, w, h
	print "<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->"
	print "<!-- Made by docs/picture.sh. -->"
	print "<style>"
	print "text { font: 14px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }"
	print "text { fill: #d0d7de }"
	print ".b { font-weight: bold; fill: #ffffff } .d { fill: #8b949e } .r { fill: #ff7b72 }"
	print ".g { fill: #7ee787 } .y { fill: #f2cc60 } .c { fill: #79c0ff }"
	print "</style>"
	printf "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#0d1117\"/>\n", w, h
	printf "%s</svg>\n", body
}
