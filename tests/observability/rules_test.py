"""Each alert of deploy/observability/fusion_rules.yml on series of tests/observability/rule_cases.py, by promtool.

    tests/observability/rules_test.py        exit status 77 where promtool (package prometheus) is not installed
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import pack
import rule_cases

FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'
FIRED = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1d]))'


def unit_test(case):
    values = {**rule_cases.HEALTHY, **case.changed}
    expected = [{"expr": FIRED, "eval_time": f"{case.quiet_at}m", "exp_samples": []}]
    if case.alert:
        alone = {"labels": f'{{alertname="{case.alert}"}}', "value": 1}
        expected.append({"expr": FIRING, "eval_time": f"{case.fires_at}m", "exp_samples": [alone]})
    return {"name": case.name, "interval": "1m", "promql_expr_test": expected,
            "input_series": [{"series": name, "values": text} for name, text in values.items() if text is not None]}


def promtool(*words):
    done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def verdict(cases):
    """(exit status, output) of promtool for these cases."""
    with tempfile.TemporaryDirectory(prefix="rules.") as work:
        path = pathlib.Path(work) / "cases.json"  # which is YAML too
        path.write_text(json.dumps({"rule_files": [str(pack.RULES)], "evaluation_interval": "1m",
                                    "tests": [unit_test(case) for case in cases]}))
        return promtool("test", "rules", path)


class RulesTest(unittest.TestCase):
    def test_the_files_are_valid(self):
        for words in (("check", "rules", pack.RULES), ("check", "config", pack.PACK / "prometheus.yml")):
            status, said = promtool(*words)
            self.assertEqual(status, 0, said)

    def test_each_alert_fires_on_what_it_is_for_alone_and_on_nothing_healthy(self):
        status, said = verdict(rule_cases.BROKEN + rule_cases.QUIET)
        self.assertEqual(status, 0, said)

    def test_a_wrong_expectation_is_noticed(self):
        broken = rule_cases.BROKEN[0]
        for wrong in (rule_cases.Case(broken.name, broken.changed, quiet_at=broken.fires_at),
                      rule_cases.Case("healthy", {}, broken.alert, broken.fires_at, 0)):
            self.assertNotEqual(verdict([wrong])[0], 0, wrong)


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("skipped: promtool is not installed (package prometheus)")
        sys.exit(77)
    unittest.main(verbosity=2)
