# SPDX-License-Identifier: Apache-2.0 OR MIT
# What other programs read: alerts for Prometheus, a dashboard for Grafana, a unit for systemd.  The
# unit has a privilege, so it is installed where systemd does not find it by itself.

prometheusdir = $(pkgdatadir)/prometheus
dist_prometheus_DATA = share/prometheus/tdt.rules.yml
grafanadir = $(pkgdatadir)/grafana
dist_grafana_DATA = share/grafana/tdt.json
systemddir = $(pkgdatadir)/systemd
systemd_DATA = share/systemd/tdt-metrics.service
EXTRA_DIST += tests/outside/alerts.yml share/systemd/tdt-metrics.service.in
CLEANFILES += $(systemd_DATA)
share/systemd/tdt-metrics.service: $(srcdir)/share/systemd/tdt-metrics.service.in
	$(AM_V_GEN)$(MKDIR_P) share/systemd && \
		sed 's|[@]bindir[@]|$(bindir)|' '$(srcdir)/$@.in' >$@.tmp && mv $@.tmp $@
