# SPDX-License-Identifier: Apache-2.0 OR MIT
# Completion of tdt(1) for bash.

_tdt()
{
	local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} options
	local all='--json --utf8 --ascii --color= --help --version'
	local target="--pid= --core= --dir= --exe= --sysroot= --debug-dir= --verbose $all"

	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W 'bt diff metrics print profile ps record set top --help --version' -- "$word")
		return
	fi
	case $command in
	ps) options="$target "'--sort= --reverse --state= --name= --longer= --tree --dot
		--threads --check --polling-longer= --waiting-longer= --timeout=' ;;
	metrics) options='--pid= --format= --listen= --timeout= --verbose --help --version' ;;
	record) options="$target "'--output= --summary --duration= --last= --no-symbols
		--timeout=' ;;
	print) options="$all "'--format= --addresses --full-paths --plumbing --depth= --summary
		--perfetto= --full --rows= --since=' ;;
	bt) options="$target "'--request --no-request --max-requests= --ptrace --no-symbols --format= --addresses
		--full --full-paths --plumbing --check --polling-longer= --waiting-longer=
		--timeout=' ;;
	profile) options="$target "'--format= --duration= --frequency= --state= --output= --rows=
		--no-request --max-requests= --no-symbols --full --full-paths --plumbing --timeout=' ;;
	diff) options="$all "'--after= --pid= --no-request --max-requests= --ptrace --no-symbols
		--debug-dir= --timeout= --format= --addresses --full --full-paths --plumbing
		--verbose' ;;
	set) options="$target --for= --timeout=" ;;
	top) options='--pid= --interval= --rounds= --view= --sort= --name= --task= --watch
		--no-request --debug-dir= --timeout= --utf8 --ascii --color= --help --version' ;;
	*) return ;;
	esac
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
	elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == = || $command == print ||
		$command == diff ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -W "$(ps -A -o pid=,comm=)" -- "$word")
	fi
}
complete -F _tdt tdt
