#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The sources that read targets, core files and recordings open files by tdt__regular_open(): a name
# that a target chose may lead to a device or a FIFO (src/base/regular_file.h).
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

# Every other open.  What is below /proc/PID belongs to the kernel; the rest the user has named, or
# is a directory or O_PATH, which opens nothing.
cat >"$tmp/want" <<'END'
cli/apart.c: return freopen("/dev/null", "w", stderr) != NULL ? 0 : -errno;
cli/program.c: file = fopen(*name, "re"); [named by the user]
cli/recordings.c: DIR *dir = opendir(path); [named by the user]
cli/processes.c: DIR *directory = opendir("/proc");
reader/images.c: int root = openat(at, directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
reader/process.c: int opened = openat(target->proc, "maps", O_RDONLY | O_CLOEXEC), error = 0;
reader/process.c: target->proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
reader/threads.c: fd = openat(target->proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
src/symbolize/debugfile.c: fd = dwfl_standard_find_debuginfo(elf, &none, "", 0, path, ".", 0, found); [debuginfod]
src/symbolize/debugfile.c: fd = dwfl_standard_find_debuginfo(elf, info, name, base, path, ".", crc, found); [debuginfod]
src/symbolize/debuginfo.c: fd[i] = open("/", O_PATH | O_CLOEXEC);
src/symbolize/maps.c: FILE *maps = fopen("/proc/self/maps", "re");
END
echo "cli/recordings.c: int fd =" \
	"tdt__regular_open_found(open(path, TDT__LOOK_FLAGS | O_NOFOLLOW)); [O_PATH]" >>"$tmp/want"
echo "reader/images.c: int found = root >= 0 ?" \
	"(int)syscall(SYS_openat2, root, path, &how, sizeof how) : NO_FILE; [O_PATH]" >>"$tmp/want"
sed 's/ \[[^]]*\]$//' "$tmp/want" | LC_ALL=C sort >"$tmp/may"

# libdw and libdwfl have functions that open files by name, too.
opening='open|openat|SYS_open[a-z0-9]*|creat|fopen|freopen|opendir|dlopen|nlist|dwarf_begin'
opening="$opening|dwfl_[a-z_]*find_(elf|debuginfo)|dwfl_report_(elf|offline)|dwfl_linux_[a-z_]*"

# opens ROOT: each call that opens a file by name
opens()
{
	(cd "$1" && grep -HE "(^|[^_.a-z>])($opening)[(,]" src/symbolize/*.[ch] \
		src/recording/*.[ch] reader/*.[ch] cli/*.[ch] tree-printer/*.[ch]) |
		sed -E 's/:[[:space:]]*/: /; /: (\*|\/\*)/d' | LC_ALL=C sort
}

opens "$top_srcdir" >"$tmp/got"
same "no file is opened by name except by tdt__regular_open()" "$tmp/may" "$tmp/got"

# The check can fail.
mkdir -p "$tmp/wrong/src/symbolize" "$tmp/wrong/reader"
echo '	int fd = open(path, O_RDONLY);' >"$tmp/wrong/src/symbolize/x.c"
echo '	dwarf = dwarf_begin(fd, 0);' >"$tmp/wrong/reader/x.c"
opens "$tmp/wrong" 2>/dev/null >"$tmp/got"
cat >"$tmp/want" <<'END'
reader/x.c: dwarf = dwarf_begin(fd, 0);
src/symbolize/x.c: int fd = open(path, O_RDONLY);
END
same "an open by name is found" "$tmp/want" "$tmp/got"
plan
