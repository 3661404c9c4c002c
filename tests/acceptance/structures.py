#!/usr/bin/env python3
"""How many structurally distinct fusions plans have: groups of one structure hash count once (core/smg/structure.h).

    tests/acceptance/structures.py [--json] [FILE ...]

FILE: what `fusionctl plan --json` or `fusionctl explain --json` printed, or a model (.onnx), which is planned here. Without
files every model of the generator (fusion-modelgen --list) is. Groups that run once, on weights alone, do not count, nor
do groups of one node: the first figure is of groups of two or more nodes, the second one of those of one node too, whose
node is several ops."""

import argparse
import json
import pathlib
import tempfile

from common import BIN, ctl, generate, one_line, run


def generated(work):
    """Every model of the generator, written below `work`; each is gone when the next one is asked for."""
    listed = run(BIN / "fusion-modelgen", "--list").stdout
    for line in listed.splitlines():
        if not line or line[0].isspace():
            continue
        path = generate(work, line.split()[0])
        yield path
        path.unlink()


def binds_of(path):
    """--bind NAME=NUMBER for each symbolic dim that a manifest.json above the model gives a value for its test data."""
    for folder in path.resolve().parents:
        manifest = folder / "manifest.json"
        if manifest.exists():
            for entry in json.loads(manifest.read_text()):
                if path.resolve().parent.match(entry["dir"].removeprefix("dev/")):
                    return [word for name, value in (entry.get("dims") or {}).items()
                            for word in ("--bind", f"{name}={value}")]
    return []


def plan_of(path):
    """The object that fusionctl prints of a plan."""
    if path.suffix == ".onnx":
        return ctl("plan", path, "--plan-only", *binds_of(path))[1]
    return json.loads(path.read_text())


def structures_in(paths, failed=None):
    """By structure hash: ops and most nodes of a group that has it, and the models it is in. Models that cannot be planned go
    into `failed`, with the reason; without it they are an error."""
    found = {}
    for path in paths:
        try:
            groups = plan_of(path)["groups"]
        except RuntimeError as error:
            if failed is None:
                raise
            failed[path] = one_line(error)
            continue
        for group in groups:
            if group["kind"] == "prepare" or not group["structure"]:
                continue
            entry = found.setdefault(group["structure"], {"ops": group["ops"], "nodes": 0, "models": []})
            entry["nodes"] = max(entry["nodes"], len(group["nodes"]))
            if path.stem not in entry["models"]:
                entry["models"].append(path.stem)
    return found


def fusions_of(found):
    """Those that hold two or more nodes somewhere."""
    return {key: entry for key, entry in found.items() if entry["nodes"] > 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        found = structures_in(arguments.files or generated(work))
    fusions = fusions_of(found)
    if arguments.json:
        print(json.dumps({"distinct": len(fusions), "with_single_nodes": len(found), "structures": found}, indent=2))
        return
    for key, entry in sorted(fusions.items(), key=lambda item: -len(item[1]["models"])):
        print(f"{key}  {entry['ops'][:80]:<80}  {', '.join(entry['models'])}")
    print(f"{len(fusions)} structurally distinct fusions of two or more nodes; {len(found)} with those of one node")


if __name__ == "__main__":
    main()
