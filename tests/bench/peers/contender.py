"""Programs that load a model once and time bursts of runs on demand: ours and onnxruntime. Standard library only."""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PEERS = ROOT / "build/peers"
HERE = pathlib.Path(__file__).parent
PINNED = {"onnxruntime": "1.31.1", "numpy": "2.4.6", "onnx": "1.23.2", "sympy": "1.14.0"}
OTHERS = {"openvino": "2026.4.1"}  # peers that may be missing


def installed(pinned):
    """A Python with these packages, in a venv under build/; None where PyPI does not give them."""
    python = PEERS / "bin/python"

    def ready():
        ask = "import importlib.metadata as m; " + "; ".join(
            f"assert m.version('{name}') == '{version}'; import {name}" for name, version in pinned.items())
        return python.exists() and subprocess.run([python, "-c", ask], capture_output=True).returncode == 0

    if ready():
        return python
    if subprocess.run([sys.executable, "-m", "venv", PEERS], capture_output=True).returncode == 0:
        wanted = [f"{name}=={version}" for name, version in pinned.items()]
        subprocess.run([PEERS / "bin/pip", "install", "-q", "--retries", "1", "--timeout", "20", *wanted], capture_output=True)
    return python if ready() else None


def peer_python():
    """A Python with the pinned onnxruntime; None where PyPI cannot be reached."""
    return installed(PINNED)


def other_peers():
    """Those of the other peers that are here, or can be installed."""
    return [name for name, version in OTHERS.items() if installed({name: version, "numpy": PINNED["numpy"]})]


class Contender:
    """One of them; leave the context to end it."""

    def __init__(self, argv, name):
        self.name = name
        self.stderr = tempfile.TemporaryFile("w+")  # nobody reads along: a full pipe would stop it
        self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.stderr, text=True)

    def burst(self, runs):
        """Microseconds of each of so many runs."""
        try:
            self.process.stdin.write(f"{runs}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.wait(timeout=60)
            self.stderr.seek(0)
            raise RuntimeError(f"{self.name}: exit {self.process.returncode}: {self.stderr.read().strip()[-500:]}")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with contextlib.suppress(BrokenPipeError):  # closing writes what is left; burst has said that it is gone
            self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.stderr.close()


def ours(server, model, threads, *arguments):
    """`arguments`: further words of run_bursts."""
    return Contender([ROOT / "build/release/bin/run_bursts", server, model, threads, *arguments], "ours")


def onnxruntime(python, model, threads, setting="default"):
    """`setting`: see ort_worker.py."""
    return Contender([python, HERE / "ort_worker.py", model, threads, setting], f"onnxruntime {setting}")


def openvino(python, model, threads):
    return Contender([python, HERE / "openvino_worker.py", model, threads], "openvino")
