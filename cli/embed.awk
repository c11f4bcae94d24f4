# SPDX-License-Identifier: Apache-2.0 OR MIT
# Writes files as C: each as an array of its lines, and NULL.  The name of an array is that of its
# file, with _ for the point.
#
#	awk -f embed.awk report.css report.js >report.inc

FNR == 1 {
	if (NR > 1)
		print "NULL };"
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\./, "_", name)
	print "static const char *const " name "[] = {"
}

{
	gsub(/[\\"]/, "\\\\&")
	print "\"" $0 "\\n\","
}

END {
	print "NULL };"
}
