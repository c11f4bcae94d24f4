#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Put the kept inputs of a fuzz target into a directory:
#
#	make_seeds.sh TARGET DIRECTORY
#
# The files of seeds/TARGET are copied; a file *.hex stands for the bytes that it spells, a file *.s
# for the ELF file that it is assembled to.  Inputs whose names begin with crash-, timeout- or
# memory- once made the target fail.  ELF files without damage are compiled here, from a small
# program and from fixtures of other tests: so no binary is committed, and the files are what the
# compilers of this machine make.
set -u
target=$1
to=$2
here=$(cd "$(dirname "$0")" && pwd)
fixtures=$here/../outside/fixtures
mkdir -p "$to"
to=$(cd "$to" && pwd)
assembler=${TEST_GCC-gcc}
[ -n "$assembler" ] || assembler=$TEST_CLANG

# compile NAME COMPILER FLAG...: only the source's own code, so that the file is small.
compile()
{
	name=$1
	shift
	[ -n "$1" ] || return
	"$@" -g -nostdlib -fno-exceptions -fno-asynchronous-unwind-tables -o "$to/$name" \
		-Wl,-e,main,-z,noseparate-code,-z,max-page-size=4096 ||
		echo "make_seeds.sh: no $name" >&2
}

copy_kept()
{
	for file in "$here/seeds/$target"/*; do
		name=$(basename "$file")
		case $name in
		\*) ;;
		*.hex) LC_ALL=C "${AWK:-awk}" -f "$here/unhex.awk" "$file" >"$to/${name%.hex}" ;;
		*.s) compile "${name%.s}" "$assembler" -static -Wl,--build-id=none "$file" ;;
		*) cp "$file" "$to" ;;
		esac
	done
}

# programs NAME COMPILER
programs()
{
	small="-static $here/small.cc"
	no_id=-Wl,--build-id=none
	# shellcheck disable=SC2086 # several arguments
	{
		compile "$1-O0" "$2" -O0 -gdwarf-5 $no_id $small
		compile "$1-O2-dwarf4" "$2" -O2 -gdwarf-4 $no_id $small
		compile "$1-O2-dwarf5" "$2" -O2 -gdwarf-5 -Wl,--build-id=0xf00df00d $small
		compile "$1-gz" "$2" -O1 -gz $no_id $small
		(cd "$to" && compile "$1-split" "$2" -O1 -gsplit-dwarf $no_id $small)
		rm -f "$to"/*.dwo
	}
}

# library NAME COMPILER FLAG...
library()
{
	compile "$@" -fPIC -shared -fvisibility=hidden -ffunction-sections \
		-Wl,--gc-sections,--build-id=none
}

# strip_program NAME: what is left when others than compilers are done with it.
strip_program()
{
	[ -f "$to/$1" ] || return
	objcopy --strip-debug "$to/$1" "$to/$1-symbols"
	objcopy --only-keep-debug "$to/$1" "$to/$1-debug"
	objcopy --strip-all --add-gnu-debuglink="$to/$1-debug" "$to/$1" "$to/$1-link"
}

copy_kept
[ "$target" = symbolize ] || exit 0
programs gcc "${TEST_GXX-g++}"
programs clang "${TEST_CLANGXX-clang++}"
library gcc-chain "${TEST_GCC-gcc}" -O2 -gdwarf-5 "$fixtures/chain.c"
library gcc-names "${TEST_GXX-g++}" -O1 -gdwarf-4 "$fixtures/names.cc"
library clang-chain "${TEST_CLANG-clang}" -O2 -gdwarf-5 "$fixtures/chain.c"
library clang-names "${TEST_CLANGXX-clang++}" -O1 -gdwarf-4 "$fixtures/names.cc"
strip_program gcc-O2-dwarf5
strip_program clang-O2-dwarf5
