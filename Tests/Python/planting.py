# SPDX-License-Identifier: Apache-2.0
"""A copy of the sources in which bugs are planted, for tests that have to find them."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
