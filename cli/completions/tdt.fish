# SPDX-License-Identifier: Apache-2.0 OR MIT
# Completion of tdt(1) for fish.

complete -c tdt -n __fish_use_subcommand -xa "ps\t'list the tasks' bt\t'print where they wait' \
	metrics\t'numbers for Prometheus' profile\t'sum up where they wait' \
	diff\t'compare two answers' \
	record\t'save what was recorded' print\t'print what was saved' set\t'watch or record them' \
	top\t'show them again and again'"
complete -c tdt -n '__fish_seen_subcommand_from ps top bt metrics profile record set' -xa '(__fish_complete_pids)'
complete -c tdt -l json -d 'One JSON object'
complete -c tdt -l utf8 -d 'Lines in UTF-8'
complete -c tdt -l ascii -d 'Lines in ASCII'
complete -c tdt -l color -xa 'auto always never' -d 'When'
complete -c tdt -l help -d 'How it is used'
complete -c tdt -l version -d 'Its version'

set -l target '__fish_seen_subcommand_from ps bt record'
complete -c tdt -n '__fish_seen_subcommand_from ps bt diff record' -s p -l pid -xa '(__fish_complete_pids)' -d 'The process'
complete -c tdt -n $target -l core -rF -d 'A core file'
complete -c tdt -n $target -l dir -rF -d 'Recordings'
complete -c tdt -n $target -l exe -rF -d 'The program of the core file'
complete -c tdt -n $target -l sysroot -rF -d 'Where its files lie'
complete -c tdt -n '__fish_seen_subcommand_from ps bt diff record' -l debug-dir -rF -d 'Separate debug files'
complete -c tdt -n '__fish_seen_subcommand_from ps bt diff record' -l verbose -d 'Say how long each step took'
complete -c tdt -n '__fish_seen_subcommand_from ps bt' -l check -d 'Exit with 1 if there is a deadlock'

set -l ps '__fish_seen_subcommand_from ps'
complete -c tdt -n $ps -l sort -xa 'id name state for age polls' -d 'The order'
complete -c tdt -n $ps -l reverse -d 'In the other order'
complete -c tdt -n $ps -l state -xa 'waiting runnable polling ended unknown' -d 'Only these'
complete -c tdt -n $ps -l name -x -d 'Only tasks whose name matches'
complete -c tdt -n $ps -l longer -x -d 'Only tasks in their state for longer'
complete -c tdt -n $ps -l tree -d 'Below the task that spawned them'
complete -c tdt -n $ps -l dot -d 'A graph of waits'
complete -c tdt -n $ps -l threads -d 'The threads that poll'

set -l checks '__fish_seen_subcommand_from ps bt'
complete -c tdt -n $checks -l check -d 'Exit with 1 if there is a deadlock'
complete -c tdt -n $checks -l polling-longer -x -d 'Exit with 1 if a poll lasts longer'
complete -c tdt -n $checks -l waiting-longer -x -d 'Exit with 1 if a task waits longer'
complete -c tdt -n '__fish_seen_subcommand_from ps bt diff record set' -l timeout -x \
	-d 'Give up after that'

set -l bt '__fish_seen_subcommand_from bt diff'
complete -c tdt -n $bt -l request -d 'Request all tasks'
complete -c tdt -n $bt -l no-request -d 'Make no request'
complete -c tdt -n $bt -l ptrace -d 'Stop threads that run'
complete -c tdt -n $bt -l max-requests -x -d 'Request no more tasks'
complete -c tdt -n '__fish_seen_subcommand_from bt diff record' -l no-symbols -d 'Look up no names'

set -l trees '__fish_seen_subcommand_from bt diff print'
complete -c tdt -n $trees -l format -xa 'text json folded' -d 'The form'
complete -c tdt -n $trees -l addresses -d 'Symbol and offset'
complete -c tdt -n $trees -l full -d 'All calls in libraries; long lists'
complete -c tdt -n $trees -l full-paths -d 'Whole paths'
complete -c tdt -n $trees -l plumbing -d 'Frames of tdt, too'

