"""Rows of tests/acceptance/image.sh. Standard library only. The image runs in podman or docker where one of them works, else in its
unpacked root, in namespaces of its own (needs root)."""

import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
import urllib.request

import common
from common import BIN, ROOT, ctl, generate, run

NAME = "fusiond:acceptance"
SIZE_MIB = 200
START_S = 30
# What "docker stop" grants.
STOP_S = 10

# In namespaces of its own: mounts as an engine with --read-only makes them, no network but loopback, process 1, no privileges.
INSIDE = r"""
set -e
root=$1 state=$2 tmp=$3 user=$4
shift 4
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o nosuid,noexec,mode=0755,size=64k tmpfs "$root/dev"
for device in null zero full random urandom; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount --bind "$state" "$root/var/lib/fusiond"
mount --bind "$tmp" "$root/tmp"
mount -o remount,bind,nosuid,nodev,noexec "$root/tmp"
mount -o remount,bind,ro "$root"
python3 -c 'import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 0x41))'
exec chroot --userspec="$user" "$root" /usr/bin/setpriv --no-new-privs -- "$@"
"""
READ_URL = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"


class Image:
    """An archive of docker/build.sh."""

    def __init__(self, path):
        self.path = path
        self.archive = tarfile.open(path)
        index = self.json("index.json")
        self.manifest = self.blob(index["manifests"][0])
        self.config = self.blob(self.manifest["config"])["config"]
        [self.tag] = self.json("manifest.json")[0]["RepoTags"]
        self.user, self.group = (int(word) for word in self.config["User"].split(":"))

    def json(self, name):
        return json.load(self.archive.extractfile(name))

    @staticmethod
    def name(descriptor):
        return "blobs/" + descriptor["digest"].replace(":", "/")

    def blob(self, descriptor):
        return self.json(self.name(descriptor))

    def unpack(self, root):
        root.mkdir(mode=0o755)
        for layer in self.manifest["layers"]:
            with subprocess.Popen(["tar", "-xzpf", "-", "--numeric-owner", "-C", str(root)], stdin=subprocess.PIPE) as tar:
                shutil.copyfileobj(self.archive.extractfile(self.name(layer)), tar.stdin)
            if tar.returncode != 0:
                raise RuntimeError(f"layer {layer['digest']} cannot be unpacked")
        for name in ("dev", "proc", "tmp"):
            (root / name).mkdir(exist_ok=True)


class Rooted:
    """A container without an engine: the unpacked image in new namespaces. Its store stays in `work` between containers."""

    kind = "namespaces"

    def __init__(self, image, work, root):
        self.image, self.root = image, root
        state, tmp = work / "state", work / "tmp"  # as a volume and as --tmpfs of an engine
        state.mkdir(mode=0o700, exist_ok=True)
        os.chown(state, image.user, image.group)
        tmp.mkdir(exist_ok=True)
        tmp.chmod(0o1777)
        self.address = f"unix:{tmp}/fusiond.sock"
        self.log = open(work / "image.log", "ab")
        argv = ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "sh", "-c", INSIDE, "sh", root,
                state, tmp, image.config["User"], *image.config["Entrypoint"], *image.config["Cmd"]]
        self.process = subprocess.Popen([str(word) for word in argv], stderr=self.log,
                                        env=dict(pair.split("=", 1) for pair in image.config["Env"]))
        self.begin = time.monotonic()

    def pid(self):
        """Of fusiond, seen from here."""
        own = self.process.pid
        return pathlib.Path(f"/proc/{own}/task/{own}/children").read_text().split()[0]

    def inside(self, *argv):
        namespaces = ("--mount", "--pid", "--net", "--root", "--wd")
        return run("nsenter", "--target", self.pid(), *namespaces, "--setuid", self.image.user, "--setgid", self.image.group, "--",
                   *argv, check=False, timeout=60)

    def read(self, port, path):
        return run("nsenter", "--target", self.pid(), "--net", "--", sys.executable, "-c", READ_URL,
                   f"http://127.0.0.1:{port}{path}").stdout.strip()

    def terminate(self):
        os.kill(int(self.pid()), signal.SIGTERM)

    def wait(self):
        return self.process.wait(timeout=6 * STOP_S)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Engine:
    """A container of podman or docker, in which the image is loaded. Its store is a volume."""

    def __init__(self, image, program):
        self.image, self.program, self.kind = image, program, program
        argv = ("run", "--detach", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--tmpfs", "/tmp",
                "--volume", "fusiond-acceptance:/var/lib/fusiond", "--publish", "127.0.0.1::50051", "--publish", "127.0.0.1::9464",
                "--init", image.tag)
        self.id = run(program, *argv).stdout.strip()
        self.begin = time.monotonic()
        self.address = self.published(50051)

    def published(self, port):
        return run(self.program, "port", self.id, f"{port}/tcp").stdout.split()[0]

    def inside(self, *argv):
        return run(self.program, "exec", self.id, *argv, check=False, timeout=60)

    def read(self, port, path):
        with urllib.request.urlopen(f"http://{self.published(port)}{path}", timeout=5) as answer:
            return answer.read().decode().strip()

    def terminate(self):
        run(self.program, "kill", "--signal", self.image.config["StopSignal"], self.id)

    def wait(self):
        return int(run(self.program, "wait", self.id, timeout=6 * STOP_S).stdout)

    def close(self):
        run(self.program, "rm", "--force", self.id, check=False)


