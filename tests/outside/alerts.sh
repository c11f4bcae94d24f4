#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What is installed for other programs: alerts, which each fire; a dashboard; a unit for systemd.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
LC_ALL=C
export LC_ALL

rules=$top_srcdir/share/prometheus/tdt.rules.yml
board=$top_srcdir/share/grafana/tdt.json

# metrics FILE: the metrics that it reads, without the ends of samples.
metrics()
{
	grep -o 'tdt_[a-z_]*' "$1" | sed 's/_total$//; s/_bucket$//; s/_count$//' | sort -u
}

# knows FILE: each metric in it is one that a page has.
knows()
{
	grep -o '"tdt_[a-z_]*"' "$top_srcdir/cli/metrics_page.c" | tr -d '"' | sort -u >"$tmp/known"
	metrics "$1" | comm -23 - "$tmp/known" >"$tmp/unknown"
	cat "$tmp/unknown"
	[ -n "$(metrics "$1")" ] && [ ! -s "$tmp/unknown" ]
}

# Each alert has a time at which it fires for process 1.
all_are_tested()
{
	sed -n 's/.*alert: //p' "$rules" | sort >"$tmp/alerts"
	awk '/alertname:/ { name = $2 } /exp_labels:/ { print name }' \
		"$top_srcdir/tests/outside/alerts.yml" | sort >"$tmp/tested"
	diff -u "$tmp/alerts" "$tmp/tested" && [ -s "$tmp/alerts" ]
}

test_rules()
{
	cp "$1" "$tmp/tdt.rules.yml" && cp "$top_srcdir/tests/outside/alerts.yml" "$tmp" &&
		(cd "$tmp" && promtool test rules alerts.yml)
}

# A rule that never fires fails the test.
fails_without_one()
{
	sed 's/expr: tdt_deadlocks > 0/expr: tdt_deadlocks > 100/' "$rules" >"$tmp/wrong.yml"
	! test_rules "$tmp/wrong.yml"
}

# The unit runs the tdt that is installed, which is not there yet.
verify_unit()
{
	sed "s|^ExecStart=[^ ]*|ExecStart=$(command -v true)|" \
		"${top_builddir:?}/share/systemd/tdt-metrics.service" >"$tmp/tdt-metrics.service"
	systemd-analyze verify --man=no "$tmp/tdt-metrics.service" >"$tmp/verified" 2>&1
	verified=$?
	cat "$tmp/verified"
	[ $verified = 0 ] && ! grep -q 'tdt-metrics.service' "$tmp/verified"
}

claim "the unit runs the tdt that is installed" grep -q '^ExecStart=/[a-z].*/tdt metrics ' \
	"$top_builddir/share/systemd/tdt-metrics.service"
claim "alerts read metrics that there are" knows "$rules"
claim "so does the dashboard" knows "$board"
claim "each alert is tested" all_are_tested
if command -v promtool >/dev/null; then
	claim "each alert fires, but not where nothing is wrong" test_rules "$rules"
	claim "a test of an alert can fail" fails_without_one
else
	skip "each alert fires" "there is no promtool"
fi
if command -v python3 >/dev/null; then
	claim "the dashboard is JSON" python3 -m json.tool "$board" /dev/null
else
	skip "the dashboard is JSON" "there is no python3"
fi
if command -v systemd-analyze >/dev/null; then
	claim "systemd finds no fault with the unit" verify_unit
else
	skip "systemd finds no fault with the unit" "there is no systemd-analyze"
fi
plan
