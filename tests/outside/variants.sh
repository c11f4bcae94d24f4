#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The same tree whatever compiler, level, instrumentation, debug information and kind of linking
# made the program.  TDT_TEST_FULL=1 tries more of these.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/instrumentation.sh
. "$top_srcdir/tests/lib/instrumentation.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
test -e "${top_builddir:?}/.libs/libtdt.so" || skip_all "built without a shared library"
fixtures=$top_srcdir/tests/outside/fixtures
shared="-I$top_srcdir/include -L$top_builddir/.libs -Wl,-rpath,$top_builddir/.libs -ltdt"
cd "$tmp" || exit

# line FILE WHAT: where the fixture says it wants WHAT.
line()
{
	grep -nF "/* want: $2 */" "$fixtures/$1" | cut -d: -f1
}

cat >tree.c.want <<END
foo_poll tree.c:$(line tree.c foo)
 bar_poll tree.c:$(line tree.c bar)
  help tree.c:$(line tree.c help)
   fiz_poll tree.c:$(line tree.c fiz)
    pending_poll tree.c:$(line tree.c pending)
   buz_poll tree.c:$(line tree.c buz)
    careful_poll tree.c:$(line tree.c careful)
     baz_poll tree.c:$(line tree.c baz)
      pending_poll tree.c:$(line tree.c pending)
END
cat >tree.cc.want <<END
shop::till::queue_poll tree.cc:$(line tree.cc queue)
 shop::till::caller::operator() tree.cc:$(line tree.cc operator)
  shop::basket<int, 3>::poll tree.cc:$(line tree.cc poll)
   shop::basket<int, 3>::step tree.cc:$(line tree.cc step)
    shop::pending_poll tree.cc:$(line tree.cc pending)
  shop::basket<shop::basket<char, 1>, 2>::poll tree.cc:$(line tree.cc poll)
   shop::basket<shop::basket<char, 1>, 2>::step tree.cc:$(line tree.cc step)
    shop::pending_poll tree.cc:$(line tree.cc pending)
END

cat >tree_stack.c.want <<END
serve_poll tree_stack.c:$(line tree_stack.c serve)
 cook tree_stack.c:$(line tree_stack.c cook)
  use_stove tree_stack.c:$(line tree_stack.c stove)
   pending_poll tree_stack.c:$(line tree_stack.c pending)
 their_poll tree_stack.c:$(line tree_stack.c poll)
  their_entry tree_stack.c:$(line tree_stack.c entry)
   their_wait tree_stack.c:$(line tree_stack.c wait)
    pending_poll tree_stack.c:$(line tree_stack.c pending)
END

# build C-COMPILER FLAGS..., build_cxx C-COMPILER C++-COMPILER FLAGS...: the program is ./tree.
# shellcheck disable=SC2086 # lists of flags
build()
{
	"$@" -g "$fixtures/tree_main.c" "$fixtures/tree.c" $shared -o tree
}

# shellcheck disable=SC2086
build_cxx()
{
	c=$1
	cxx=$2
	shift 2
	$c "$@" -g -I"$top_srcdir/include" -c "$fixtures/tree_main.c" -o main.o &&
		"$cxx" "$@" -g main.o "$fixtures/tree.cc" $shared -o tree
}

# same_tree WANTED WHAT BUILD...
same_tree()
{
	wanted=$1
	what=$2
	shift 2
	if "$@" >log 2>&1; then
		./tree >got
		same "$what" "$wanted" got
	else
		cat log >&2
		claim "$what is built" false
	fi
}