def engine(image):
    """The first engine that loads and runs the image here; None if none does."""
    for program in ("podman", "docker"):
        if not shutil.which(program) or run(program, "info", check=False).returncode != 0:
            continue
        for words in (("load", "--input", image.path), ("run", "--rm", image.tag, "--version")):
            done = run(program, *words, check=False, timeout=600)
            if done.returncode != 0:
                print(f"           {program} {words[0]} does not work here: {common.one_line(done.stderr)[-150:]}", flush=True)
                break
        else:
            return program
    return None


def build_rows(rows, work):
    path = work / "image.tar"
    begin = time.monotonic()
    done = run(ROOT / "docker/build.sh", "--build", ROOT / "build/release", "--out", path, "--name", NAME, check=False, timeout=3600)
    why = common.one_line(done.stderr)[-150:]
    rows.counted("built from Debian packages, no registry", done.returncode == 0,
                 f"{time.monotonic() - begin:.0f} s" if done.returncode == 0 else f"exit {done.returncode}: {why}", "exit 0")
    return path


def content_rows(rows, image, root):
    packed = image.path.stat().st_size / 2**20
    unpacked = int(run("du", "-sxm", root).stdout.split()[0])
    rows.counted("size", packed <= SIZE_MIB, f"{packed:.0f} MiB packed, {unpacked} MiB unpacked", f"<= {SIZE_MIB} MiB packed")
    rows.counted("user", image.user != 0, f"{image.user}:{image.group}", "not root")
    entries = [(path, path.lstat()) for path in root.rglob("*")]
    files = [(path, found) for path, found in entries if not stat.S_ISLNK(found.st_mode)]
    special = [path for path, found in files if stat.S_ISREG(found.st_mode) and found.st_mode & (stat.S_ISUID | stat.S_ISGID)]
    rows.counted("programs that change the user", not special, ", ".join(map(str, special[:3])) or "none", "none")
    writable = sorted(str(path.relative_to(root)) for path, found in files
                      if found.st_uid == image.user or found.st_mode & 0o002 and not found.st_mode & stat.S_ISVTX)
    rows.counted("what the user can write", writable == ["var/lib/fusiond"], ", ".join(writable[:5]), "the store")


def snapshot(root):
    """Path -> what changes when it is written, without what mounts hide."""
    found = {}
    for path in root.rglob("*"):
        entry = path.lstat()
        found[path] = (entry.st_mode, entry.st_uid, entry.st_gid, entry.st_size, entry.st_mtime_ns)
    return found


def wait_until_healthy(container):
    """Seconds from the start until the health check of the image passes; None if it does not in time."""
    check = container.image.config["Healthcheck"]["Test"][1:]
    while (waited := time.monotonic() - container.begin) < START_S:
        try:
            if container.inside(*check).returncode == 0:
                return waited
        except (OSError, IndexError):  # there is no process yet
            pass
        time.sleep(0.1)
    return None


def health_rows(rows, container):
    waited = wait_until_healthy(container)
    rows.counted("health check passes", waited is not None, "no" if waited is None else f"{waited:.1f} s after the start",
                 f"within {START_S} s")
    said = [container.read(9464, path) for path in ("/healthz", "/readyz")]
    rows.counted("/healthz, /readyz on port 9464", said == ["ok", "ready"], ", ".join(said), "ok, ready")
    done = container.inside("/usr/bin/fusionctl", "status", "--server", "127.0.0.1:50051")
    rows.counted("port 50051 serves", done.returncode == 0, common.one_line(done.stdout or done.stderr)[:100], "serves")
    done = container.inside("/usr/bin/fusionctl", "store", "stats", "--server", "unix:/tmp/fusiond.sock")
    rows.counted("the user inside is the administrator", done.returncode == 0, f"store stats: exit {done.returncode}", "exit 0")


def main_job_rows(rows, work, container):
    model = generate(work, "bert_layer")
    _, plan = ctl("plan", model, "--server", container.address)
    rows.counted("plan of a BERT layer", plan["totals"]["kernels"] <= 9, f"{plan['totals']['kernels']} kernels, from {plan['cache']}",
                 "<= 9 kernels")
    status, said = ctl("verify", model, "--server", container.address, check=False)
    outside = sum(output["outside"] for output in said.get("outputs", []))
    rows.counted("verify of a BERT layer", status == 0 and said["pass"] and outside == 0 and said["fallbacks"] == 0,
                 f"exit {status}, outside {outside}, fallbacks {said.get('fallbacks')}", "outside 0, fallbacks 0")


