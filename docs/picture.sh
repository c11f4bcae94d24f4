#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Renew the picture of README.md: what two demos print to a terminal, with its colours, as an SVG.
#
#	make picture			in a build directory; or
#	docs/picture.sh DEMO-FOLDER >docs/waiting.svg
#
# script(1) is the terminal.  Debian's converters did not suit: aha and colorized-logs' ansi2html
# write HTML, which a README can't show; termtosvg writes animations, and rich a drawing that loads
# its font from another server (and is Python).  The awk script knows what tdt prints.
set -eu
programs=${1:?the folder of the demos that were built}
here=$(cd "$(dirname "$0")" && pwd)
LC_ALL=C.UTF-8 TERM=xterm
export LC_ALL TERM
unset NO_COLOR

# show PROGRAM: a prompt, and what the program writes.
show()
{
	printf '\033[2m$\033[0m \033[1mdemo/%s\033[0m\n' "$1"
	script -qec "$programs/$1" /dev/null </dev/null | tr -d '\r'
}

{
	show taskdump
	echo
	show stuck
} | sed '$ { /^$/d }' | LC_ALL=C awk -f "$here/picture.awk"