echo 'int main(void) { return 0; }' >empty.c
set -- -O2 "-O2 -flto"
if test "${TDT_TEST_FULL-}" = 1; then
	cfi='-O2 -flto -fvisibility=hidden -fuse-ld=lld -fsanitize=cfi'
	for level in 0 1 3 s; do
		set -- "$@" "-O$level -fomit-frame-pointer" "-O$level -fno-omit-frame-pointer"
	done
	set -- "$@" "-O2 -fno-omit-frame-pointer" "-O2 -gdwarf-4" "-O2 -gdwarf-5" \
		"-O2 -gsplit-dwarf" "-O2 -gsplit-dwarf -gdwarf-4" "-O2 -no-pie" \
		"-O2 -ffunction-sections -Wl,--gc-sections" "-Os -flto" "-Og" "-O2 -gz" \
		"-O2 -march=x86-64-v3" "-O2 -mcmodel=large" "-O2 -fcf-protection=full" \
		"-O2 -fstack-protector-all -fstack-clash-protection -D_FORTIFY_SOURCE=2" \
		"-O2 -ftrivial-auto-var-init=zero -fPIE -pie -Wl,-z,now" "-O2 -fno-plt" \
		"-O2 -fvisibility=hidden" "$cfi -fsanitize-cfi-cross-dso" \
		"$cfi -fno-sanitize=cfi-icall"
fi
# shellcheck disable=SC2086 # lists of flags
for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	if [ -z "$compiler" ]; then
		skip "C" "there is one compiler less"
		continue
	fi
	for flags; do
		if "$compiler" $flags empty.c -o empty 2>/dev/null; then
			same_tree tree.c.want "$compiler $flags" build "$compiler" $flags
		else
			skip "$compiler $flags" "it can't"
		fi
	done
done

set -- "-O2 -fomit-frame-pointer"
test "${TDT_TEST_FULL-}" != 1 ||
	set -- "$@" -O0 "-O3 -gdwarf-4" "-Os -fno-omit-frame-pointer" "-O2 -gsplit-dwarf" \
		"-O2 -gsplit-dwarf -gdwarf-4"
for cxx in "$TEST_GXX" "$TEST_CLANGXX"; do
	if [ -z "$cxx" ]; then
		skip "C++" "there is one compiler less"
		continue
	fi
	for flags; do
		# shellcheck disable=SC2086
		same_tree tree.cc.want "$cxx $flags" build_cxx "$CC" "$cxx" $flags
	done
done

by_rules()
{
	grep -q 'TDT_WALK_RULES 1' "$top_builddir/config.h"
}
reference=
by_rules || reference="-I$top_srcdir/tests/lib/step -I$top_srcdir/tests"

# libtdt itself in the program, compiled with it.
# shellcheck disable=SC2086 # lists of flags
build_lto()
{
	flags=$($PKG_CONFIG --cflags --libs libunwind-generic libdw zlib) &&
		"$TEST_GCC" -O2 -g -flto=auto -std=gnu11 -fexceptions -fno-omit-frame-pointer \
			-w -D_GNU_SOURCE $reference -I"$top_builddir" \
			-I"$top_srcdir" -I"$top_srcdir/include" -I"$top_srcdir/src" \
			"$fixtures/tree_main.c" "$fixtures/tree.c" $(lto_sources) -lgcc_s \
			$flags -lelf -liberty -o tree
}

