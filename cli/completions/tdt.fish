# SPDX-License-Identifier: Apache-2.0 OR MIT
# Completion of tdt(1) for fish.  tdt itself knows its options.

# The options of the command on the command line, with the words that may follow "=".
function __tdt_options
	set -l words (commandline -opc)
	tdt complete $words[2] 2>/dev/null | awk -F'\t' '
		$3 ~ /^[a-z]/ { n = split($3, word, " ") }
		$3 ~ /^[a-z]/ { for (i = 1; i <= n; i++) print $1 word[i] "\t" $2; next }
		{ print $1 "\t" $2 }'
end

complete -c tdt -n __fish_use_subcommand -xa '(tdt complete | cut -f1,2)'
complete -c tdt -n 'not __fish_use_subcommand' -a '(__tdt_options)'
complete -c tdt -n '__fish_seen_subcommand_from ps top bt metrics profile record set' \
	-xa '(__fish_complete_pids)'
complete -c tdt -n '__fish_seen_subcommand_from diff print' -F
