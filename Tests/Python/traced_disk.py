# SPDX-License-Identifier: Apache-2.0
"""Files below a folder as a traced process has left them, and what a power cut may leave of them."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

from kill_under_load import check

SECTOR = 512
CALLS = (
    "openat,close,dup,dup2,dup3,fcntl,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range,rename,"
    "renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,ftruncate,truncate,fallocate,copy_file_range,"
    "sendfile,splice,symlink,symlinkat,lseek"
)
REFUSED = (
    "copy_file_range", "dup", "dup2", "dup3", "pwritev2", "sendfile", "splice", "symlink", "symlinkat",
    "sync_file_range", "truncate"
)
"""Calls that are not followed: none of them concerns a file below the folder."""
QUIET = ("openat", "close", "dup", "dup2", "dup3", "fcntl", "lseek")
"""Calls that leave a disk as it is, except for files that they make."""
IGNORED = ("lock.mdb",)
"""LMDB makes it anew."""


# The disk.


@dataclass
class Piece:
    """Bytes that were written at an offset; `None`: the file got that size."""

    offset: int
    data: bytes | None
    is_durable: bool


class Inode:
    """A file: what is durable of it, and what was written since."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.pieces: list[Piece] = []
        self.settled = 0
        """How many pieces are in `data`."""
        self.size = len(data)

    @property
    def written(self) -> int:
        """How many pieces were written so far."""
        return self.settled + len(self.pieces)

    def write(self, offset: int, data: bytes, is_durable: bool) -> None:
        """Writes a piece."""
        self.pieces.append(Piece(offset, data, is_durable))
        self.size = max(self.size, offset + len(data))

    def resize(self, size: int) -> None:
        """Sets the size."""
        self.pieces.append(Piece(size, None, False))
        self.size = size

    def settle(self, written: int) -> None:
        """Makes durable what was written when there were so many pieces."""
        while self.pieces and self.settled < written:
            put(self.data, self.pieces[0].offset, self.pieces.pop(0).data)
            self.settled += 1

    def contents(self, generator: random.Random) -> bytes:
        """What a power cut may leave."""
        data = bytearray(self.data)
        share = generator.choice([0.0, 1.0, generator.random()])
        torn = generator.random() < 0.5
        for piece in self.pieces:
            if piece.data is None or piece.is_durable or not torn:
                if piece.is_durable or generator.random() < share:
                    put(data, piece.offset, piece.data)
                continue
            start = 0
            while start < len(piece.data):
                end = min(len(piece.data), start + SECTOR - (piece.offset + start) % SECTOR)
                if generator.random() < share:
                    put(data, piece.offset + start, piece.data[start:end])
                start = end
        # The size may be on the disk before the bytes are.
        if generator.random() < 0.25 and len(data) < self.size:
            data += bytes(self.size - len(data))
        return bytes(data)


def put(data: bytearray, offset: int, piece: bytes | None) -> None:
    """Writes a piece, or sets the size."""
    if piece is None:
        del data[offset:]
        data.extend(bytes(max(0, offset - len(data))))
        return
    data.extend(bytes(max(0, offset - len(data))))
    data[offset : offset + len(piece)] = piece


class Folder:
    """A folder: what its names are for now, and what of them is durable."""

    def __init__(self) -> None:
        self.names: dict[str, Inode | Folder] = {}
        self.durable: Entries = {}


Entries = dict[str, tuple[int, "Inode | Folder | None"]]
"""By a name: what it is for, and the number of the change that has made it so."""


@dataclass
class NameChange:
    """Names that one call changes, at once: `None` for one that is gone."""

    number: int
    edits: list[tuple[Folder, str, Inode | Folder | None]]

    def apply(self, entries: dict[int, Entries]) -> None:
        """Applies it to the names of folders, unless a later change was applied before."""
        for folder, name, inode in self.edits:
            known = entries.setdefault(id(folder), dict(folder.durable))
            if known.get(name, (0, None))[0] < self.number:
                known[name] = (self.number, inode)