set -l metrics '__fish_seen_subcommand_from metrics'
complete -c tdt -n $metrics -s p -l pid -xa '(__fish_complete_pids)' -d 'The process'
complete -c tdt -n $metrics -l format -xa 'openmetrics prometheus' -d 'The form'
complete -c tdt -n $metrics -l listen -x -d 'Serve them at an address'
complete -c tdt -n $metrics -l timeout -x -d 'Give up after that'
complete -c tdt -n $metrics -l verbose -d 'Say how long each step took'

set -l diff '__fish_seen_subcommand_from diff'
complete -c tdt -n $diff -F
complete -c tdt -n $diff -l after -x -d 'The time between the answers'

set -l record '__fish_seen_subcommand_from record'
complete -c tdt -n $record -s o -l output -rF -d 'The file to write'
complete -c tdt -n $record -s d -l duration -x -d 'Wait for so long'
complete -c tdt -n $record -l last -x -d 'Only what was recorded last'

set -l print '__fish_seen_subcommand_from print'
complete -c tdt -n $print -F
complete -c tdt -n $print -l depth -x -d 'So many levels of frames'
complete -c tdt -n '__fish_seen_subcommand_from print record' -l summary \
	-d 'What a recording says'
complete -c tdt -n $print -l perfetto -rF -d 'A recording as a trace'
complete -c tdt -n $print -l rows -x -d 'So many entries of each list'
complete -c tdt -n $print -l since -x -d 'Only the last seconds'

set -l profile '__fish_seen_subcommand_from profile'
complete -c tdt -n $profile -s p -l pid -xa '(__fish_complete_pids)' -d 'The process'
complete -c tdt -n $profile -s o -l output -rF -d 'The file to write'
complete -c tdt -n $profile -s d -l duration -x -d 'For so long'
complete -c tdt -n $profile -s F -l frequency -x -d 'Looks in a second'
complete -c tdt -n $profile -l state -xa 'waiting runnable polling' -d 'Only these'
complete -c tdt -n $profile -l format -xa 'text json folded pprof' -d 'The form'
complete -c tdt -n $profile -l rows -x -d 'So many places'
complete -c tdt -n $profile -l no-request -d 'Make no request'
complete -c tdt -n $profile -l max-requests -x -d 'Request no more tasks'
complete -c tdt -n $profile -l no-symbols -d 'Look up no names'
complete -c tdt -n $profile -l full -d 'All calls in libraries'
complete -c tdt -n $profile -l full-paths -d 'Whole paths'
complete -c tdt -n $profile -l plumbing -d 'Frames of tdt, too'
complete -c tdt -n $profile -l timeout -x -d 'Give up so long after that'
complete -c tdt -n $profile -l debug-dir -rF -d 'Separate debug files'
complete -c tdt -n $profile -l verbose -d 'Say how long each step took'

set -l top '__fish_seen_subcommand_from top'
complete -c tdt -n $top -s d -l interval -x -d 'The time between rounds'
complete -c tdt -n $top -s n -l rounds -x -d 'End after so many rounds'
complete -c tdt -n $top -l view -xa 'tasks places threads times' -d 'What is shown'
complete -c tdt -n $top -l sort -xa 'suspicion for age polls name id' -d 'The order'
complete -c tdt -n $top -l name -x -d 'Only tasks whose name matches'
complete -c tdt -n $top -l task -x -d 'The tree of a task'
complete -c tdt -n $top -l watch -d 'Have the tasks watched meanwhile'
complete -c tdt -n $top -l no-request -d 'Make no request'
complete -c tdt -n $top -l timeout -x -d 'Give a round up after that'

set -l settings '__fish_seen_subcommand_from set'
complete -c tdt -n $settings -xa 'watch=10ms record=16M'
complete -c tdt -n $settings -l for -x -d 'End after that time'
