"""Programs that load a model once and time bursts of runs on demand: ours and peers. Standard library only."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PEERS = ROOT / "build/peers"
HERE = pathlib.Path(__file__).parent
PINNED = {"onnxruntime": "1.31.1", "numpy": "2.4.6", "onnx": "1.23.2", "sympy": "1.14.0"}
READS_ONNX = {name: PINNED[name] for name in ("numpy", "onnx")}
# torch and jax allocate outputs anew in every run, and malloc would give large ones back to the system each time.
KEEPS_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
LIMIT_S = 600  # for one answer
INSTALL_S = 240  # for pip; what it has then, it finds in its cache the next time


@dataclasses.dataclass(frozen=True)
class Peer:
    """Beside onnxruntime; NAME_worker.py runs it."""

    name: str  # of its module
    packages: dict  # from PyPI, each with its version
    venv: pathlib.Path
    environment: dict = dataclasses.field(default_factory=dict)
    reads_forms: bool = False  # Attention and RMSNormalization as one operator of opset 23
    light: bool = False  # installed within INSTALL_S, also for a test that only asks whether it answers

    version = property(lambda self: next(iter(self.packages.values())))


OTHERS = {peer.name: peer for peer in [
    Peer("openvino", {"openvino": "2026.4.1", "numpy": PINNED["numpy"]}, PEERS, reads_forms=True, light=True),
    # PyPI's wheel needs CUDA's libraries even for the CPU: 5 GB on disk.
    Peer("torch", {"torch": "2.15.0", **READS_ONNX}, ROOT / "build/peers-torch", KEEPS_MEMORY, reads_forms=True),
    Peer("jax", {"jax": "0.10.2", "jaxlib": "0.10.2", **READS_ONNX}, ROOT / "build/peers-jax", KEEPS_MEMORY, reads_forms=True),
    # With a newer apache-tvm-ffi 0.27.0.post1 crashes where its tuning keeps what it found.
    Peer("tvm", {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post0", "xgboost": "3.2.0", "psutil": "7.2.2",
                 "cloudpickle": "3.1.3", **READS_ONNX}, ROOT / "build/peers-tvm"),
]}


def is_ready(module, pinned, venv):
    """Whether the Python of this venv imports the module and has these packages."""
    python = venv / "bin/python"
    ask = f"import importlib.metadata as m, {module}; " + "; ".join(
        f"assert m.version('{name}') == '{version}'" for name, version in pinned.items())
    return python.exists() and subprocess.run([python, "-c", ask], capture_output=True).returncode == 0


def install(module, pinned, venv, seconds):
    """Makes the venv under build/ and is_ready() then. False where PyPI does not give the packages within `seconds`."""
    if subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True).returncode != 0:
        return False
    wanted = [f"{name}=={version}" for name, version in pinned.items()]
    try:
        subprocess.run([venv / "bin/pip", "install", "-q", "--retries", "1", "--timeout", "20", *wanted],
                       capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return is_ready(module, pinned, venv)


def peer_python():
    """A Python with the pinned onnxruntime; None where PyPI does not give it in time."""
    asked = "onnxruntime", PINNED, PEERS
    return PEERS / "bin/python" if is_ready(*asked) or install(*asked, INSTALL_S) else None


def other_peers(names, light_only=False):
    """Those that are here, or can be installed; of those that are not here `light_only` installs the light ones."""
    found = []
    for peer in (OTHERS[name] for name in names):
        asked = peer.name, peer.packages, peer.venv
        may_install = peer.light or not light_only
        if is_ready(*asked) or (may_install and install(*asked, INSTALL_S if peer.light else None)):
            found.append(peer.name)
    return found


def cause_in(errors):
    """Why a program ended, of what it wrote to stderr: the last exception, else the end. Paths below the repository are
    relative, since results are kept."""
    exceptions = re.findall(r"^[\w.]*(?:Error|Exception|Interrupt)\b.*", errors, re.MULTILINE)
    return (exceptions[-1] if exceptions else errors.strip()[-500:]).replace(f"{ROOT}/", "")


class Contender:
    """One of them; leave the context to end it."""

    def __init__(self, argv, name, environment=None):
        self.name = name
        self.stderr = tempfile.TemporaryFile("w+")  # nobody reads along: a full pipe would stop it
        self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.stderr, text=True, env={**os.environ, **(environment or {})},
                                        start_new_session=True)  # a group of its own, with the compilers that it starts

    def ask(self, words, limit_s=LIMIT_S):
        """Its answer to one line."""
        line = ""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{words}\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], limit_s)[0]:
                self.kill()
                raise RuntimeError(f"{self.name}: no answer within {limit_s:.0f} s")
            line = self.process.stdout.readline()
        if not line:
            self.process.wait(timeout=60)
            self.stderr.seek(0)
            raise RuntimeError(f"{self.name}: exit {self.process.returncode}: {cause_in(self.stderr.read())}")
        return json.loads(line)

    def burst(self, runs, limit_s=LIMIT_S):
        """Microseconds of each of so many runs."""
        return self.ask(runs, limit_s)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with contextlib.suppress(BrokenPipeError):  # closing writes what is left; ask has said that it is gone
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=60)
        self.kill()  # and what it has started
        self.process.stdout.close()
        self.stderr.close()


def ours(server, model, threads, *arguments):
    """`arguments`: further words of run_bursts."""
    return Contender([ROOT / "build/release/bin/run_bursts", server, model, threads, *arguments], "ours")


def onnxruntime(python, model, threads, setting="default", *inputs):
    """`setting`, `inputs`: see onnxruntime_worker.py."""
    return Contender([python, HERE / "onnxruntime_worker.py", model, threads, setting, *inputs], f"onnxruntime {setting}")


def other(name, model, threads):
    """`name`: one of OTHERS."""
    peer = OTHERS[name]
    return Contender([peer.venv / "bin/python", "-B", HERE / f"{name}_worker.py", model, threads], name, peer.environment)
