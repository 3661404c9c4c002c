"""The compile commands of a build tree, made fit for clang's tools.

A build by g++ forces a precompiled header in, which clang cannot read and which hides what a file
forgot to include, writes dependency files, and silences a warning that clang does not have. Without
these the commands suit both compilers.
"""

import json
import pathlib
import re
import shlex

# Words to drop, and how many words after them go too.
_DROPPED = {
    "-o": 1,
    "-c": 0,
    "-include": 1,
    "-Winvalid-pch": 0,
    "-Wno-subobject-linkage": 0,
    "-MD": 0,
    "-MT": 1,
    "-MF": 1,
}


def _sources(file):
    """The sources that one compilation reads: those of a batch, if it is one that CMake wrote (UNITY_BUILD)."""
    path = pathlib.Path(file)
    if path.parent.name != "Unity" or not path.exists():
        return [file]
    return re.findall(r'^#include "(.*)"$', path.read_text(), re.MULTILINE)


def load(build_dir):
    """{source file: (directory, words, batch)}; words[0] is the compiler, the source is the last one, batch what the build compiles."""
    database = {}
    for entry in json.loads((pathlib.Path(build_dir) / "compile_commands.json").read_text()):
        words, skip = [], 0
        for word in shlex.split(entry["command"]):
            if skip:
                skip -= 1
            elif word in _DROPPED:
                skip = _DROPPED[word]
            elif word != entry["file"]:
                words.append(word)
        for source in _sources(entry["file"]):
            database[source] = (entry["directory"], [*words, source], entry["file"])
    return database


def write(database, out_dir):
    """Writes `database` as out_dir/compile_commands.json for clang-tidy -p."""
    out = pathlib.Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    entries = [
        {"directory": directory, "file": source, "arguments": words}
        for source, (directory, words, _) in sorted(database.items())
    ]
    (out / "compile_commands.json").write_text(json.dumps(entries, indent=1))
