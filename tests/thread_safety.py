#!/usr/bin/env python3
"""Checks with clang that guarded members are touched under their mutex only.

  tests/thread_safety.py BUILD_DIR

Compiles (syntax only) every source of core, server and client that has a mutex, itself or in its
own header, with clang++ -Wthread-safety, those of a batch of the build together. Then takes a lock away from a copy of one of them and
expects that to fail: a check that cannot fail is none. Also refuses mutexes that clang cannot see
and mutexes that guard nothing by name. Exit codes: 0 fine, 1 findings, 77 no clang++.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "tools"))
import compile_database  # noqa: E402

FLAGS = ["-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety", "-Wno-unknown-warning-option"]
LOCK = "  MutexLock lock(&mutex_);\n"
# core/base/threads/mutex.h wraps it.
FOREIGN = re.compile(r"\bstd::(mutex|shared_mutex|lock_guard|unique_lock|scoped_lock)\b|\babsl::Mutex")
FOREIGN_ALLOWED = {"core/base/threads/mutex.h"}
# A mutex that guards something else than members says what, on its line or right above.
MEMBER = re.compile(r"^(\s*//.*\n)?\s*(?:mutable )?Mutex (\w+);( *//)?", re.MULTILINE)


def sources():
    """Sources and headers of ours, by path from the root."""
    for folder in ("core", "server", "client"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h"):
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def unguarded(texts):
    """Locks clang does not see, and mutexes whose members do not say so."""
    for name, text in texts.items():
        found = FOREIGN.search(text)
        if found and name not in FOREIGN_ALLOWED:
            yield f"{name}: {found.group()} is invisible to clang: use core/base/threads/mutex.h"
        for above, mutex, beside in MEMBER.findall(text):
            if not (above or beside) and f"GUARDED_BY({mutex})" not in text:
                yield f"{name}: nothing says ABSL_GUARDED_BY({mutex})"


def compile_one(compiler, directory, words):
    """Clang's findings about one source; empty if there are none."""
    command = [compiler, *words[1:-1], *FLAGS, words[-1]]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


def in_batches(database, chosen, scratch):
    """compile_one's arguments for all of these sources: one file includes those that the build compiles together."""
    batches = collections.defaultdict(list)
    for name in chosen:
        directory, words, batch = database[str(ROOT / name)]
        batches[batch].append((directory, words))
    for number, batch in enumerate(batches.values()):
        directory, words = batch[0]
        together = pathlib.Path(scratch) / f"batch_{number}.cc"
        together.write_text("".join(f'#include "{words[-1]}"\n' for _, words in batch))
        yield directory, [*words[:-1], str(together)]


def broken_copy(database, text, scratch):
    """compile_one's arguments for memory_store.cc without its first lock."""
    directory, words, _ = database[str(ROOT / "core/cache/memory/memory_store.cc")]
    assert LOCK in text, "core/cache/memory/memory_store.cc holds no lock to take away"
    copy = pathlib.Path(scratch) / "memory_store.cc"
    copy.write_text(text.replace(LOCK, "", 1))
    return directory, [*words[:-1], str(copy)]


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    compiler = shutil.which("clang++")
    if not compiler:
        print("no clang++ (package clang): not checked")
        return 77
    texts = dict(sources())
    database = compile_database.load(sys.argv[1])
    chosen = [
        name
        for name, text in texts.items()
        if name.endswith(".cc")
        and "Mutex" in text + texts.get(name[:-3] + ".h", "")
        and str(ROOT / name) in database
    ]
    findings = list(unguarded(texts))
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(
        os.cpu_count()
    ) as threads:
        broken = threads.submit(
            compile_one,
            compiler,
            *broken_copy(database, texts["core/cache/memory/memory_store.cc"], scratch),
        )
        jobs = [
            threads.submit(compile_one, compiler, *batch)
            for batch in in_batches(database, chosen, scratch)
        ]
        findings += [job.result() for job in jobs if job.result()]
        if "requires holding mutex 'mutex_'" not in broken.result():
            findings.append(f"a lock was taken away and clang found nothing: {broken.result()}")
    print(f"{len(chosen)} sources with a mutex, {len(findings)} findings")
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
