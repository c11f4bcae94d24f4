# SPDX-License-Identifier: Apache-2.0 OR MIT
# A tracefile of lcov, as a table of the lines that ran: by folder, and the ten files with the most
# lines that never did.  `root` is the folder that the others are told from, with a slash behind it.

/^SF:/ {
	file = substr($0, 4)
	if (index(file, root) == 1)
		file = substr(file, length(root) + 1)
	folder = file
	sub(/\/[^\/]*$/, "", folder)
}

/^DA:/ {
	split(substr($0, 4), line, ",")
	lines[folder]++
	all++
	of[file]++
	if (line[2] == 0) {
		missed_in[folder]++
		missed[file]++
		missed_in_all++
	}
}

function row(what, lines, missed)
{
	return sprintf("%-28s %7d %7d %6.1f %%", what, lines, missed,
		100 * (lines - missed) / lines)
}

function head(what)
{
	return sprintf("%-28s %7s %7s %8s", what, "lines", "missed", "ran")
}

END {
	if (all == 0) {
		print "no lines"
		exit 1
	}
	print head("folder")
	sort = "LC_ALL=C sort"
	for (folder in lines)
		print row(folder, lines[folder], missed_in[folder]) | sort
	close(sort)
	print row("all", all, missed_in_all)

	print "\n" head("most missed")
	sort = "LC_ALL=C sort -k3,3nr -k1,1 | head -n 10"
	for (file in missed)
		print row(file, of[file], missed[file]) | sort
	close(sort)
}
