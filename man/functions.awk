# SPDX-License-Identifier: Apache-2.0 OR MIT
# Writes a manual page for each function, macro with arguments and variable of the public headers,
# from the comment that stands above it.  Names that begin with tdt__ or TDT__ are internal.
#
#	awk -v out=FOLDER -v version=VERSION -f functions.awk include/tdt/*.h include/tdt/*/*.h
#
# Declarations that follow each other without an empty line share the comment above them.  Its first
# sentence is the headline.  In a comment, a line that begins with a tab is code, and "  WORD  text"
# is an item of a list.

function plain(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

# The text of a paragraph: names in backquotes in italics, and names of functions in bold.
function prose(text,    result)
{
	text = plain(text)
	while (match(text, /`[^`]+`|(tdt|TDT)_[A-Za-z0-9_]+\(\)/)) {
		result = result substr(text, 1, RSTART - 1)
		if (substr(text, RSTART, 1) == "`")
			result = result "\\fI" substr(text, RSTART + 1, RLENGTH - 2) "\\fR"
		else
			result = result "\\fB" substr(text, RSTART, RLENGTH - 2) "\\fR()"
		text = substr(text, RSTART + RLENGTH)
	}
	return "\\&" result text
}

# Ends code or a list.
function leave()
{
	if (inside == "code")
		print ".EE" >file
	else if (inside == "list")
		print ".PP" >file
	inside = ""
}

function enter(what)
{
	if (inside == what)
		return
	leave()
	if (what == "code")
		print ".EX" >file
	inside = what
}

function print_line(line,    term)
{
	if (line == "") {
		if (inside == "list")
			leave()
		else
			print (inside == "code" ? "" : ".PP") >file
	} else if (line ~ /^\t/) {
		enter("code")
		print "\\&" plain(line) >file
	} else if (line ~ /^   ? ?[^ ].*[^ ]  +[^ ]/ && line !~ /^ *[^ ]+[.:]  /) {
		enter("list")
		sub(/^ +/, "", line)
		match(line, /  +/)
		term = substr(line, 1, RSTART - 1)
		line = substr(line, RSTART + RLENGTH)
		print ".TP\n" prose(term) "\n" prose(line) >file
	} else if (inside == "list" && line ~ /^   /) {
		sub(/^ +/, "", line)
		print prose(line) >file
	} else {
		leave()
		sub(/^ +/, "", line)
		print prose(line) >file
	}
}

# The first sentence, without a capital letter at its beginning.
function headline(    text)
{
	text = paragraph
	sub(/[.:]  .*|[.:]$/, "", text)
	gsub(/`/, "", text)
	return text ~ /^[A-Z][a-z ]/ ? tolower(substr(text, 1, 1)) substr(text, 2) : text
}

# The functions that the comment names, and the overview.
function print_see_also(name,    text, other, seen, i, line)
{
	line = ".BR " overview " (3)"
	for (i = 1; i <= n_lines; i++) {
		text = comment[i]
		while (match(text, /tdt_[a-z0-9_]+\(\)/)) {
			other = substr(text, RSTART, RLENGTH - 2)
			text = substr(text, RSTART + RLENGTH)
			if (other == name || other in seen)
				continue
			seen[other] = 1
			line = line ",\n.BR " other " (3)"
		}
	}
	print ".SH SEE ALSO\n" line >file
}

function print_page(name,    i)
{
	file = out "/" name ".3"
	print ".\\\" SPDX-License-Identifier: Apache-2.0 OR MIT" >file
	print ".\\\" Made from <" header ">." >file
	print ".TH " name " 3 \"\" \"tdt " version "\" \"Library Functions Manual\"" >file
	print ".SH NAME\n" name " \\- " plain(headline()) >file
	print ".SH SYNOPSIS\n.nf\n.B #include <" header ">\n.PP" >file
	printf "%s", synopsis >file
	print ".fi\n.SH DESCRIPTION" >file
	inside = ""
	for (i = 1; i <= n_lines; i++)
		print_line(comment[i])
	leave()
	print_see_also(name)
	close(file)
}

# Ends the declarations that share a comment.
function end_group(    i)
{
	for (i = 1; i <= n_names; i++)
		if (!(names[i] in done)) {
			done[names[i]] = 1
			print_page(names[i])
		}
	n_names = 0
	n_lines = 0
	synopsis = ""
	paragraph = ""
}

function add_line(line)
{
	sub(/ *\*\/$/, "", line)
	sub(/^ \* ?/, "", line)
	if (line == "" && n_lines == 0)
		return
	if (!first_ended && line != "") {
		space = paragraph == "" ? "" : paragraph ~ /[.:]$/ ? "  " : " "
		paragraph = paragraph space line
	}
	first_ended = first_ended || line == ""
	comment[++n_lines] = line
}

# Takes the declaration whose text is in `text`, and that ends with `last`.
function declare(name, last)
{
	gsub(/[\t ]+/, " ", text)
	gsub(/__attribute__ ?\(\([^()]*(\([^()]*\))?[^()]*\)\) ?/, "", text)
	sub(/^ *(extern )?(static inline )?(TDT_MUST_USE )?/, "", text)
	sub(/ *[{;].*/, "", text)
	gsub(/\* /, "*", text)
	if (n_lines == 0 || name == names[n_names] || name ~ /^(tdt|TDT)__/)
		return
	names[++n_names] = name
	synopsis = synopsis ".BR \"" plain(text) last "\"\n"
}

function name_of(text)
{
	if (match(text, /tdt_[a-z0-9_]+\(/))
		return substr(text, RSTART, RLENGTH - 1)
	if (text ~ /^extern/ && match(text, /tdt_[a-z0-9_]+;/))
		return substr(text, RSTART, RLENGTH - 1)
	return ""
}

FNR == 1 {
	end_group()
	header = FILENAME
	sub(/^(.*\/)?tdt\//, "tdt/", header)
	overview = header ~ /^tdt\/rt\// ? "tdt-rt" : "tdt"
	skipped = ""
}

# The rest of a macro, of a type, or of a function's body.
skipped == "macro" {
	if ($0 !~ /\\$/)
		skipped = ""
	next
}
skipped == "body" {
	if (/^}/)
		skipped = ""
	next
}

# Comments.
skipped == "comment" || /^\/\*/ {
	if (skipped == "") {
		end_group()
		first_ended = 0
		sub(/^\/\*/, " *")
		sub(/^ \* ? ?/, " * ")
	}
	if ($0 != " */")
		add_line($0)
	skipped = /\*\/$/ ? "" : "comment"
	next
}

/^}?$/ {
	if (/^$/)
		end_group()
	text = ""
	next
}

/^#/ {
	if (match($0, /^# *define (tdt|TDT)_[A-Za-z0-9][A-Za-z0-9_]*\(/)) {
		text = $0
		sub(/^# *define /, "", text)
		name = text
		sub(/\(.*/, "", name)
		match(text, /\([^)]*\)/)
		text = substr(text, 1, RSTART + RLENGTH - 1)
		declare(name, "")
		text = ""
	}
	if (/\\$/)
		skipped = "macro"
	next
}

/^(struct|enum|union|class|namespace|template|typedef)[^()]*\{/ {
	skipped = "body"
	next
}

/^[a-z\t]/ {
	text = (text == "" ? "" : text " ") $0
	if (!/[{;]/)
		next
	if (name_of(text) != "" && text !~ /^typedef/)
		declare(name_of(text), ";")
	text = ""
	next
}

/^{/ {
	if (name_of(text) != "")
		declare(name_of(text), ";")
	text = ""
	skipped = "body"
}

END {
	end_group()
}
