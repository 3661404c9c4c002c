"""A real fusiond with an admin port, whose metrics are read. Standard library only."""

import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

START_S = 60


def get(address, path):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
        return answer.read().decode()


def certificate(directory, days):
    """Flags of a server with a certificate for so many days."""
    cert, key = pathlib.Path(directory) / f"{days}.crt", pathlib.Path(directory) / f"{days}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                    "/CN=localhost", "-days", str(days), "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    for path in (cert, key):
        path.chmod(0o600)
    return ["--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key]


class Observed:
    """fusiond of `bin_dir` on a private socket, with an admin port; `flags` are further ones."""

    def __init__(self, bin_dir, flags=(), drain_seconds=0):
        self.bin_dir = pathlib.Path(bin_dir)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="fusiond.", dir="/tmp"))
        self.address = f"unix:{self.dir}/socket"
        self.log = self.dir / "log"
        argv = [self.bin_dir / "fusiond", "--listen", self.address, "--admin", "127.0.0.1:0", "--drain-seconds", drain_seconds,
                "--exit-with-parent", *flags]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([str(word) for word in argv], stderr=log)
        self.admin = self.listening()["admin"]

    def listening(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            for line in self.log.read_text().splitlines():
                if '"event":"listening"' in line and line.endswith("}"):
                    return json.loads(line)
            time.sleep(0.02)
        said = self.log.read_text()
        self.end()
        raise RuntimeError(f"fusiond did not start: {said[-500:]}")

    def ctl(self, *words):
        """fusionctl with this server: exit status and output."""
        done = subprocess.run([str(word) for word in (self.bin_dir / "fusionctl", *words, "--server", self.address)],
                              capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def must(self, *words):
        status, said = self.ctl(*words)
        if status != 0:
            raise RuntimeError(f"fusionctl {' '.join(map(str, words))}: exit {status}: {said[-500:]}")
        return said

    def metrics(self):
        return get(self.admin, "/metrics")

    def drain(self):
        """Asks it to stop; what it does until then is up to --drain-seconds."""
        self.process.send_signal(signal.SIGTERM)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def stop(self):
        """An orderly end."""
        self.drain()
        self.process.wait(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.end()
