#!/usr/bin/env python3
"""Writes a container image from tar files: an OCI archive that "podman load" and "docker load" read. Standard library only.

  docker/oci_image.py --config image.json --name fusiond:0.1.0 --created 1764489600 --out fusiond.tar root.tar programs.tar

The layers are the tar files, lowest first. The archive is an OCI layout (index.json, blobs by SHA-256) and also has the
manifest.json of "docker save", which docker before 25 reads. The same layers and arguments give the same bytes.
"""

import argparse
import datetime
import gzip
import hashlib
import json
import pathlib
import sys
import tarfile
import tempfile

CHUNK = 1 << 20
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX = "application/vnd.oci.image.index.v1+json"


class Blobs:
    """A directory blobs/sha256 below `root`: files named by their contents."""

    def __init__(self, root):
        self.directory = pathlib.Path(root) / "blobs/sha256"
        self.directory.mkdir(parents=True)

    def add(self, media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        (self.directory / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def add_json(self, media_type, value):
        return self.add(media_type, json.dumps(value, sort_keys=True, separators=(",", ":")).encode())

    def add_layer(self, path):
        """(descriptor, SHA-256 of the uncompressed layer)"""
        plain = hashlib.sha256()
        temporary = self.directory / "layer"
        with open(path, "rb") as source, open(temporary, "wb") as target:
            # No name and no time in the header: the bytes depend on the layer alone.
            with gzip.GzipFile(filename="", fileobj=target, mode="wb", compresslevel=6, mtime=0) as packed:
                while chunk := source.read(CHUNK):
                    plain.update(chunk)
                    packed.write(chunk)
        digest = file_digest(temporary)
        size = temporary.stat().st_size
        temporary.rename(self.directory / digest)
        return {"mediaType": LAYER, "digest": f"sha256:{digest}", "size": size}, f"sha256:{plain.hexdigest()}"


def file_digest(path):
    digest = hashlib.sha256()
    with open(path, "rb") as source:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def write_layout(root, config, name, created, layers):
    """Writes the layout into the empty directory `root`; the digest of its manifest."""
    blobs = Blobs(root)
    time = datetime.datetime.fromtimestamp(created, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    packed = [blobs.add_layer(layer) for layer in layers]
    image = blobs.add_json(CONFIG, {
        "architecture": "amd64",
        "os": "linux",
        "created": time,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [diff_id for _, diff_id in packed]},
        "history": [{"created": time, "created_by": f"docker/build.sh: {pathlib.Path(layer).stem}"} for layer in layers],
    })
    descriptors = [descriptor for descriptor, _ in packed]
    manifest = blobs.add_json(MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "config": image, "layers": descriptors})
    manifest["annotations"] = {"org.opencontainers.image.ref.name": name,  # podman's name
                               "io.containerd.image.name": f"docker.io/library/{name}"}  # that of docker with containerd
    root = pathlib.Path(root)
    write_json(root / "oci-layout", {"imageLayoutVersion": "1.0.0"})
    write_json(root / "index.json", {"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]})
    write_json(root / "manifest.json", [{"Config": blob_path(image), "RepoTags": [name],
                                         "Layers": [blob_path(descriptor) for descriptor in descriptors]}])
    return manifest["digest"]


def write_json(path, value):
    path.write_text(json.dumps(value, sort_keys=True) + "\n")


def blob_path(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


def write_archive(root, out):
    """The files below `root` as a tar file, in a fixed order and with fixed owners and times."""
    def plain(member):
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        member.mode = 0o755 if member.isdir() else 0o644
        return member

    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(pathlib.Path(root).rglob("*")):
            archive.add(path, arcname=str(path.relative_to(root)), recursive=False, filter=plain)


def main():
    parser = argparse.ArgumentParser(description="writes a container image from tar files")
    parser.add_argument("--config", required=True, help="JSON: the image's config (User, Entrypoint, ...)")
    parser.add_argument("--name", required=True, help="NAME:TAG")
    parser.add_argument("--created", type=int, required=True, help="seconds since 1970")
    parser.add_argument("--label", action="append", default=[], help="NAME=VALUE, beside those of the config")
    parser.add_argument("--out", required=True, help="the archive")
    parser.add_argument("layers", nargs="+", help="tar files, lowest first")
    options = parser.parse_args()
    config = json.loads(pathlib.Path(options.config).read_text())
    config.setdefault("Labels", {}).update(label.split("=", 1) for label in options.label)
    out = pathlib.Path(options.out)
    with tempfile.TemporaryDirectory(prefix="oci.", dir=out.parent) as root:
        digest = write_layout(root, config, options.name, options.created, options.layers)
        write_archive(root, out)
    print(digest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