class Disk:
    """The files below a folder: what has their names now, and what is durable."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = self._read(root)
        self.changes: list[NameChange] = []
        """Those that are not durable, in their order."""
        self.changed = 0

    def _read(self, place: Path) -> Folder:
        folder = Folder()
        for path in sorted(place.iterdir()):
            if not path.name.endswith(IGNORED):
                inode = self._read(path) if path.is_dir() else Inode(path.read_bytes())
                folder.names[path.name] = inode
                folder.durable[path.name] = (0, inode)
        return folder

    def has(self, path: str) -> bool:
        """Whether a path is below the folder, and not ignored."""
        return Path(path).is_relative_to(self.root) and not path.endswith(IGNORED)

    def find(self, path: str) -> Inode | Folder | None:
        """What has a path now."""
        found: Inode | Folder | None = self.folder
        for name in Path(path).relative_to(self.root).parts:
            found = found.names.get(name) if isinstance(found, Folder) else None
        return found

    def change(self, *edits: tuple[str, Inode | Folder | None]) -> None:
        """A change of names that is not durable yet."""
        self.changed += 1
        change = NameChange(self.changed, [])
        for path, inode in edits:
            folder, name = self.find(str(Path(path).parent)), Path(path).name
            check(isinstance(folder, Folder), f"the folder of {path} is not known")
            assert isinstance(folder, Folder)
            if inode is None:
                folder.names.pop(name, None)
            else:
                folder.names[name] = inode
            change.edits.append((folder, name, inode))
        self.changes.append(change)

    def sync_folder(self, folder: Folder, changed: int) -> None:
        """Makes the names in a folder durable, as they were after so many changes."""
        rest = []
        for change in self.changes:
            if change.number > changed or all(edit[0] is not folder for edit in change.edits):
                rest.append(change)
                continue
            entries: dict[int, Entries] = {}
            change.apply(entries)
            for edited, _, _ in change.edits:
                edited.durable = entries[id(edited)]
        self.changes = rest

    def image(self, target: Path, generator: random.Random) -> bool:
        """Writes what a power cut may leave. Returns whether anything was not durable."""
        changes = self.changes
        if generator.random() < 0.5:
            changes = changes[: generator.randint(0, len(changes))]
        else:
            share = generator.choice([0.0, 1.0, generator.random()])
            changes = [change for change in changes if generator.random() < share]
        entries: dict[int, Entries] = {}
        for change in changes:
            change.apply(entries)
        places: dict[int, Path] = {}
        is_open = self._write(self.folder, target, entries, places, generator)
        return bool(self.changes) or is_open

    def _write(
        self, folder: Folder, place: Path, entries: dict[int, Entries], places: dict[int, Path],
        generator: random.Random
    ) -> bool:
        place.mkdir(exist_ok=True, mode=0o700)
        is_open = False
        for name, (_, inode) in sorted(entries.get(id(folder), folder.durable).items()):
            path = place / name
            if isinstance(inode, Folder):
                is_open = self._write(inode, path, entries, places, generator) or is_open
            elif inode is None:
                continue
            elif id(inode) in places:
                path.hardlink_to(places[id(inode)])
            else:
                is_open = is_open or bool(inode.pieces)
                path.write_bytes(inode.contents(generator))
                path.chmod(0o600)
                places[id(inode)] = path
        return is_open


# Traces.


@dataclass
class OpenFile:
    """What a descriptor is for."""

    inode: Inode
    is_synchronous: bool
    appends: bool
    position: int = 0


class Player:
    """Does to a disk what the calls of a process did."""

    def __init__(self, disk: Disk, *, ignores_syncs: bool) -> None:
        self.disk = disk
        self.ignores_syncs = ignores_syncs
        """Whether the disk says that it is done when it is not."""
        self.files: dict[int, OpenFile] = {}
        self.syncs: dict[str, tuple[int, int]] = {}
        """By the thread: what was there when a synchronization began."""

    def begin(self, thread: str, name: str, arguments: str) -> None:
        """A call begins. A synchronization makes durable what was there then."""
        if name in ("fsync", "fdatasync"):
            file = self.files.get(descriptor(arguments))
            self.syncs[thread] = (file.inode.written if file else 0, self.disk.changed)
        elif name == "close":
            # Another thread may get the number before the call has ended.
            self.files.pop(descriptor(arguments), None)

    def end(self, thread: str, name: str, arguments: str, result: int) -> None:
        """A call has ended without an error."""
        if method := getattr(self, "do_" + name, None):
            method(arguments, result)
        elif name in ("fsync", "fdatasync"):
            written, changed = self.syncs.pop(thread)
            if self.ignores_syncs:
                return
            if file := self.files.get(descriptor(arguments)):
                file.inode.settle(written)
            elif self.disk.has(path := path_of(arguments)) and isinstance(folder := self.disk.find(path), Folder):
                self.disk.sync_folder(folder, changed)
        elif name in REFUSED:
            known = any(int(number) in self.files for number in re.findall(r"(?:^|, )(\d+)<", arguments))
            check(not known, f"the call {name} of a file is not followed")

    def do_openat(self, arguments: str, result: int) -> None:
        """Opens a file, and makes it when it is missing."""
        [path] = paths(arguments)
        flags = arguments.split(", ")[2].split("|")
        self.files.pop(result, None)
        if not self.disk.has(path) or "O_DIRECTORY" in flags:
            return
        inode = self.disk.find(path)
        if inode is None:
            check("O_CREAT" in flags, f"{path} is opened, and nothing has made it")
            inode = Inode()
            self.disk.change((path, inode))
        if isinstance(inode, Folder):
            return
        if "O_TRUNC" in flags and inode.size:
            inode.resize(0)
        is_synchronous = ("O_DSYNC" in flags or "O_SYNC" in flags) and not self.ignores_syncs
        self.files[result] = OpenFile(inode, is_synchronous, "O_APPEND" in flags)

    def do_fcntl(self, arguments: str, result: int) -> None:
        """A second descriptor of a file."""
        if "F_DUPFD" in arguments and (file := self.files.get(descriptor(arguments))):
            self.files[result] = file

    def do_lseek(self, arguments: str, result: int) -> None:
        """Moves the place of the next write."""
        if file := self.files.get(descriptor(arguments)):
            file.position = result

    def do_write(self, arguments: str, result: int) -> None:
        """Writes at the file's place."""
        if file := self.files.get(descriptor(arguments)):
            start = file.inode.size if file.appends else file.position
            self.put(file, start, arguments, result)
            file.position = start + result

    do_writev = do_write

    def do_pwrite64(self, arguments: str, result: int) -> None:
        """Writes at an offset."""
        if file := self.files.get(descriptor(arguments)):
            self.put(file, int(arguments.rpartition(", ")[2]), arguments, result)

    do_pwritev = do_pwrite64

    def put(self, file: OpenFile, offset: int, arguments: str, result: int) -> None:
        """Writes the texts of a call."""
        data = b"".join(strings(arguments.partition(", ")[2]))
        check(len(data) >= result, "the trace lacks what was written")
        file.inode.write(offset, data[:result], file.is_synchronous)

    def do_ftruncate(self, arguments: str, result: int) -> None:
        """Sets the size of an open file."""
        if file := self.files.get(descriptor(arguments)):
            file.inode.resize(int(arguments.rpartition(", ")[2]))

    def do_fallocate(self, arguments: str, result: int) -> None:
        """Makes a file longer, unless it keeps the size."""
        if file := self.files.get(descriptor(arguments)):
            mode, offset, count = arguments.split(", ")[1:]
            check(mode == "0", "only a plain fallocate is followed")
            file.inode.resize(max(file.inode.size, int(offset) + int(count)))

    def do_rename(self, arguments: str, result: int) -> None:
        """Gives something another name."""
        source, path = paths(arguments)
        if self.disk.has(source) and self.disk.has(path):
            self.disk.change((source, None), (path, self.disk.find(source)))

    do_renameat = do_renameat2 = do_rename

    def do_link(self, arguments: str, result: int) -> None:
        """Gives a file a second name."""
        source, path = paths(arguments)
        if self.disk.has(path):
            self.disk.change((path, self.disk.find(source)))

    do_linkat = do_link

    def do_unlink(self, arguments: str, result: int) -> None:
        """Removes a name."""
        [path] = paths(arguments)
        if self.disk.has(path):
            self.disk.change((path, None))

    do_unlinkat = do_rmdir = do_unlink

    def do_mkdir(self, arguments: str, result: int) -> None:
        """Makes a folder."""
        [path] = paths(arguments)
        if self.disk.has(path):
            self.disk.change((path, Folder()))

    do_mkdirat = do_mkdir


STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
ANGLE = re.compile(r"^(?:\d+|AT_FDCWD)<([^>]*)>")


def strings(text: str) -> list[bytes]:
    """All texts in the arguments of a call."""
    found = []
    for match in STRING.finditer(text):
        check(match[2] is None, "a text was cut in the trace")
        found.append(bytes.fromhex(match[1].replace("\\x", "")))
    return found


def plain(text: str) -> str:
    """A path of the trace."""
    return bytes.fromhex(text.replace("\\x", "")).decode() if text.startswith("\\x") else text


def descriptor(arguments: str) -> int:
    """The descriptor that is the first argument."""
    return int(re.match(r"\d+", arguments)[0])


def path_of(arguments: str) -> str:
    """The path of the descriptor that is the first argument."""
    match = ANGLE.match(arguments)
    return plain(match[1]) if match else ""


def paths(arguments: str) -> list[str]:
    """The paths in the arguments of a call, whole: after a folder's descriptor they begin there."""
    found = []
    folder = ""
    for part in arguments.split(", "):
        if match := ANGLE.match(part):
            folder = plain(match[1])
        elif STRING.fullmatch(part):
            [text] = strings(part)
            path = Path(folder or "/") / text.decode()
            found.append(str(path))
    return found


@dataclass
class Step:
    """A call that begins or ends."""

    time: float
    thread: str
    name: str
    arguments: str
    result: int | None
    """`None`: it begins."""


