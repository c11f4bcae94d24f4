# SPDX-License-Identifier: Apache-2.0 OR MIT
# Writes a manual page with the options of its commands: the line @OPTIONS PS BT ...@ becomes the
# options that cli/option_table.c has for these commands.
#
#	awk -f options.awk cli/option_table.c man/tdt.1.in >man/tdt.1
#
# The text of an option is the comment above its row, or the text of its help.  A heading in the
# table, if an option stands below it, is a heading of the page.

function hyphens(text)
{
	gsub(/-/, "\\-", text)
	return text
}

# Names in backquotes become bold.
function prose(text,    result)
{
	gsub(/[ \t]+/, " ", text)
	gsub(/\\"/, "\"", text)
	gsub(/\\/, "\\e", text)
	text = hyphens(text)
	while (match(text, /`[^`]+`/)) {
		result = result substr(text, 1, RSTART - 1) "\\fB" \
			substr(text, RSTART + 1, RLENGTH - 2) "\\fR"
		text = substr(text, RSTART + RLENGTH)
	}
	return "\\&" result text
}

# The bits of a row as the names of commands of this page: "ps, bt".
function commands_of(set,    bits, n, i, result)
{
	while (set ~ /SAVED|ALIVE/) {
		sub(/SAVED/, alias["SAVED"], set)
		sub(/ALIVE/, alias["ALIVE"], set)
	}
	n = split(set, bits, / *\| */)
	for (i = 1; i <= n; i++)
		if (bits[i] in on_page)
			result = result (result != "" ? ", " : "") tolower(bits[i])
	return result
}

# The quoted strings of a row: string[1], ...  Adjacent ones are one.
function split_row(row,    n, last)
{
	delete string
	while (match(row, /"(\\.|[^"\\])*"/)) {
		if (n == 0 || substr(row, 1, RSTART - 1) !~ /^[ \t]*$/)
			n++
		string[n] = string[n] substr(row, RSTART + 1, RLENGTH - 2)
		row = substr(row, RSTART + RLENGTH)
	}
	return n
}

function print_option(row,    n, set, of, letter, name)
{
	set = row
	sub(/^[ \t]*[A-Z_]+\(/, "", set)
	sub(/,.*/, "", set)
	of = commands_of(set)
	if (of == "")
		return
	letter = match(row, /'.'/) ? substr(row, RSTART + 1, 1) : ""
	n = split_row(row)
	if (heading != "" && several)
		print ".SS " heading
	heading = ""
	name = (letter != "" ? "\\fB\\-" letter "\\fR, " : "") "\\fB\\-\\-" hyphens(string[1])
	print ".TP"
	print name (n > 2 ? "=\\fI" string[2] : "") "\\fR" (several ? "  (" of ")" : "")
	print prose(comment != "" ? comment : toupper(substr(string[n], 1, 1)) \
		substr(string[n], 2) ".")
}

function print_options(    i, line, row)
{
	heading = comment = row = ""
	for (i = 1; i <= n_lines; i++) {
		line = table[i]
		if (line ~ /^\t\/\* --- .* --- \*\/$/) {
			heading = substr(line, 9, length(line) - 15)
		} else if (line ~ /^\t\/\*/ || in_comment) {
			in_comment = line !~ /\*\/$/
			gsub(/^[ \t]*\/?\*+\/?|\*\/$/, "", line)
			comment = comment (comment != "" ? " " : "") line
			sub(/^ +/, "", comment)
			sub(/ +$/, "", comment)
		} else {
			row = row line
			if (line !~ /\),$/)
				continue
			print_option(row)
			row = comment = ""
		}
	}
}

FNR == 1 { file++ }
file == 1 && /^#define (SAVED|ALIVE) / {
	alias[$2] = $0
	gsub(/^[^(]*\(|\)$/, "", alias[$2])
}
file == 1 && /^};/ { in_rows = 0 }
file == 1 && in_rows && NF > 0 { table[++n_lines] = $0 }
file == 1 && /option_rows\[\] = \{/ { in_rows = 1 }
file == 2 && /^@OPTIONS / {
	delete on_page
	sub(/@$/, "")
	for (i = 2; i <= NF; i++)
		on_page[$i] = 1
	several = NF > 2
	print_options()
	next
}
file == 2 { print }
