"""What dashboards, rules and READMEs name is what a real fusiond exports.

    tests/observability/exported_test.py BIN_DIR
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import observed
import pack
import promql

# What Prometheus adds, and what belongs to it.
SCRAPE_LABELS = {"job", "instance"}
OF_PROMETHEUS = {"up": SCRAPE_LABELS}
# Values that a label takes only after something rare has happened.
GRPC_CODES = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
              "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
              "DATA_LOSS", "UNAUTHENTICATED"}
RARE = {"grpc_code": GRPC_CODES, "grpc_method": {"GetReport", "GetAccuracy"}, "stage": {"miss", "search"}}
FAMILY = re.compile(r"\b(?:fusion|grpc_server|process)_[a-z_]+\b")
LIST = pack.ROOT / "server/observe/README.md"


def exported(bin_dir):
    """The page of a server that has done each of the usual things once."""
    with tempfile.TemporaryDirectory(prefix="exported.") as work:
        model, other = (pathlib.Path(work) / f"{name}.onnx" for name in ("softmax", "mlp"))
        for path in (model, other):
            subprocess.run([bin_dir / "fusion-modelgen", path.stem, "--out", path], check=True, capture_output=True)
        flags = [*observed.certificate(work, 100), "--store", f"{work}/store", "--workers", "1"]
        with observed.Observed(bin_dir, flags) as daemon:
            for _ in range(2):
                daemon.must("plan", model)
            daemon.must("plan", other, "--plan-only")
            daemon.must("bench", model, "--pairs", "2")
            return daemon.metrics()


class ExportedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        page = exported(pathlib.Path(sys.argv[1]))
        cls.families = set(re.findall(r"^# TYPE (\S+) ", page, re.M))
        cls.values = collections.defaultdict(lambda: collections.defaultdict(set))  # by series name, by label
        for name, labels, _ in promql.samples(page):
            cls.values[name].update({})
            for label, value in labels.items():
                cls.values[name][label].add(value)
        cls.records = {rule.name: promql.selectors_and_groupings(rule.expr)[1] for rule in pack.rules() if rule.kind == "record"}

    @staticmethod
    def listed():
        """[(family, its labels)] of the table."""
        return re.findall(rf"^\| `({FAMILY.pattern})` \|([^|]*)\|", LIST.read_text(), re.M)

    def labels_of(self, name):
        """None: no such series."""
        if name in self.records:
            return self.records[name] | SCRAPE_LABELS
        if name in OF_PROMETHEUS:
            return OF_PROMETHEUS[name]
        return set(self.values[name]) | SCRAPE_LABELS if name in self.values else None

    def values_of(self, name, label):
        of_records = ("fusion_stage_seconds_count" if name in self.records else name)
        return self.values[of_records][label] | RARE.get(label, set())

    def test_a_selector_names_a_series_its_labels_and_their_values(self):
        for where, query in pack.queries():
            for selector in promql.selectors_and_groupings(query)[0]:
                labels = self.labels_of(selector.name)
                self.assertIsNotNone(labels, f"{where}: {selector.name} is not exported")
                for label, operator, wanted in selector.matchers:
                    self.assertIn(label, labels, f"{where}: {selector.name}")
                    if label in SCRAPE_LABELS:
                        continue
                    alternatives = wanted.split("|") if "~" in operator else [wanted]
                    equal = "=~" if "~" in operator else "="
                    for one in alternatives:
                        self.assertTrue(any(promql.matches(equal, one, value) for value in self.values_of(selector.name, label)),
                                        f"{where}: {selector.name} has no {label} {one}")

    def test_a_query_groups_by_labels_that_its_series_have(self):
        for where, query in pack.queries():
            selectors, groupings = promql.selectors_and_groupings(query)
            labels = set().union(*(self.labels_of(selector.name) or set() for selector in selectors))
            self.assertLessEqual(groupings, labels, where)

    def test_the_list_of_metrics_is_complete(self):
        listed = [name for name, _ in self.listed()]
        self.assertEqual(len(listed), len(set(listed)))
        self.assertEqual(set(listed), self.families)

    def test_the_list_of_metrics_has_their_labels(self):
        rows = dict(self.listed())
        for name in self.families:
            series = f"{name}_bucket" if f"{name}_bucket" in self.values else name
            labels = set(self.values.get(series, {})) - {"le"}
            self.assertEqual(set(re.findall(r"`(\w+)`", rows[name])), labels, name)

    def test_readmes_name_metrics_that_exist(self):
        named = re.compile(r"\b(?:fusion|grpc_server)_[a-z_]+_(?:total|seconds|bytes|info)\b")
        found = 0
        for path in sorted(pack.ROOT.rglob("README.md")):
            if path.relative_to(pack.ROOT).parts[0] == "build":
                continue
            for name in named.findall(path.read_text()):
                found += 1
                self.assertIn(name, self.families, path)
        self.assertGreater(found, 50)

    def test_a_name_that_is_wrong_is_noticed(self):
        self.assertIsNone(self.labels_of("fusion_compile_jobs_total"))
        self.assertNotIn("outcome", self.labels_of("fusion_compiles_total"))
        self.assertNotIn("crashed", self.values_of("fusion_compiles_total", "result"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    unittest.main(argv=sys.argv[:1], verbosity=2)