def confinement_rows(rows, container):
    _, said = ctl("capabilities", "--server", container.address)
    level = said["sandbox"]
    strong = "landlock" in level and "seccomp" in level
    rows.add("PASS" if strong else "UNMEASURED", "sandbox of compile workers", level, "landlock and seccomp, where the kernel has both")
    text = container.inside("/bin/sh", "-c", "grep -hE '^(Name|Uid|CapEff|NoNewPrivs):' /proc/[0-9]*/status").stdout
    processes = [dict(line.split(":", 1) for line in one.splitlines()) for one in text.replace("Name:", "\0Name:").split("\0")[1:]]
    ours = [process for process in processes if process["Name"].strip().startswith("fusion")]
    bad = [process for process in ours if set(process["Uid"].split()) != {str(container.image.user)} or
           int(process["CapEff"], 16) != 0 or process["NoNewPrivs"].strip() != "1"]
    rows.counted("processes: not root, no privileges", bool(ours) and not bad,
                 common.one_line(bad[0]) if bad else f"{len(ours)} processes", "each")


def restart_row(rows, work, container):
    wait_until_healthy(container)
    _, plan = ctl("plan", generate(work, "bert_layer"), "--server", container.address)
    cached = sum(kernel["cached"] for kernel in plan["kernels"])
    rows.counted("a new container answers from the volume", plan["cache"] == "store" and cached == len(plan["kernels"]),
                 f"from {plan['cache']}, {cached} of {len(plan['kernels'])} kernels", "store, every kernel")


def drain_rows(rows, work, container):
    """SIGTERM while a call is under way."""
    model = generate(work, "softmax")
    call = subprocess.Popen([str(BIN / "fusionctl"), "plan", str(model), "--server", container.address, "--json"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(0.3)
    begin = time.monotonic()
    container.terminate()
    time.sleep(0.2)
    try:
        health = container.inside(*container.image.config["Healthcheck"]["Test"][1:]).returncode
    except (OSError, IndexError):  # it has ended
        health = 1
    status = container.wait()
    took = time.monotonic() - begin
    _, said = call.communicate(timeout=60)
    rows.counted("SIGTERM: the health check fails", health != 0, f"exit {health}", "not 0")
    rows.counted("SIGTERM: the call under way ends well", call.returncode == 0,
                 f"exit {call.returncode} {common.one_line(said)[:100]}".strip(), "exit 0")
    rows.counted("SIGTERM: drains and ends", status == 0 and took < STOP_S, f"exit {status} after {took:.1f} s",
                 f"exit 0 within {STOP_S} s")


class RowsOf(common.Rows):
    """Rows of one kind of container, with its name before theirs."""

    def __init__(self, rows, kind):
        super().__init__()
        self.rows, self.kind = rows, kind

    def add(self, verdict, row, figure, bar):
        self.rows.add(verdict, f"{self.kind}: {row}", figure, bar)


def use_rows(rows, work, start):
    """`start`: makes a container."""
    container = start()
    rows = RowsOf(rows, container.kind)
    try:
        rows.section(health_rows, container)
        rows.section(main_job_rows, work, container)
        rows.section(confinement_rows, container)
        rows.section(drain_rows, work, container)
    finally:
        container.close()
    container = start()
    try:
        rows.section(restart_row, work, container)
    finally:
        container.close()


def measure(rows, work, options):
    path = pathlib.Path(options.archive) if options.archive else build_rows(rows, work)
    if not path.exists():
        return
    image, root = Image(path), work / "root"
    program = engine(image)
    is_root = os.geteuid() == 0
    if is_root:
        image.unpack(root)
        rows.section(content_rows, image, root)
    else:
        rows.add("UNMEASURED", "size, user, rights of files", "needs root", "")
    if program is not None:
        run(program, "volume", "rm", "--force", "fusiond-acceptance", check=False)
        rows.section(use_rows, work, lambda: Engine(image, program))
    if is_root:  # beside an engine as well: it shows what is written
        before = snapshot(root)
        rows.section(use_rows, work, lambda: Rooted(image, work, root))
        after = snapshot(root)
        changed = [str(name) for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
        rows.counted("namespaces: root read-only, unchanged", not changed, ", ".join(changed[:3]) or f"{len(before)} files", "unchanged")
    elif program is None:
        rows.add("UNMEASURED", "the image in use", "needs root, podman or docker", "")


def add_options(parser):
    parser.add_argument("--archive", help="an image of docker/build.sh; default: builds one")


if __name__ == "__main__":
    sys.exit(common.main("the container image", "image", measure, add_options))
