# SPDX-License-Identifier: Apache-2.0 OR MIT
# Make a table of system calls out of the macros of <sys/syscall.h>.  The input is the output of
# cc -E -dM -include sys/syscall.h

BEGIN {
	print "/* Made by syscall_names.awk. */"
}

$1 == "#define" && $2 ~ /^SYS_[a-z0-9_]+$/ && $3 == "__NR_" substr($2, 5) {
	name[substr($2, 5)] = 1
}

END {
	for (call in name)
		printf "{ __NR_%s, \"%s\" },\n", call, call
}
