#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# GNUmakefile, on a clone whose bootstrap, configure and Makefile only log that they ran.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

unset CONFIGURE_FLAGS MAKEFLAGS MFLAGS MAKELEVEL
cp "$top_srcdir/GNUmakefile" "$tmp"
cd "$tmp" || exit

cat >bootstrap <<'END'
#!/bin/sh
echo "bootstrap $*" >>log
test "$1" = packages-for-check || touch Makefile.in
END
cat >configure <<'END'
#!/bin/sh
echo "configure $*" >>log
cp makefile.fake Makefile
cp config.status.fake config.status
test ! -e broken && touch libtool
END
cat >makefile.fake <<'END'
.PHONY: all demo check check-delays check-fail check-jobs clean fail fuzz jobs
all demo check clean fuzz: ; @echo "$@ $(V)" >>log
fail check-fail: ; @false
jobs check-delays check-jobs: ; @echo "$(filter -j%,$(MAKEFLAGS))" >>log
END
cat >config.status.fake <<'END'
#!/bin/sh
echo "config.status $*" >>log
cat >/dev/null <<X
S["HAVE_CHECK_TRUE"]=""
S["TEST_CLANG"]="clang"
X
END
chmod +x bootstrap configure config.status.fake
mkdir -p tests/lib
echo 'echo "the slowest since $1"' >tests/lib/slowest.sh

# logs TEXT [MAKE'S ARGUMENTS]: what runs is, a line each, as standard input says.
logs()
{
	text=$1
	shift
	: >log
	"$MAKE" "$@" >output
	cat output >&2
	sed 's/ $//' log >got
	cat >expected
	same "$text" expected got
}

fails()
{
	: >log
	! "$MAKE" "$@" >output 2>&1
}

fresh()
{
	rm -f Makefile Makefile.in config.status libtool
}

logs "a fresh clone is bootstrapped, configured and built" <<'END'
bootstrap
configure
all
END
logs "the next make only builds" <<'END'
all
END
logs "several goals are handed over one by one, in order, also with -j, variables too" -j4 clean \
	all demo V=1 <<'END'
clean 1
all 1
demo 1
END
logs "there is a job for each CPU" jobs <<END
-j$(nproc)
END
logs "also with a mere -j" -j jobs <<END
-j$(nproc)
END
logs "unless make was told otherwise" -j7 jobs <<'END'
-j7
END
logs "or that there is one" -j1 jobs <<'END'
-j1
END
fresh
logs "a goal that tests has two for each CPU" check-jobs <<END
bootstrap
bootstrap packages-for-check
configure
-j$(($(nproc) * 2))
END
logs "also with a mere -j" -j check-jobs <<END
bootstrap packages-for-check
-j$(($(nproc) * 2))
END
logs "but as many as make was told" -j7 check-jobs <<'END'
bootstrap packages-for-check
-j7
END
logs "with random delays tests rest: there are eight" check-delays <<END
bootstrap packages-for-check
-j$(($(nproc) * 8))
END
logs "the first goal that fails is the last" clean fail all <<'END'
clean
END
logs "make check sees to the tests' packages" -s check <<'END'
bootstrap packages-for-check
check
END
says_time()
{
	grep -Eqx "make $1 took [0-9]+ min [0-9]+ s" output
}
claim "and says how long it took" says_time check
claim "and which tests were the slowest" grep -Eqx 'the slowest since [0-9]+' output
claim "a goal that fails is a failure of make" fails check-fail
claim "and also says how long it took, if it is one that tests" says_time check-fail
"$MAKE" all clean >output
claim "others do not say that" sh -c '! grep -E "took|slowest" output'

fresh
logs "a fresh clone gets as far as the demo, configured as asked" demo \
	CONFIGURE_FLAGS=--enable-werror <<'END'
bootstrap
configure --enable-werror
demo
END
# never_configures TEXT: nothing runs, and make cleans in peace.
never_configures()
{
	logs "$1" mostlyclean clean distclean maintainer-clean </dev/null
}
rm Makefile libtool
never_configures "in an unpacked tarball nothing is configured to be cleaned"
claim "a tarball is not made without a list of files" fails dist
claim "and make says why" grep -qx 'make dist: run ./configure first' output
claim "nothing was configured for it" sh -c '! test -s log'
rm Makefile.in
never_configures "nor is a fresh clone bootstrapped"
touch Makefile.in
logs "after distclean, or in an unpacked tarball, nothing is bootstrapped" <<'END'
configure
all
END

fresh
touch broken
logs "a configure that fails stops it" <<'END'
bootstrap
configure
END
printf 'all clean: ; @echo "$@" >>log\nMakefile: newer; @echo configured >>log\n' >Makefile
touch -d tomorrow newer
logs "what is older than configure is cleaned as it is" clean <<'END'
clean
END
rm -f broken Makefile newer
logs "and is run again by the next make" <<'END'
configure
all
END

sed -i 's/"clang"/""/' config.status.fake
fresh
logs "only make check minds that configure did not find what tests need" <<'END'
bootstrap
configure
all
END
logs "and looks again, as it may be there now" check <<'END'
bootstrap packages-for-check
config.status --recheck
check
END
sed -i 's/CHECK_TRUE"]=""/CHECK_TRUE"]="#"/; s/TEST_CLANG"]=""/TEST_CLANG"]="clang"/' \
	config.status.fake
cp config.status.fake config.status
logs "likewise for Check, without which it stops before anything is built" check <<'END'
bootstrap packages-for-check
config.status --recheck
END

# says_no_check: in one line.
says_no_check()
{
	! "$MAKE" check >/dev/null 2>said && grep '^make check' said >told
	cat >expected <<'END'
make check needs Check, so nothing is built: install it (Debian: check; Fedora: check-devel; Alpine: check-dev), and run make again
END
	diff -u expected told
}
claim "and says what to install" says_no_check
logs "other goals need no Check" all fuzz <<'END'
bootstrap packages-for-check
config.status --recheck
all
fuzz
END

edit='s/^echo "config.status/sed -i "s,CHECK_TRUE.*,CHECK_TRUE\\\"]=\\\"\\\",;" config.status; &/'
sed -i "$edit" config.status.fake
cp config.status.fake config.status
logs "if it is there by now the tests are run" check <<'END'
bootstrap packages-for-check
config.status --recheck
check
END

plan