lto_sources()
{
	machine=$("$TEST_GCC" -dumpmachine | sed 's/-.*//')
	for source in "$top_srcdir"/src/*.c "$top_srcdir"/src/*/*.c \
		"$top_srcdir/src/unwind/$machine"/*.[cS] "$top_srcdir"/tree-printer/*.c; do
		case $source in
		*/follow.c | */rules.c) ! by_rules || echo "$source" ;;
		*/probes.c) grep -q 'TDT_PROBES 1' "$top_builddir/config.h" && echo "$source" ;;
		*'*'* | */src/runtime/*) ;;
		*) echo "$source" ;;
		esac
	done
	by_rules || echo "$top_srcdir/tests/lib/walk_step.c"
}

if [ "${TDT_TEST_FULL-}" != 1 ]; then
	skip "all in one by -flto" "it takes long (TDT_TEST_FULL=1 has it done)"
elif [ -n "$TEST_GCC" ]; then
	same_tree tree.c.want "all in one by -flto" build_lto
else
	skip "all in one by -flto" "there is no gcc"
fi

# The static library, as rustc links it.
# shellcheck disable=SC2086 # lists of flags
build_static()
{
	flags=$($PKG_CONFIG --static --libs "$top_builddir/src/tdt.pc") &&
		$CC -O2 -g -I"$top_srcdir/include" "$fixtures/tree_main.c" "$fixtures/tree.c" \
			-fuse-ld=lld -Wl,--gc-sections \
			${flags%%-ltdt*} "$top_builddir/.libs/libtdt.a" ${flags#*-ltdt} -o tree
}

what="the static library, linked by lld with --gc-sections"
if test ! -e "$top_builddir/.libs/libtdt.a"; then
	skip "$what" "built without a static library"
elif $CC -fuse-ld=lld empty.c -o empty 2>/dev/null; then
	same_tree tree.c.want "$what" build_static
else
	skip "$what" "there is no lld"
fi

# A function that gcc splits is shown once, on the line that it has come to; a recursive one as
# often as it is called.
cat >split.want <<END
leaf_poll split.c:$(line split.c leaf)
caller_poll split.c:$(line split.c caller)
 leaf_poll split.c:$(line split.c leaf)
deep_poll split.c:$(line split.c six)
 deep split.c:$(line split.c deep)
  deep split.c:$(line split.c deep)
   deep split.c:$(line split.c deep)
    deep split.c:$(line split.c deep)
     deep split.c:$(line split.c deep)
      deep split.c:$(line split.c deep)
END
build_split()
{
	"$@" -g "$fixtures/tree_main.c" "$fixtures/split.c" $shared -o tree
}
set -- 2
test "${TDT_TEST_FULL-}" != 1 || set -- 0 1 2 3
for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	for level; do
		if [ -n "$compiler" ]; then
			same_tree split.want "split functions, $compiler -O$level" build_split \
				"$compiler" -O$level
		else
			skip "split functions -O$level" "there is one compiler less"
		fi
	done
done

# An own combinator that ends in a call which becomes a jump is lost; all others are there.
lost()
{
	$CC -O2 -g -DCARELESS "$fixtures/tree_main.c" "$fixtures/tree.c" $shared -o tree &&
		./tree >got &&
		! grep careless_poll got && test "$(grep -c _poll got)" = 8
}

# Instrumented programs: a tree of futures, one with two kinds of coroutines that have stacks, and
# one in C++.
# shellcheck disable=SC2086 # a list of flags
build_instrumented()
{
	fixture=$1
	shift
	$CC -g -I"$top_srcdir/include" -c "$fixtures/tree_main.c" -o main.o &&
		"$@" -g main.o "$fixtures/$fixture" hooks.o $shared -o tree
}

instrumented_tree()
{
	fixture=$1
	shift
	same_tree "$fixture.want" "$* $fixture" build_instrumented "$fixture" "$@"
}

claim "the hooks of instrumented programs are built" build_hooks
for compiler in "$TEST_GCC" "$TEST_CLANG"; do
	test -n "$compiler" || continue
	instrumented "$compiler" instrumented_tree tree.c
	instrumented "$compiler" instrumented_tree tree_stack.c
done
for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
	test -z "$compiler" || instrumented "$compiler" instrumented_tree tree.cc
done

# Without debug information in the program.
# shellcheck disable=SC2086 # $CC may hold options
stripped()
{
	build $CC -O0 && objcopy --only-keep-debug tree tree.debug && strip "$@" tree
}

if command -v objcopy >/dev/null && command -v strip >/dev/null; then
	split()
	{
		stripped && objcopy --add-gnu-debuglink=tree.debug tree
	}
	same_tree tree.c.want "debug information in a file of its own" split
	sed 's/tree.c:.*/?:0/' tree.c.want >symbols.want
	without()
	{
		stripped "$@" && rm tree.debug
	}
	same_tree symbols.want "symbols alone" without --strip-debug
	# Here the helpers of the headers can't be told from the program's own functions.
	nameless()
	{
		without && ./tree >got && ! grep -v '^ *tree+0xoffset$' got &&
			test "$(wc -l <got)" -ge "$(wc -l <tree.c.want)"
	}
	claim "of neither names nor debug information, module and offset" nameless
else
	skip "stripped programs" "there is no objcopy or strip"
fi
claim "a poll that becomes a jump is lost, and no other" lost
plan
