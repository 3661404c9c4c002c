"""The operators' pack, deploy/observability, by itself: neither a server nor Prometheus is needed.

    tests/observability/pack_test.py
"""

import re
import sys
import unittest

import pack
import promql
import rule_cases

sys.path.insert(0, str(pack.PACK))
import dashboards  # noqa: E402  the generator

PAGE = (pack.PACK / "README.md").read_text()
COUNTER = re.compile(r"\w+_(?:total|bucket|count|sum)\b(?:\{[^}]*\})?(\[)?")


class DashboardsTest(unittest.TestCase):
    def test_the_files_are_what_the_generator_writes(self):
        found = {path.name: path.read_text() for path in (pack.PACK / "dashboards").glob("*.json")}
        self.assertEqual(sorted(found), sorted(dashboards.files()))
        for name, text in dashboards.files().items():
            self.assertEqual(found[name], text, f"run deploy/observability/dashboards.py: {name}")

    def test_every_panel_says_what_it_answers(self):
        for name, dashboard in pack.dashboards().items():
            titles = [panel["title"] for panel in pack.panels(dashboard)]
            for panel in pack.panels(dashboard):
                where = f"{name}: {panel['title']}"
                self.assertTrue(panel["description"].endswith(".") and len(panel["description"]) > 15, where)
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], where)
                self.assertTrue(panel["targets"], where)
                self.assertIn(panel["type"], ("stat", "timeseries"), f"{where}: a panel of Grafana itself")
            self.assertEqual(len(titles), len(set(titles)), name)

    def test_panels_have_places_and_numbers_of_their_own(self):
        for name, dashboard in pack.dashboards().items():
            self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]), name)
            taken = set()
            for panel in dashboard["panels"]:
                at = panel["gridPos"]
                cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
                self.assertLessEqual(at["x"] + at["w"], dashboards.COLUMNS, name)
                self.assertFalse(cells & taken, f"{name}: {panel['title']}")
                taken |= cells
        uids = [dashboard["uid"] for dashboard in pack.dashboards().values()]
        self.assertEqual(len(uids), len(set(uids)))

    def test_every_query_keeps_to_the_instances_that_are_shown(self):
        for name, dashboard in pack.dashboards().items():
            for panel in pack.panels(dashboard):
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"]["uid"], "${datasource}")
                    for selector in promql.selectors_and_groupings(target["expr"])[0]:
                        self.assertIn(("instance", "=~", "$instance"), selector.matchers, f"{name}: {panel['title']}")

    def test_counters_are_read_as_rates(self):
        for where, query in pack.queries():
            for counter in COUNTER.finditer(query):
                self.assertTrue(counter[1] or "count by (tenant)" in query, f"{where}: {counter[0]}")

    def test_quantiles_keep_the_bounds_of_the_buckets(self):
        for where, query in pack.queries():
            for quantile in re.finditer(r"histogram_quantile\([\d.]+, sum by \(([^)]*)\)", query):
                self.assertIn("le", quantile[1].split(", "), where)
            self.assertEqual(query.count("_bucket"), query.count("histogram_quantile"), where)


class AlertsTest(unittest.TestCase):
    def test_every_alert_waits_and_says_what_it_is_about(self):
        self.assertGreater(len(pack.alerts()), 10)
        for alert in pack.alerts():
            self.assertRegex(alert.lasts, r"^\d+[mh]$", alert.name)
            self.assertIn(alert.severity, ("page", "ticket"), alert.name)
            self.assertIn("{{ $labels.instance }}", alert.annotations["summary"], alert.name)
            self.assertTrue(alert.annotations["description"].endswith("."), alert.name)
            self.assertEqual(alert.annotations["runbook"], f"deploy/observability/README.md#{alert.name.lower()}")

    def test_the_readme_has_a_runbook_and_a_row_for_every_alert(self):
        self.assertEqual(re.findall(r"^### (Fusion\w+)$", PAGE, re.M), [alert.name for alert in pack.alerts()])
        rows = re.findall(r"^\| \[(\w+)\]\(#(\w+)\) \| (\w+) \| (\w+) \|", PAGE, re.M)
        self.assertEqual(rows, [(alert.name, alert.name.lower(), alert.severity, alert.lasts) for alert in pack.alerts()])

    def test_the_readme_has_a_row_for_every_dashboard(self):
        self.assertEqual(re.findall(r"^\| `(\w+\.json)` \|", PAGE, re.M), [f"{one.name}.json" for one in dashboards.DASHBOARDS])

    def test_every_alert_is_tried_on_series_that_break_something(self):
        tried = {case.alert for case in rule_cases.BROKEN}
        self.assertEqual(tried, {alert.name for alert in pack.alerts()})
        for case in rule_cases.BROKEN + rule_cases.QUIET:
            self.assertLessEqual(set(case.changed), set(rule_cases.HEALTHY), case.name)

    def test_every_series_of_the_rules_is_among_the_healthy_ones(self):
        known = {name.partition("{")[0] for name in rule_cases.HEALTHY} | {rule.name for rule in pack.rules()}
        for rule in pack.rules():
            for selector in promql.selectors_and_groupings(rule.expr)[0]:
                self.assertIn(selector.name, known, rule.name)

    def test_every_recording_rule_is_used(self):
        used = {selector.name for alert in pack.alerts() for selector in promql.selectors_and_groupings(alert.expr)[0]}
        self.assertLessEqual({rule.name for rule in pack.rules() if rule.kind == "record"}, used)

    def test_the_file_is_read_whole(self):
        text = pack.RULES.read_text()
        self.assertEqual(len(pack.rules()), len(re.findall(r"^\s*- (?:alert|record):", text, re.M)))
        self.assertTrue(all(rule.expr.strip() for rule in pack.rules()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