LINE = re.compile(r"^(\d+) +(\d+\.\d+) (.*)$")
CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)")
BEGUN = re.compile(r"^(\w+)\((.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$")


def steps_of(trace: Path) -> list[Step]:
    """The calls of one process and its threads that had no error."""
    steps: list[Step] = []
    begun: dict[str, str] = {}
    for line in trace.read_text(errors="replace").splitlines():
        if not (match := LINE.match(line)):
            continue
        thread, moment, text = match[1], float(match[2]), match[3]
        if start := BEGUN.match(text):
            begun[thread] = f"{start[1]}({start[2]}"
            steps.append(Step(moment, thread, start[1], start[2], None))
            continue
        if resumed := RESUMED.match(text):
            text = begun.pop(thread) + resumed[2]
        elif call := CALL.match(text):
            steps.append(Step(moment, thread, call[1], call[2], None))
        if (call := CALL.match(text)) and call[3] != "?" and (result := int(call[3], 0)) >= 0:
            steps.append(Step(moment, thread, call[1], call[2], result))
    return steps


def concerns(step: Step, folder: Path) -> bool:
    """Whether a call may change something below a folder."""
    mark = "".join(f"\\x{byte:02x}" for byte in str(folder).encode())
    is_below = mark in step.arguments or str(folder) in step.arguments
    return is_below and (step.name not in QUIET or "O_CREAT" in step.arguments)
