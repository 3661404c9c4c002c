"""What docker/ promises without building an image: the archive that oci_image.py writes, the packages that the programs link, and
that Dockerfile, image.json, fusiond.conf, prepare_root.sh and compose.yaml agree.

    tests/unit/docker/image_test.py SOURCE_DIR BIN_DIR
"""
import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE, BIN = (pathlib.Path(path) for path in sys.argv[1:3])
DOCKER = SOURCE / "docker"
PROGRAMS = ("fusiond", "fusionctl", "fusion-worker", "fusion-exec")
# Seconds that "docker stop" waits before it kills.
STOP_SECONDS = 10


def output(*argv, may_fail=False):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    if done.returncode != 0 and not may_fail:
        raise AssertionError(f"{argv}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def image_config():
    return json.loads((DOCKER / "image.json").read_text())


# The archive.


def write_tar(path, files):
    with tarfile.open(path, "w") as archive:
        for name, text in files.items():
            (path.parent / "content").write_text(text)
            archive.add(path.parent / "content", arcname=name)


def write_image(work, *layers, out="image.tar"):
    output(sys.executable, "-B", DOCKER / "oci_image.py", "--config", DOCKER / "image.json", "--name", "fusiond:9.9", "--created",
           86400, "--label", "org.opencontainers.image.version=9.9", "--out", work / out, *layers)
    return work / out


class Archive(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="image.")
        self.addCleanup(self.directory.cleanup)
        self.work = pathlib.Path(self.directory.name)
        self.layers = [self.work / "root.tar", self.work / "programs.tar"]
        write_tar(self.layers[0], {"etc/os-release": "Debian", "usr/bin/sh": "a shell"})
        write_tar(self.layers[1], {"usr/bin/fusiond": "a program"})
        self.path = write_image(self.work, *self.layers)
        with tarfile.open(self.path) as archive:
            self.files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
        self.index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))

    def blob(self, descriptor):
        data = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        self.assertEqual(len(data), descriptor["size"])
        return data

    def test_blobs_are_named_by_their_digest(self):
        blobs = [name for name in self.files if name.startswith("blobs/")]
        self.assertEqual(len(blobs), 4)  # two layers, config, manifest
        for name in blobs:
            self.assertEqual(name, "blobs/sha256/" + hashlib.sha256(self.files[name]).hexdigest())

    def test_layers_unpack_to_what_went_in(self):
        diff_ids = self.config["rootfs"]["diff_ids"]
        self.assertEqual(len(diff_ids), len(self.layers))
        for layer, diff_id, path in zip(self.manifest["layers"], diff_ids, self.layers):
            plain = gzip.decompress(self.blob(layer))
            self.assertEqual(plain, path.read_bytes())
            self.assertEqual(diff_id, "sha256:" + hashlib.sha256(plain).hexdigest())

    def test_docker_and_podman_read_the_same_image(self):
        self.assertEqual(json.loads(self.files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
        [of_docker] = json.loads(self.files["manifest.json"])
        of_oci = [self.manifest["config"], *self.manifest["layers"]]
        self.assertEqual([of_docker["Config"], *of_docker["Layers"]],
                         ["blobs/" + descriptor["digest"].replace(":", "/") for descriptor in of_oci])
        self.assertEqual(of_docker["RepoTags"], ["fusiond:9.9"])
        annotations = self.index["manifests"][0]["annotations"]
        self.assertEqual(annotations["org.opencontainers.image.ref.name"], "fusiond:9.9")

    def test_the_config_is_image_json_and_the_labels(self):
        expected = image_config()
        expected["Labels"]["org.opencontainers.image.version"] = "9.9"
        self.assertEqual(self.config["config"], expected)
        self.assertEqual((self.config["os"], self.config["architecture"]), ("linux", "amd64"))
        self.assertEqual(self.config["created"], "1970-01-02T00:00:00Z")

    def test_the_same_layers_give_the_same_bytes(self):
        for layer in self.layers:
            os.utime(layer, (1, 1))
        again = write_image(self.work, *self.layers, out="again.tar")
        self.assertEqual(again.read_bytes(), self.path.read_bytes())
        other = write_image(self.work, *reversed(self.layers), out="other.tar")
        self.assertNotEqual(other.read_bytes(), self.path.read_bytes())

    def test_without_a_layer_there_is_no_archive(self):
        with self.assertRaises(AssertionError):
            write_image(self.work, self.work / "no.tar", out="none.tar")
        self.assertEqual([path.name for path in self.work.iterdir() if path.name.startswith(("none", "oci."))], [])


# The packages.


def listed_packages():
    """Package -> its reason, "" without one."""
    packages = {}
    for line in (DOCKER / "runtime-packages.txt").read_text().splitlines():
        name, _, reason = line.partition("#")
        if name.strip():
            packages[name.strip()] = reason.strip()
    return packages


def libraries(program):
    """(paths of all libraries that are loaded, paths of those that the program itself names)"""
    found = dict(re.findall(r"^\s*(\S+) => (\S+) \(", output("ldd", program, may_fail=True), re.MULTILINE))
    needed = re.findall(r"^\s*NEEDED\s+(\S+)", output("objdump", "-p", program), re.MULTILINE)
    return set(found.values()), {found[name] for name in needed if name in found}


def owners(paths):
    """Path -> package. Packages name a library below /lib or below /usr/lib, which are one directory."""
    candidates = sorted(paths) + ["/usr" + path for path in sorted(paths)]
    owner = {}
    for line in output("dpkg", "-S", *candidates, may_fail=True).splitlines():
        names, _, path = line.rpartition(": ")
        if not names.startswith("diversion "):
            owner[path] = names.split(",")[0].split(":")[0]
    return {path: owner.get(path) or owner.get("/usr" + path) for path in paths}


def with_dependencies(packages):
    """`packages` and what they depend on, of what is installed here."""
    depends = {}
    form = "${Package}\t${Pre-Depends}, ${Depends}\n"
    for line in output("dpkg-query", "-W", "-f", form).splitlines():
        name, _, words = line.partition("\t")
        depends[name] = re.findall(r"[a-z0-9][a-z0-9+.-]+", re.sub(r"\([^)]*\)|:any", "", words))
    reached, open_ones = set(), list(packages)
    while open_ones:
        name = open_ones.pop()
        if name in depends and name not in reached:
            reached.add(name)
            open_ones += depends[name]
    return reached


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.listed = listed_packages()
        pairs = [libraries(BIN / program) for program in PROGRAMS]
        cls.loaded = set().union(*(loaded for loaded, _ in pairs))
        cls.needed = set().union(*(needed for _, needed in pairs))
        cls.owner = owners(cls.loaded)

    def test_each_library_is_of_a_listed_package_or_of_its_dependencies(self):
        self.assertGreater(len(self.loaded), 20)
        there = with_dependencies(self.listed)
        self.assertEqual(sorted(path for path in self.loaded if self.owner[path] not in there), [])

    def test_each_library_that_a_program_names_is_of_a_listed_package(self):
        # Not by a dependency of another package: that one may drop it.
        self.assertEqual(sorted(path for path in self.needed if self.owner[path] not in self.listed), [])

    def test_each_listed_package_is_linked_or_has_a_reason(self):
        linked = {self.owner[path] for path in self.needed}
        self.assertEqual(sorted(name for name, reason in self.listed.items() if name not in linked and not reason), [])
        self.assertEqual(sorted(name for name, reason in self.listed.items() if name in linked and reason), [])

    def test_the_compiler_of_the_configuration_is_in_the_list(self):
        compiler = configuration()["compiler"]
        self.assertEqual(owners({compiler})[compiler], "g++")
        self.assertIn("g++", self.listed)


# What the files say.


def dockerfile():
    """[(instruction, its words)] of the whole file."""
    lines = [line for line in (DOCKER / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    return re.findall(r"^([A-Z]+) (.*)$", "\n".join(lines).replace("\\\n", " "), re.MULTILINE)


def last_stage():
    instructions = dockerfile()
    begin = max(index for index, (name, _) in enumerate(instructions) if name == "FROM")
    return instructions[begin:]


def nanoseconds(text):
    return int(text.removesuffix("s")) * 10**9


def config_of_dockerfile():
    """The image's config as the last stage sets it, in the words of image.json; without Env, which docker adds."""
    config = {"ExposedPorts": {}, "Volumes": {}, "Labels": {}}
    for name, words in last_stage():
        if name in ("ENTRYPOINT", "CMD"):
            config[name.capitalize()] = json.loads(words)
        elif name == "USER":
            config["User"] = words
        elif name == "WORKDIR":
            config["WorkingDir"] = words
        elif name == "STOPSIGNAL":
            config["StopSignal"] = words
        elif name == "EXPOSE":
            config["ExposedPorts"] = {port: {} for port in words.split()}
        elif name == "VOLUME":
            config["Volumes"] = {path: {} for path in json.loads(words)}
        elif name == "LABEL":
            key, value = words.split("=", 1)
            config["Labels"][key] = value.strip('"')
        elif name == "HEALTHCHECK":
            options, command = words.split("CMD", 1)
            named = dict(re.findall(r"--([a-z-]+)=(\S+)", options))
            config["Healthcheck"] = {"Test": ["CMD", *json.loads(command)], "Interval": nanoseconds(named["interval"]),
                                     "Timeout": nanoseconds(named["timeout"]), "StartPeriod": nanoseconds(named["start-period"]),
                                     "Retries": int(named["retries"])}
    return config


def configuration(path=DOCKER / "fusiond.conf"):
    """Name -> value; values are written as in JSON."""
    return {name: json.loads(value) for name, value in re.findall(r"^([a-z-]+) = (.+)$", path.read_text(), re.MULTILINE)}


class Service:
    """A service of compose.yaml, whose lists are written as in JSON."""

    def __init__(self, name):
        text = (DOCKER / "compose.yaml").read_text()
        self.text = re.search(rf"^  {name}:\n((?:    .*\n|\n)+)", text, re.MULTILINE)[1]

    def value(self, key):
        found = re.search(rf"^ +{key}: (.+)$", self.text, re.MULTILINE)
        if found is None:
            return None
        return json.loads(found[1]) if found[1].startswith("[") else found[1]

    def mounts(self):
        """Sources of this repository, as paths from docker/."""
        return re.findall(r"^ +- (\.[^:]*):", self.text, re.MULTILINE)


def flag(words, name):
    return words[words.index(name) + 1]


def project_version():
    return re.search(r"^project\(fusiond VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


class Agreement(unittest.TestCase):
    def test_the_dockerfile_sets_what_image_json_says(self):
        of_dockerfile, of_json = config_of_dockerfile(), image_config()
        self.assertEqual(of_dockerfile["Labels"].pop("org.opencontainers.image.version"), "$VERSION")
        self.assertEqual(of_dockerfile["Labels"].pop("org.opencontainers.image.revision"), "$REVISION")
        self.assertIn("PATH=", "".join(of_json.pop("Env")))
        self.assertEqual(of_dockerfile, of_json)

    def test_both_builders_install_the_list_and_prepare_the_root(self):
        scripts = ["".join(words for name, words in last_stage() if name in ("RUN", "COPY")), (DOCKER / "build.sh").read_text()]
        for text in scripts:
            self.assertIn("runtime-packages.txt", text)
            self.assertIn("prepare_root.sh", text)
            self.assertIn("docker/fusiond.conf", text)
        for package in listed_packages():
            self.assertNotRegex(scripts[0] + scripts[1], rf"\b{re.escape(package)}\b")

    def test_both_builders_install_the_same_build(self):
        build = "".join(words for name, words in dockerfile() if name == "RUN")
        for text in (build, (DOCKER / "build.sh").read_text()):
            self.assertIn("-DFUSION_TESTS=OFF", text)
            self.assertRegex(text, r"cmake --install .*--prefix /usr --strip")

    def test_stages_are_of_debian_12(self):
        bases = [words.split()[0] for name, words in dockerfile() if name == "FROM"]
        self.assertEqual(bases, ["debian:12", "debian:12-slim"])
        self.assertEqual(image_config()["Labels"]["org.opencontainers.image.base.name"], bases[-1])

    def test_the_user_is_not_root_and_has_the_name_of_the_unit(self):
        user, group = image_config()["User"].split(":")
        script = (DOCKER / "prepare_root.sh").read_text()
        name = (SOURCE / "deploy/fusiond.sysusers").read_text().splitlines()[-1].split()[1]
        self.assertGreater(int(user), 0)
        self.assertRegex(script, rf"(?m)^groupadd --gid {group} {name}$")
        self.assertRegex(script, rf"(?m)^useradd --uid {user} --gid {name} .* {name}$")
        self.assertRegex(script, rf"(?m)^install -d -o {name} -g {name} -m 0700 {configuration()['store']}$")

    def test_exposed_ports_are_those_of_the_configuration(self):
        values = configuration()
        addresses = [address for address in values["listen"] if not address.startswith("unix:")] + [values["admin"]]
        self.assertEqual(sorted(image_config()["ExposedPorts"]), sorted(address.rpartition(":")[2] + "/tcp" for address in addresses))

    def test_the_store_is_a_volume(self):
        self.assertEqual(list(image_config()["Volumes"]), [configuration()["store"]])
        self.assertEqual(Service("fusiond").value("volumes"), [f"store:{configuration()['store']}"])

    def test_the_health_check_asks_at_the_socket_of_the_configuration(self):
        test = image_config()["Healthcheck"]["Test"]
        self.assertEqual(flag(test, "--server"), "unix:" + socket_path())
        self.assertIn("status", output(BIN / "fusionctl", "--help"))

    def test_the_configuration_has_flags_of_fusiond(self):
        known = set(re.findall(r"--[a-z-]+", output(BIN / "fusiond", "--help")))
        used = {"--" + name for name in configuration()}
        used |= {word for word in Service("fusiond").value("command") if word.startswith("--")}
        used |= {word for word in image_config()["Cmd"] if word.startswith("--")}
        self.assertEqual(sorted(used - known), [])

    def test_a_stop_ends_before_the_engine_kills(self):
        values = configuration()
        self.assertLess(values["drain-seconds"] + 2 * values["grace-seconds"], STOP_SECONDS)
        service = Service("fusiond")
        command = service.value("command")
        takes = float(flag(command, "--drain-seconds")) + 2 * float(flag(command, "--grace-seconds"))
        self.assertLess(takes, float(service.value("stop_grace_period").removesuffix("s")))
        self.assertEqual(image_config()["StopSignal"], "SIGTERM")

    def test_compose_starts_the_image_as_it_is(self):
        service, config = Service("fusiond"), image_config()
        self.assertEqual(service.value("command")[:len(config["Cmd"])], config["Cmd"])
        self.assertEqual(service.value("test"), config["Healthcheck"]["Test"])
        for key, name in (("interval", "Interval"), ("timeout", "Timeout"), ("start_period", "StartPeriod")):
            self.assertEqual(nanoseconds(service.value(key)), config["Healthcheck"][name])
        for key in ("user", "entrypoint"):
            self.assertIsNone(service.value(key))  # those of the image
        published = [port.split(":") for port in service.value("ports")]
        for address, _, port in published:
            self.assertEqual(address, "127.0.0.1")
            self.assertIn(f"{port}/tcp", config["ExposedPorts"])
        written = [mount.split(":")[0] for mount in service.value("tmpfs")]
        self.assertEqual(written, ["/tmp"])
        self.assertEqual(str(pathlib.Path(socket_path()).parent), "/tmp")

    def test_compose_hardens_every_service(self):
        for name in ("fusiond", "prometheus", "grafana"):
            service = Service(name)
            self.assertEqual((name, service.value("read_only"), service.value("cap_drop"), service.value("security_opt")),
                             (name, "true", ["ALL"], ["no-new-privileges:true"]))
            self.assertIsNotNone(service.value("test"), name)
            for port in service.value("ports"):
                self.assertTrue(port.startswith("127.0.0.1:"), port)

    def test_prometheus_reaches_the_admin_port_by_a_name_that_is_accepted(self):
        text = (DOCKER / "prometheus.yml").read_text()
        [host, port] = re.search(r'targets: \["([^"]+)"\]', text)[1].split(":")
        self.assertEqual(host, flag(Service("fusiond").value("command"), "--admin-host"))
        self.assertEqual(port, configuration()["admin"].rpartition(":")[2])
        [job] = re.findall(r"job_name: (\S+)", text)
        observed = SOURCE / "deploy/observability/fusion_rules.yml"
        for named in re.findall(r'job="(\w+)"', observed.read_text()) if observed.exists() else ["fusiond"]:
            self.assertEqual(job, named)
        rules = re.search(r"rule_files:\n  - (\S+)", text)[1]
        self.assertIn(f":{rules}:ro", Service("prometheus").text)

    def test_grafana_finds_its_dashboards(self):
        path = re.search(r"path: (\S+)", (DOCKER / "grafana/dashboards.yaml").read_text())[1]
        self.assertIn(f":{path}:ro", Service("grafana").text)
        url = re.search(r"url: http://(\S+):(\d+)", (DOCKER / "grafana/datasources.yaml").read_text())
        self.assertIn(f":{url[2]}", "".join(Service(url[1]).value("ports")))

    def test_what_compose_mounts_is_there(self):
        mounts = Service("prometheus").mounts() + Service("grafana").mounts()
        self.assertEqual(len(mounts), 5)
        # The rules and dashboards of deploy/observability come as one folder.
        observed = [mount for mount in mounts if mount.startswith("../deploy/observability/")]
        if (SOURCE / "deploy/observability").is_dir():
            observed = []
        self.assertEqual([mount for mount in mounts if mount not in observed and not (DOCKER / mount).exists()], [])

    def test_the_dockerfile_copies_what_dockerignore_lets_through(self):
        lines = (SOURCE / ".dockerignore").read_text().splitlines()
        let_through = {line[1:] for line in lines if line.startswith("!")}
        self.assertIn("*", lines)
        self.assertEqual(sorted(name for name in let_through if not (SOURCE / name).exists()), [])
        cmake = (SOURCE / "CMakeLists.txt").read_text()
        needed = {"CMakeLists.txt", "CMakePresets.json", "README.md", "docker", "proto"}
        needed |= set(re.findall(r"^add_subdirectory\((\w+)\)", cmake, re.MULTILINE))
        self.assertEqual(let_through, needed)
        for name, words in dockerfile():
            for path in words.split()[:-1] if name == "COPY" and not words.startswith("--from") else []:
                self.assertTrue((SOURCE / path).exists() and (path == "." or path.split("/")[0] in let_through), path)

    def test_versions_are_that_of_the_project(self):
        version = project_version()
        self.assertEqual(Service("fusiond").value("image"), f"fusiond:{version}")
        self.assertIn(("ARG", f"VERSION={version}"), last_stage())


def socket_path():
    [path] = [address.removeprefix("unix:") for address in configuration()["listen"] if address.startswith("unix:")]
    return path


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
