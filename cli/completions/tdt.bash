# SPDX-License-Identifier: Apache-2.0 OR MIT
# Completion of tdt(1) for bash.  tdt itself knows its options.

_tdt()
{
	local word=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) values=TARGET
	local rows command=${COMP_WORDS[1]}

	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$(tdt complete | cut -f1) --help --version" \
			-- "$word")
		return
	fi
	rows=$(tdt complete "$command" 2>/dev/null)
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(cut -f1 <<<"$rows")" -- "$word")
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
		return
	fi
	[[ $command == print || $command == diff ]] && values=FILE
	if [[ $word == = || ${COMP_WORDS[at]} == = ]]; then
		[[ $word == = ]] && word='' || ((at--))
		values=$(awk -F'\t' -v option="${COMP_WORDS[at]}=" '$1 == option { print $3 }' \
			<<<"$rows")
	fi
	case $values in
	TARGET) mapfile -t COMPREPLY < <(compgen -W "$(ps -A -o pid=,comm=)" -- "$word") ;;
	FILE | DIR | OUT) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	[a-z]*) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word") ;;
	esac
}
complete -F _tdt tdt
