"""What rooms, the sub-folders of a layer, may include.

    tests/unit/layering/rooms_test.py ROOMS SOURCE_DIR

ROOMS has a line for each folder with rooms: its path, then the names of its rooms, lowest first; `.` stands for the files of the folder
itself (fusion_rooms in core/layer.cmake). A file includes headers of its own room and of those before it. No headers include each other
in a circle. Both rules are tried on planted violations first.
"""
import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
TOP = ("core", "server", "client")


def sources(root):
    for folder in TOP:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield path.relative_to(root)


def includes(root):
    """By source, the sources of the project that it includes."""
    return {path: [pathlib.Path(name) for name in INCLUDE.findall((root / path).read_text()) if (root / name).is_file()]
            for path in sources(root)}


def room_of(path, folder):
    inner = path.relative_to(folder).parts
    return inner[0] if len(inner) > 1 else "."


def room_faults(found, rooms):
    for folder, order in rooms.items():
        rank = {room: place for place, room in enumerate(order)}
        # A folder within that has rooms of its own is no room: it is above all of them.
        inner = [other for other in rooms if other != folder and other.is_relative_to(folder)]
        own = [path for path in found if path.is_relative_to(folder) and not any(path.is_relative_to(other) for other in inner)]
        for path in own:
            room = room_of(path, folder)
            if room not in rank:
                yield f"{path}: {room} is no room of {folder}; its rooms are {' '.join(order)}"
                continue
            for header in found[path]:
                if any(header.is_relative_to(other) for other in inner):
                    yield f"{path} includes {header}, which is above {folder}"
                elif header in own and rank.get(room_of(header, folder), 0) > rank[room]:
                    yield f"{path} includes {header}: room {room} is below room {room_of(header, folder)}"
        for room in order:
            if not any(room_of(path, folder) == room for path in own):
                yield f"{folder}: room {room} has no source"


def nameless_faults(found, rooms):
    """Sub-folders of layers that have no rooms."""
    for path in found:
        layer = pathlib.Path(*path.parts[:2]) if path.parts[0] == "core" else pathlib.Path(path.parts[0])
        if layer not in rooms and len(path.relative_to(layer).parts) > 1:
            yield f"{path}: {layer} has sub-folders and no fusion_rooms"


def circles(found):
    """Headers that include each other, each circle once."""
    done, seen = set(), []

    def visit(path):
        if path in seen:
            yield " -> ".join(map(str, seen[seen.index(path):] + [path]))
            return
        if path in done:
            return
        seen.append(path)
        for header in found.get(path, ()):
            yield from visit(header)
        seen.pop()
        done.add(path)

    for path in found:
        if path.suffix == ".h":
            yield from visit(path)


def faults(root, rooms):
    found = includes(root)
    return [*room_faults(found, rooms), *nameless_faults(found, rooms), *(f"a circle: {circle}" for circle in circles(found))]


def planted():
    """What is said of a small tree with the faults that this test is for."""
    files = {"core/x/low/a.h": '#include "core/x/high/b.h"\n',  # upward
             "core/x/high/b.h": '#include "core/x/high/c.h"\n#include "core/x/top.h"\n',  # upward: `.` is the highest
             "core/x/high/c.h": '#include "core/x/high/b.h"\n',  # a circle
             "core/x/top.h": '#include "core/x/low/a.h"\n',  # fine, but for the circle that it closes
             "core/x/other/d.h": "",  # no room
             "core/y/deep/e.h": "",  # a layer without rooms
             "core/x/nested/one/f.h": "",  # rooms within
             "core/x/high/g.cc": '#include "core/x/nested/one/f.h"\n',  # which are above all others
             "server/e.cc": '#include "core/x/low/a.h"\n'}
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return faults(root, {pathlib.Path("core/x"): ["low", "high", ".", "empty"], pathlib.Path("core/x/nested"): ["one"],
                             pathlib.Path("server"): ["."]})


WANTED = ["core/x/low/a.h includes core/x/high/b.h: room low is below room high",
          "core/x/high/b.h includes core/x/top.h: room high is below room .",
          "core/x/other/d.h: other is no room of core/x",
          "core/x: room empty has no source",
          "core/x/high/g.cc includes core/x/nested/one/f.h, which is above core/x",
          "core/y/deep/e.h: core/y has sub-folders and no fusion_rooms",
          "a circle: core/x/high/b.h -> core/x/high/c.h -> core/x/high/b.h",
          "a circle: core/x/high/b.h -> core/x/top.h -> core/x/low/a.h -> core/x/high/b.h"]


def main():
    said = planted()
    missing = [wanted for wanted in WANTED if not any(line.startswith(wanted) for line in said)]
    if missing or len(said) != len(WANTED):
        sys.exit(f"planted faults: expected {WANTED}, said {said}")
    rooms = {}
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        folder, *order = line.split()
        rooms[pathlib.Path(folder)] = order
    if not rooms:
        sys.exit(f"{sys.argv[1]} names no folder")
    found = faults(pathlib.Path(sys.argv[2]), rooms)
    if found:
        sys.exit("\n".join(found))
    print(f"{len(rooms)} folders with {sum(map(len, rooms.values()))} rooms: no upward include, no circle")


if __name__ == "__main__":
    main()
