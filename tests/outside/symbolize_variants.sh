#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The same fixtures, compiled and packaged in many ways, must give the same names.  A fixture prints
# the addresses it was at and what it expects there (fixtures/trail.h); tests/outside/symbolize_pcs
# says what the library makes of them.
set -u

# shellcheck disable=SC2154 # automake sets these
helper=$top_builddir/tests/outside/symbolize_pcs
# shellcheck disable=SC2154
sources=$top_srcdir/tests/outside/fixtures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset DEBUGINFOD_URLS
n=0

# check CLAIM: that `got` is `expected`
check()
{
	n=$((n + 1))
	if [ -s expected ] && diff expected got >difference 2>&1; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		head -n 20 difference | sed 's/^/# /'
	fi
}

skip()
{
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

build_id()
{
	readelf -n "$1" | sed -n 's/.*Build ID: //p'
}

# symbolize FILE BUILD_ID [DEBUG_DIRECTORY]: the addresses of `trail`, to `got`
symbolize()
{
	cut -d ' ' -f 1 trail | timeout 600 "$helper" "$@" >got.symbols ||
		echo "symbolize_pcs: $?" >>got.symbols
	sed 's/ \[.*//' got.symbols >got
}

# build COMPILER FLAG...: to ./fixture, its trail to `trail` and `expected`
build()
{
	rm -f fixture trail expected
	driver=$1
	shift
	"$driver" -Wl,--build-id "$@" -o fixture || return
	./fixture >trail
	cp trail expected
}

# With no debug information, what the symbol table knows: the outermost function.
expect_symbols()
{
	sed 's/ .* < / /; s/@.*/@?:0/' trail >expected
}

expect_nothing()
{
	sed 's/ .*/ ?/' trail >expected
}

# Any build is as good as another.
whole()
{
	claim=$1
	shift
	if [ -z "$1" ]; then
		skip "$claim" "no such compiler"
		return
	fi
	build "$@"
	symbolize "$work/fixture" "$(build_id fixture)"
	check "$claim"
}

# In the last fixture: assembly of the C library that has no unit.
start_code()
{
	if [ -z "$cc" ]; then
		skip "$1, code without debug information is in no dropped function" \
			"no such compiler"
		return
	fi
	# _start itself is where the one before ends, as a return address; four bytes on is safely
	# inside.
	printf '0x%x _start@?:0\n' $((0x$(nm fixture | sed -n "s/ T _start$//p") + 4)) >trail
	cp trail expected
	symbolize "$work/fixture" "$(build_id fixture)"
	check "$1, code without debug information is in no dropped function"
}

each_compiler()
{
	for compiler in gcc clang; do
		if [ $compiler = gcc ]; then
			cc=$TEST_GCC cxx=$TEST_GXX
		else
			cc=$TEST_CLANG cxx=$TEST_CLANGXX
		fi
		c=$sources/chain.c
		whole "$compiler -O0" "$cc" -g -O0 "$c"
		whole "$compiler -O2, DWARF 4" "$cc" -gdwarf-4 -O2 "$c"
		whole "$compiler -O2, DWARF 5" "$cc" -gdwarf-5 -O2 "$c"
		whole "$compiler -O2 -flto" "$cc" -g -O2 -flto "$c"
		whole "$compiler -O2 -no-pie" "$cc" -g -O2 -fno-pie -no-pie "$c"
		whole "$compiler, unused functions dropped" "$cc" -g -O2 -ffunction-sections \
			-Wl,--gc-sections "$c"
		start_code "$compiler"
		whole "$compiler, compressed debug information" "$cc" -g -gz=zlib -O2 "$c"
		whole "$compiler, C++ -O0" "$cxx" -g -O0 "$sources/names.cc"
		whole "$compiler, C++ -O2" "$cxx" -g -O2 "$sources/names.cc"
		whole "$compiler, C++ -O2 -flto" "$cxx" -g -O2 -flto "$sources/names.cc"
	done
}

# Paths as make gives them, and units without a build-id.
relative_paths()
{
	cp "$sources/chain.c" "$sources/trail.h" .
	for version in 4 5; do
		build "$cc" -gdwarf-$version -O2 chain.c
		sed "s,@chain.c,@$work/chain.c,g" trail >expected
		symbolize "$work/fixture" "$(build_id fixture)"
		check "a relative path is made a full one, DWARF $version"
	done
	build "$cc" -g -O2 "$sources/chain.c" -Wl,--build-id=none
	symbolize "$work/fixture" ""
	check "no build-id, neither loaded nor in the file"
	expect_nothing
	symbolize "$work/fixture" 0123456789
	check "no build-id in the file, but in what was loaded: no names"
}

separate_files()
{
	build "$cc" -g -O2 "$sources/chain.c"
	id=$(build_id fixture)
	directory=debug/.build-id/$(echo "$id" | cut -c 1-2)
	by_id=$directory/$(echo "$id" | cut -c 3-).debug
	mkdir -p .debug "$directory" "debug$work"
	objcopy --only-keep-debug fixture fixture.debug
	mv fixture.debug away
	strip fixture

	expect_nothing
	symbolize "$work/fixture" "$id" "$work/debug"
	check "stripped: no names"

	cp fixture stripped
	cp trail expected
	mv away fixture.debug
	objcopy --add-gnu-debuglink=fixture.debug stripped fixture
	symbolize "$work/fixture" "$id" "$work/debug"
	check "a debug file beside the file, by .gnu_debuglink"
	mv fixture.debug .debug
	symbolize "$work/fixture" "$id" "$work/debug"
	check "a debug file in .debug, by .gnu_debuglink"
	mv .debug/fixture.debug "debug$work"
	symbolize "$work/fixture" "$id" "$work/debug"
	check "a debug file in the debug directory, by .gnu_debuglink"
	mv "debug$work/fixture.debug" "$by_id"
	mkfifo .debug/fixture.debug
	symbolize "$work/fixture" "$id" "$work/debug"
	check "a FIFO in place of the debug file is not waited for, and one by build-id found"
	cp stripped fixture
	mkfifo fixture.debug
	symbolize "$work/fixture" "$id" "$work/debug"
	check "nor is one with the name that is guessed where there is no .gnu_debuglink"
	rm .debug/fixture.debug
	cp "$by_id" away
	rm "$by_id"
	mv expected whole
	expect_nothing
	symbolize "$work/fixture" "$id" "$work/debug"
	check "a FIFO in place of the only debug file: no names"
	rm fixture.debug
	mv whole expected
	mv away "$by_id"
	symbolize "$work/fixture" "$id" "$work/debug"
	check "a debug file by build-id"
	rm fixture
	symbolize "$work/fixture" "$id" "$work/debug"
	check "a debug file by build-id, and the file is gone"
	echo replaced >fixture
	symbolize "$work/fixture" "$id" "$work/debug"
	check "a debug file by build-id, and the file is another one"
	cp stripped fixture
	objcopy --only-keep-debug "$helper" "$by_id" 2>/dev/null || cp "$sources/chain.c" "$by_id"
	expect_nothing
	symbolize "$work/fixture" "$id" "$work/debug"
	check "a debug file of something else is not believed"

	rm -r debug .debug
	build "$cc" -g -O0 "$sources/chain.c"
	strip --strip-debug fixture
	expect_symbols
	symbolize "$work/fixture" "$(build_id fixture)"
	check "without debug information the symbol table's names"
}

# Of large files pages are let go in between.
large_files()
{
	build "$cc" -g -O2 -flto "$sources/chain.c"
	id=$(build_id fixture)
	head -c 20000000 /dev/zero >filler
	objcopy --add-section .debug_filler=filler fixture large
	mv large fixture
	symbolize "$work/fixture" "$id"
	check "a file of 20 MB"
	mkdir .debug
	objcopy --only-keep-debug fixture .debug/fixture.debug
	strip fixture
	objcopy --add-gnu-debuglink=.debug/fixture.debug fixture
	symbolize "$work/fixture" "$id"
	check "a debug file of $(($(wc -c <.debug/fixture.debug) / 1000000)) MB"
	rm -r .debug filler
}

libraries()
{
	"$cc" -O1 "$sources/runner.c" -o runner
	"$cc" -g -O2 -fPIC -shared -Wl,--build-id "$sources/chain.c" -o library.so
	./runner ./library.so >trail
	cp trail expected
	symbolize "$work/library.so" "$(build_id library.so)"
	check "a library that was loaded and unloaded"
	strip library.so
	sed -n '/ last_call@/p' trail | sed 's/@.*/@?:0/' >expected
	symbolize "$work/library.so" "$(build_id library.so)"
	grep last_call got >found
	mv found got
	check "a stripped library has the names it exports"
}

# What is known without the file .dwo: not even a line, which may be that of an inlined function.
expect_missing()
{
	sed -E 's/ (.* < )?([^@ ]*)@.*/ \2@?:0/' trail | sed "s|\$|, no $1|" >expected
}

# The functions are in a file of their own, which a unit refers to by number.
split_dwarf()
{
	for compiler in gcc clang; do
		if [ $compiler = gcc ]; then
			cc=$TEST_GCC cxx=$TEST_GXX
		else
			cc=$TEST_CLANG cxx=$TEST_CLANGXX
		fi
		for version in 4 5; do
			flags="-gdwarf-$version -gsplit-dwarf"
			# shellcheck disable=SC2086 # a list
			{
				whole "$compiler -O0 $flags" "$cc" $flags -O0 "$sources/chain.c"
				whole "$compiler -O2 $flags" "$cc" $flags -O2 "$sources/chain.c"
				whole "$compiler -O2 $flags, a section for each function" "$cc" \
					$flags -O2 -ffunction-sections "$sources/chain.c"
				whole "$compiler -O2 $flags, compressed" "$cc" $flags -O2 -gz=zlib \
					"$sources/chain.c"
				whole "$compiler, C++ -O2 $flags" "$cxx" $flags -O2 \
					"$sources/names.cc"
				whole "$compiler, C++ -O2 $flags, types in units of their own" \
					"$cxx" $flags -O2 -fdebug-types-section "$sources/names.cc"
			}
		done
	done
}

# Clang may leave functions in the program, too, into which others were inlined.  (With DWARF 4
# libdw takes such a unit for one that has no lines.)
split_inlining()
{
	claim="clang -fsplit-dwarf-inlining: names without the file"
	if [ -z "$TEST_CLANG" ]; then
		skip "$claim" "no such compiler"
		return
	fi
	"$TEST_CLANG" -gdwarf-5 -gsplit-dwarf -fsplit-dwarf-inlining -O2 -c "$sources/chain.c" \
		-o in.o
	build "$TEST_CLANG" in.o
	rm in.dwo
	expect_missing "$work/in.dwo"
	{
		grep outer@ trail
		grep -v outer@ expected
	} >expected.both
	mv expected.both expected
	symbolize "$work/fixture" "$(build_id fixture)"
	check "$claim"
}

# damaged WHOLE FILE MODULE BUILD_ID: that there are answers while FILE has a part of WHOLE, and
# while it is damaged there.
damaged()
{
	size=$(wc -c <"$1")
	for part in 1 2 3 4 5 6 7 8 9; do
		head -c $((size * part / 10)) "$1" >"$2"
		symbolize "$3" "$4"
		cut -d ' ' -f 1 got | sed "s/^/truncated at $part /"
		printf '\377\377\377\377' >>"$2"
		tail -c +$((size * part / 10 + 5)) "$1" >>"$2"
		symbolize "$3" "$4"
		cut -d ' ' -f 1 got | sed "s/^/damaged at $part /"
	done >got.all
	mv got.all got
	for part in 1 2 3 4 5 6 7 8 9; do
		cut -d ' ' -f 1 trail | sed "s/^/truncated at $part /"
		cut -d ' ' -f 1 trail | sed "s/^/damaged at $part /"
	done >expected
}

# Where the file may be, and what may have happened to it.
split_files()
{
	mkdir object
	"$cc" -gdwarf-5 -gsplit-dwarf -O1 -c "$sources/chain.c" -o object/chain.o
	"$cc" -Wl,--build-id object/chain.o -o fixture
	./fixture >trail
	cp trail expected
	id=$(build_id fixture)
	symbolize "$work/fixture" "$id"
	check "-gsplit-dwarf: the file beside the object"
	mv object elsewhere
	expect_missing "$work/object/chain.dwo"
	symbolize "$work/fixture" "$id"
	check "-gsplit-dwarf: it is said which file is missing"
	mkdir bin
	mv fixture bin
	mv elsewhere bin/object
	cp trail expected
	symbolize "$work/bin/fixture" "$id"
	check "-gsplit-dwarf: the file in that directory beside the program"
	cp bin/object/chain.dwo bin
	mv bin/object elsewhere
	symbolize "$work/bin/fixture" "$id"
	check "-gsplit-dwarf: the file beside the program"
	mv elsewhere bin/object
	rm bin/chain.dwo

	sed 's/twice/two/g; s/"trail.h"/"fixtures\/trail.h"/' "$sources/chain.c" >other.c
	"$cc" -g -gsplit-dwarf -O1 -I"$sources/.." -c other.c -o other.o
	cp bin/object/chain.dwo whole.dwo
	cp other.dwo bin/object/chain.dwo
	expect_missing "$work/object/chain.dwo"
	symbolize "$work/bin/fixture" "$id"
	check "-gsplit-dwarf: the file of another compilation is not believed"
	mv bin/object/chain.dwo other.dwo
	mkdir object
	cp whole.dwo object/chain.dwo
	mv other.dwo bin/object/chain.dwo
	cp trail expected
	symbolize "$work/bin/fixture" "$id"
	check "-gsplit-dwarf: and the right one is found behind it"

	chmod o+w object/chain.dwo
	expect_missing "$work/object/chain.dwo"
	symbolize "$work/bin/fixture" "$id"
	check "-gsplit-dwarf: a file that everybody may write to is not read"
	chmod o-w object/chain.dwo
	if chown 65534 object/chain.dwo 2>/dev/null; then
		symbolize "$work/bin/fixture" "$id"
		check "-gsplit-dwarf: nor is one of another user"
		chown "$(id -u)" object/chain.dwo
	else
		skip "-gsplit-dwarf: nor is one of another user" "no right to make one"
	fi

	info=$(readelf -SW whole.dwo | sed -n 's/.* \.debug_info\.dwo  *PROGBITS *[0-9a-f]* *//p')
	printf '\004' | dd of=object/chain.dwo bs=1 seek=$((0x${info%% *} + 6)) conv=notrunc \
		2>/dev/null
	symbolize "$work/bin/fixture" "$id"
	check "-gsplit-dwarf: nor is what says that it is a skeleton itself"
	cp whole.dwo object/chain.dwo

	rm bin/object/chain.dwo
	damaged whole.dwo object/chain.dwo "$work/bin/fixture" "$id"
	check "-gsplit-dwarf: a truncated or damaged file does no harm"

	cp whole.dwo object/chain.dwo
	mkfifo addresses
	timeout 600 "$helper" "$work/bin/fixture" "$id" <addresses >got.symbols &
	helped=$!
	exec 3>addresses
	cut -d ' ' -f 1 trail | head -n 1 >&3
	until [ -s got.symbols ]; do
		sleep 0.01
	done
	: >object/chain.dwo
	cut -d ' ' -f 1 trail | tail -n +2 >&3
	exec 3>&-
	wait $helped
	sed 's/ \[.*//' got.symbols >got
	cp trail expected
	check "-gsplit-dwarf: nor one that is truncated after it was found"
	rm -r addresses bin object whole.dwo other.[co]

	cp "$sources/chain.c" "$sources/trail.h" .
	build "$cc" -g -gsplit-dwarf -O2 -fdebug-prefix-map="$work"=. chain.c
	sed "s,@chain.c,@./chain.c,g" trail >expected
	symbolize "$work/fixture" "$(build_id fixture)"
	check "-gsplit-dwarf: a unit that was compiled in a relative directory"
}

# Packages of several units, the second of which is asked for.
packages()
{
	echo 'int unit_before(int n); int unit_before(int n) { return n + 1; }' >before.c
	for tool in dwp llvm-dwp; do
		for version in 4 5; do
			what="a package by $tool, DWARF $version"
			build "$cc" -gdwarf-$version -gsplit-dwarf -O2 before.c "$sources/chain.c"
			if ! command -v $tool >/dev/null; then
				skip "$what" "there is no $tool"
				continue
			elif ! $tool -e fixture -o fixture.dwp 2>/dev/null; then
				rm -f ./*.dwo fixture.dwp
				skip "$what" "$tool can't"
				continue
			fi
			rm ./*.dwo
			symbolize "$work/fixture" "$(build_id fixture)"
			check "$what"
			cp fixture.dwp whole.dwp
			damaged whole.dwp fixture.dwp "$work/fixture" "$(build_id fixture)"
			check "$what, truncated or damaged, does no harm"
			rm fixture.dwp whole.dwp
		done
	done
	rm before.c
}

shared_dwarf()
{
	if ! command -v dwz >/dev/null; then
		skip "debug information shared by dwz" "no dwz"
		return
	fi
	build "$cxx" -g -O2 "$sources/names.cc"
	cp fixture other
	dwz -m shared.debug fixture other
	symbolize "$work/fixture" "$(build_id fixture)"
	check "debug information shared by dwz"
}

# not_opened CLAIM MODULE: that naming the trail in MODULE opens no `special`
not_opened()
{
	symbolize "$work/$2" "$id" "$work/debug" special
	check "$1 is not opened"
}

# What is not regular is not even opened, whatever leads to it: opening a device may do something.
special_files()
{
	build "$cc" -g -O0 "$sources/chain.c"
	id=$(build_id fixture)
	cp fixture whole
	strip whole
	expect_nothing
	not_opened "$1 in place of the module" special
	printf '%s\0' "../../../../../../..$work/special" >link
	truncate -s %4 link
	printf '\001\002\003\004' >>link
	objcopy --add-section .gnu_debuglink=link whole linked
	not_opened "$1 where .gnu_debuglink leads" linked
	cp whole whole.debug
	ln -f special whole.debug
	not_opened "$1 with the name that is guessed where there is no .gnu_debuglink" whole
	rm whole.debug
	sed -E 's/ (.* < )?([^@ ]*)@.*/ \2@?:0/' trail >expected
	printf '%s\0\001\002\003\004' "../../../../../../..$work/special" >link
	objcopy --add-section .gnu_debugaltlink=link fixture shares
	not_opened "$1 where .gnu_debugaltlink leads" shares
	printf '%s\0' "$work/shares" >link
	echo "$id" | sed 's/../\\x&/g' | xargs -0 printf '%b' | head -c 20 >>link
	objcopy --add-section .gnu_debugaltlink=link fixture chained
	not_opened "$1 where .gnu_debugaltlink of the shared file leads" chained
	build "$cc" -g -gsplit-dwarf -O0 "$sources/chain.c"
	id=$(build_id fixture)
	expect_missing "$work/fixture-chain.dwo"
	ln -f special fixture-chain.dwo
	not_opened "$1 in place of the split debug information" fixture
	rm special fixture-chain.dwo
}

each_special_file()
{
	mkfifo special
	special_files "a FIFO"
	if mknod special c 1 3 2>/dev/null; then
		special_files "a device"
	else
		skip "a device" "no right to make one"
	fi
}

rust()
{
	if ! command -v rustc >/dev/null; then
		skip "Rust" "no rustc"
		skip "Rust, v0 mangling" "no rustc"
		skip "Rust, unpacked debug information" "no rustc"
		skip "Rust, packed debug information" "no rustc"
		return
	fi
	for mangling in legacy v0; do
		rm -f rust.so trail
		# The older one is a nightly option since v0 is the default.
		RUSTC_BOOTSTRAP=1 rustc --crate-type cdylib --crate-name names \
			-O -g -Z unstable-options \
			-C symbol-mangling-version=$mangling -o rust.so "$sources/names.rs"
		./runner ./rust.so >trail
		cp trail expected
		symbolize "$work/rust.so" "$(build_id rust.so)"
		check "Rust, $mangling mangling"
	done
	for split in unpacked packed; do
		rm -f rust.so trail
		rustc --crate-type cdylib --crate-name names -O -g -C split-debuginfo=$split \
			-o rust.so "$sources/names.rs"
		./runner ./rust.so >trail
		cp trail expected
		symbolize "$work/rust.so" "$(build_id rust.so)"
		check "Rust, $split debug information"
		rm -f ./*.dwo ./*.dwp
	done
}

# Every instruction of our own code, against binutils: functions, base names and lines.  (What pads
# functions is in none for us, as it lies outside of all symbols' sizes.)
cross_check()
{
	build "$cc" -g -O2 -flto "$sources/chain.c"
	objdump -d --no-show-raw-insn fixture |
		sed -n '/^[0-9a-f]* <\(outer\|split\|last_call\|fixture_run\|main\).*>:/,/^$/p' |
		sed -n '/nop\|xchg *%ax,%ax/d; s/^ *\([0-9a-f]*\):.*/\1/p' >addresses
	addr2line -a -f -i -e fixture <addresses |
		sed "s/ (discriminator.*//; s,?\$,0," |
		awk '/^0x/ { if (line) print line; line = ""; next }
			{
				name = $0
				getline
				sub(/.*\//, "")
				line = line (line ? " < " : "") name "@" $0
			}
			END { print line }' >expected
	while read -r address; do
		printf '0x%x x\n' $((0x$address + 1))
	done <addresses >trail
	symbolize "$work/fixture" "$(build_id fixture)"
	sed -i 's/^[^ ]* //; s,@[^ ]*/,@,g' got
	count=$(wc -l <addresses)
	check "as addr2line -i says, for each instruction ($count) of a build with -O2 -flto"
}

# With little debug information nothing is around a function but what its symbol says.
lambdas()
{
	for compiler in "$TEST_GXX" "$TEST_CLANGXX"; do
		if [ -z "$compiler" ]; then
			skip "lambdas with -g1" "no such compiler"
			continue
		fi
		build "$compiler" -g1 -O1 "$sources/names.cc"
		symbolize "$work/fixture" "$(build_id fixture)"
		sed -n 's/^[^ ]* \(space::[a-z_]*()::\).*\(::operator()\)@.*/\1\2/p' got |
			sort >lambdas
		printf '%s\n' 'space::lambda()::::operator()' \
			'space::static_lambda()::::operator()' >expected
		mv lambdas got
		check "lambdas are named with the function around them, $compiler -g1"
	done
}

# Each stub of the PLT, at its first byte and in its middle, is called what objdump (and gdb) call
# it.
stubs()
{
	how=$1
	shift
	if ! build "$@" "$sources/chain.c" 2>/dev/null; then
		skip "stubs of the PLT, $how" "the linker can't"
		return
	fi
	objdump -d fixture | sed -n 's/^0*\([0-9a-f]*\) <\(.*@plt\)>:$/\1 \2/p' >stubs
	while read -r address name; do
		printf '0x%x %s@?:0\n' $((0x$address + 1)) "$name" $((0x$address + 6)) "$name"
	done <stubs >trail
	cp trail expected
	symbolize "$work/fixture" "$(build_id fixture)"
	check "stubs of the PLT, $how ($(wc -l <stubs))"
}

# stubs_aarch64 HOW COMPILER...: the same for aarch64, each instruction; the program is not run.
stubs_aarch64()
{
	how="aarch64, $1"
	shift
	printf 'void %s(void);\nvoid %s(void) {}\n' send send receive receive bind bind >called.c
	printf 'void %s(void);\n' send receive bind use >calls.c
	printf 'void use(void)\n{\nsend();\nreceive();\nbind();\nsend();\n}\n' >>calls.c
	rm -f calls trail
	if ! "$@" -fPIC -shared -nostdlib called.c -o called.so 2>/dev/null ||
		! "$@" -O1 -no-pie -nostdlib -Wl,-e,use -Wl,--build-id calls.c called.so -o calls \
			2>/dev/null; then
		skip "stubs of the PLT, $how" "$1 can't"
		return
	fi
	$disassembler -d --no-show-raw-insn calls | awk '
		/^[0-9a-f]+ </ { name = $2; gsub(/[<>:]/, "", name); next }
		name ~ /@plt$/ && /^ *[0-9a-f]+:/ { sub(":", "", $1); print $1, name }' |
		while read -r address name; do
			printf '0x%x %s@?:0\n' $((0x$address + 1)) "$name"
		done >trail
	cp trail expected
	symbolize "$work/calls" "$(build_id calls)"
	check "stubs of the PLT, $how ($(wc -l <trail) instructions)"
}

# By GNU's linker, and by lld, which Clang calls.
each_stub_of_aarch64()
{
	bti='-mbranch-protection=standard -Wl,-z,force-bti'
	for flags in '' "$bti" '-Wl,-z,pac-plt' "$bti -Wl,-z,pac-plt"; do
		disassembler=aarch64-linux-gnu-objdump
		# shellcheck disable=SC2086 # a list
		stubs_aarch64 "by bfd $flags" aarch64-linux-gnu-gcc $flags
		disassembler=llvm-objdump
		# shellcheck disable=SC2086
		stubs_aarch64 "by lld $flags" ${TEST_CLANG:-clang} --target=aarch64-linux-gnu \
			-fuse-ld=lld $flags
	done
}

plt()
{
	each_stub_of_aarch64
	case $($cc -dumpmachine) in
	x86_64-*) ;;
	*)
		skip "stubs of the PLT" "they are read on x86-64 alone"
		return
		;;
	esac
	stubs "as the compiler has them" "$cc" -g -O2
	stubs "-z now" "$cc" -g -O2 -Wl,-z,now
	stubs "-z lazy" "$cc" -g -O2 -Wl,-z,lazy
	stubs "for branch tracking" "$cc" -g -O2 -fcf-protection=full -Wl,-z,lazy -Wl,-z,ibtplt
	stubs "-no-pie, stripped" "$cc" -O2 -no-pie -s
	stubs "by gold" "$cc" -g -O2 -fuse-ld=gold
	stubs "by lld" "$cc" -g -O2 -fuse-ld=lld
}

each_compiler
cc=${TEST_GCC:-$TEST_CLANG}
cxx=${TEST_GXX:-$TEST_CLANGXX}
relative_paths
separate_files
large_files
libraries
split_dwarf
split_inlining
cc=${TEST_GCC:-$TEST_CLANG}
cxx=${TEST_GXX:-$TEST_CLANGXX}
split_files
packages
shared_dwarf
each_special_file
rust
cross_check
lambdas
plt
echo "1..$n"
