# SPDX-License-Identifier: Apache-2.0
"""A copy of the sources in which bugs are planted, for tests that have to find them."""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ["swift", "build", "-c", "release", "-Xswiftc", "-warnings-as-errors", "--product"]
MARK = ".planted-bugs"
"""A file in a copy, so that nothing else is taken for one."""


class Failed(Exception):
    """The run can't go on."""


@dataclass(frozen=True)
class Edit:
    """A piece of source text, and another one in its place."""

    file: str
    text: str
    """What stands in the file, exactly once."""
    planted: str
    """What stands there instead."""


@dataclass(frozen=True)
class Bug:
    """A mistake as a tired colleague would make it."""

    name: str
    breaks: str
    """What is wrong then, in one sentence."""
    file: str
    text: str
    """What stands in the file, exactly once."""
    planted: str
    """What stands there instead."""
    others: tuple[Edit, ...] = ()
    """What has to be changed besides."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All that is changed."""
        return Edit(self.file, self.text, self.planted), *self.others


AnyBug = TypeVar("AnyBug", bound=Bug)


def misplaced(bugs: Sequence[Bug]) -> list[str]:
    """What is wrong with a table: names that are not unique, texts that do not stand in their file exactly once."""
    uses = Counter(bug.name for bug in bugs)
    found = [f"{name}: {count} bugs have this name" for name, count in uses.items() if count > 1]
    for bug in bugs:
        for edit in bug.edits:
            path = ROOT / edit.file
            count = path.read_text(encoding="utf-8").count(edit.text) if path.is_file() else 0
            if count != 1:
                found.append(f"{bug.name}: its text stands {count} times in {edit.file}, not once")
            if edit.planted == edit.text:
                found.append(f"{bug.name}: it changes nothing in {edit.file}")
    return found


def copy_sources(directory: Path) -> None:
    """Copies what git tracks, as it stands. What is the same already keeps its time, so that it is not built again."""
    if any(directory.iterdir()) and not (directory / MARK).is_file():
        raise Failed(f"{directory} has files that this program has not put there")
    (directory / MARK).touch()
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True).stdout
    tracked = {MARK} | {name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()}
    for path in directory.rglob("*"):
        name = path.relative_to(directory).as_posix()
        if not name.startswith(".build/") and path.is_file() and name not in tracked:
            path.unlink()
    for name in sorted(tracked - {MARK}):
        target = directory / name
        if target.is_file() and target.read_bytes() == (ROOT / name).read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)


def build(directory: Path, product: str) -> tuple[Path, float]:
    """Builds a product of the copy. Returns the program, and how many seconds that took."""
    began = time.monotonic()
    result = subprocess.run(
        [*BUILD, product], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        raise Failed(f"the copy can't be built:\n{result.stdout[-4000:]}")
    return directory / ".build/release" / product, time.monotonic() - began


@contextmanager
def planted(bug: Bug, directory: Path) -> Iterator[None]:
    """Plants a bug in the copy, which is as before afterwards."""
    before = {edit.file: (directory / edit.file).read_text(encoding="utf-8") for edit in bug.edits}
    try:
        for edit in bug.edits:
            text = (directory / edit.file).read_text(encoding="utf-8")
            if text.count(edit.text) != 1:
                raise Failed(f"the text of {bug.name} does not stand in {edit.file} once")
            (directory / edit.file).write_text(text.replace(edit.text, edit.planted), encoding="utf-8")
        yield
    finally:
        for file, text in before.items():
            (directory / file).write_text(text, encoding="utf-8")


def first_seed(seed: int | None) -> int:
    """The given seed, or a new one."""
    return random.SystemRandom().randrange(1, 1 << 32) if seed is None else seed


def report(bugs: Sequence[Bug], missed: Sequence[str]) -> int:
    """Prints how many bugs were caught. Returns how many were not."""
    print(f"{len(bugs) - len(missed)} of {len(bugs)} bugs caught" + (f"; not {', '.join(missed)}" if missed else ""))
    return len(missed)


def command(
    table: Sequence[AnyBug], description: str, duration: tuple[str, float, str],
    catch_all: Callable[[list[AnyBug], Path, int | None, float], int],
) -> int:
    """The command line of a table, whose bugs `catch_all` catches in a directory with a seed and within a time.

    `duration`: name, default and meaning of the option for that time. Returns the exit status.
    """
    name, default, meaning = duration
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", action="append", metavar="NAME", help="this bug; may be given several times")
    parser.add_argument(f"--{name}", type=float, default=default, dest="time", help=f"{meaning} (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="the first seed (default: a new one for each bug)")
    parser.add_argument("--build", type=Path, metavar="DIRECTORY", help="of the copy (default: one that is removed)")
    parser.add_argument("--list", action="store_true", help="print the table, and plant nothing")
    parser.add_argument("--check", action="store_true", help="look only whether the table fits the sources")
    arguments = parser.parse_args()
    bugs = [bug for bug in table if arguments.only is None or bug.name in arguments.only]
    unknown = set(arguments.only or []) - {bug.name for bug in table}
    faults = misplaced(table) + [f"there is no bug {name}" for name in sorted(unknown)]
    if arguments.list:
        for bug in bugs:
            print(f"{bug.name}: {bug.breaks} ({bug.file})")
    if faults or arguments.list or arguments.check:
        print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
        return 1 if faults else 0
    directory = arguments.build or Path(tempfile.mkdtemp(prefix="rootgate-planted-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        return 1 if catch_all(bugs, directory, arguments.seed, arguments.time) else 0
    except (Failed, OSError, subprocess.CalledProcessError) as error:
        print(error)
        return 1
    finally:
        if arguments.build is None:
            shutil.rmtree(directory)
