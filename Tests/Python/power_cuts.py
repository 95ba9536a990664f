# SPDX-License-Identifier: Apache-2.0
"""Cuts the power while Rootgate makes and replaces files, and checks what is left.

    python3 power_cuts.py PROGRAM [--images 400] [--seed N] [--only SCENARIO] [--ignore-syncs]

PROGRAM is the path of the program `rootgate`. In each scenario the program is traced, with every call that changes
files. From the trace images of the disk are made, as they may be after a power cut at any moment:

- what was written to a file and not synchronized is there, or not, or in part, in pieces of 512 bytes;
- a name that was made, removed or changed and whose folder was not synchronized is there or not: in half of the images
  names reach the disk in their order, in the others in any.

The scenarios:

- start: the first start of a service in a folder that does not exist, with changes. Every change that was acknowledged
  is there, and the secret that issued a challenge;
- restore: a restore to a new folder. There is all of it or nothing that a service would take; a second one succeeds;
- repair: a repair. Before and after, the storage is never served with less than everything;
- rotate: a rotation of the secret. The file has the old one or the new one;
- backup: a backup to a file. There is a whole one, or none that passes for one.

What a command did is there in every image after its end. Ends with 1 when something is wrong. With `--ignore-syncs` the
disk says that it is done when it is not: then every scenario must have something wrong, and the end is 3.

Needs `strace`, and the packages `cryptography` and `rootgate` (PYTHONPATH=Sources/rootgate-python).
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from counts import positive_number
from kill_under_load import CheckFailed, Service, check, list_people, list_roots
from rootgate.connection import Connection
from rootgate.protocol import RootgateError
from rootgate.requests import issue_challenges
from rootgate.values import sha256
from traced_disk import CALLS, Disk, Player, Step, concerns, steps_of

LOST = 3
"""How a run ends whose disk was not to be relied on, when every scenario has shown that."""

# Programs.


class Tracer:
    """Runs the program under a trace."""

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program = program
        self.scratch = scratch
        self.traces: list[Path] = []

    def prepare(self) -> Path:
        """A program whose run is traced, to be run once."""
        number = len(self.traces)
        trace, script = self.scratch / f"trace-{number}", self.scratch / f"traced-{number}"
        self.traces.append(trace)
        strace = f"strace -D -f -ttt -y -xx -s 100000000 -e signal=none -e trace={CALLS} -o '{trace}'"
        script.write_text(f"#!/bin/sh\nexec {strace} -- '{self.program}' \"$@\"\n")
        script.chmod(0o700)
        return script

    def steps(self) -> list[list[Step]]:
        """What all the runs did, one after the other."""
        for trace in self.traces:
            # The tracer is a process of its own, and writes the end after the program has ended.
            for _ in range(1000):
                if re.search(r"\+\+\+ (exited|killed)[^\n]*\n\Z", trace.read_text(errors="replace")):
                    break
                time.sleep(0.01)
            else:
                raise CheckFailed(f"the trace {trace.name} has no end")
        return [steps_of(trace) for trace in self.traces]


def run(program: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    words = [str(program), *(str(argument) for argument in arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def contents(path: Path) -> bytes:
    """What a file holds; nothing when it is missing."""
    return path.read_bytes() if path.exists() else b""


# What a service has.

Contents = dict[str, list[bytes]]


def contents_of(client: Connection) -> Contents:
    """The root hashes of all collaborations, and the participants of the document."""
    listed, more = client.list_collaborations(1000).result()
    check(not more, "there are more collaborations than were made")
    found = {}
    for name, state in listed:
        roots = list_roots(client, name)
        check(len(roots) == state.roots, f"{name} counts {state.roots} root hashes and has {len(roots)}")
        found[name] = roots
        if not name.startswith("set-"):
            check(list_people(client, name) == roots, f"{name}: the participants are not those of the root hashes")
    return found


def serve(program: Path, folder: Path) -> Contents:
    """What a service of a folder has that is started now."""
    with Service(program, folder).listen() as service, service.connect() as client:
        return contents_of(client)


class History:
    """What a service had to have, and when."""

    def __init__(self) -> None:
        self.states: list[Contents] = [{}]
        self.sent = [0.0]
        self.acknowledged = [0.0]

    def check(self, found: Contents, moment: float) -> None:
        """Compares what a service has with what was acknowledged and sent before a moment."""
        states = [
            state
            for number, (state, sent) in enumerate(zip(self.states, self.sent))
            if sent <= moment and (number + 1 == len(self.states) or self.acknowledged[number + 1] > moment)
        ]
        sizes = {name: len(roots) for name, roots in found.items()}
        check(found in states, f"there is {sizes}, and neither what was acknowledged nor what was sent")

    def use(self, client: Connection, changes: int, generator: random.Random) -> None:
        """Changes what the service has."""
        state: Contents = dict(self.states[-1])
        for number in range(changes):
            sent = time.time()
            name = f"set-{generator.randrange(4)}"
            roots = [sha256(generator.randbytes(8)) for _ in range(generator.choice([1, 20, 2000]))]
            if number == changes // 2:
                self.make_document(client, state, roots[:20])
            elif name not in state:
                client.create_collaboration(name).result()
                state[name] = []
            elif generator.random() < 0.7:
                client.add_roots(name, roots).result()
                state[name] = sorted(state[name] + roots)
            else:
                gone = generator.sample(state[name], len(state[name]) // 2)
                client.remove_roots(name, gone).result()
                state[name] = sorted(set(state[name]) - set(gone))
            self.note(sent, state)

    def make_document(self, client: Connection, state: Contents, people: list[bytes]) -> None:
        """Starts a document with participants, or adds them: two changes."""
        sent = time.time()
        metadata: dict[str, Any] = {"localIdentifier": "document", "title": "Document"}
        metadata["defaultShareOptions"] = {"groups": []}
        made = client.collaborate("prepare", {"owner": "olga", "metadata": metadata, "ownerName": "Olga"}).result()
        name = made["collaborationIdentifier"]
        state.setdefault(name, [])
        self.note(sent, state)
        added = [{"identity": digest.hex()} for digest in people]
        client.collaborate("updateParticipants", {"collaboration": name, "added": added, "removed": []}).result()
        state[name] = sorted(state[name] + people)

    def note(self, sent: float, state: Contents) -> None:
        """A change was acknowledged."""
        self.states.append(dict(state))
        self.sent.append(sent)
        self.acknowledged.append(time.time())


# The scenarios.


class Scenario:
    """Commands that are traced, and what has to hold of an image."""

    def __init__(self, program: Path, folder: Path, generator: random.Random) -> None:
        self.program, self.folder, self.generator = program, folder, generator
        self.history = History()
        self.ended = 0.0
        """When the command ended that the scenario is about."""

    def prepare(self) -> None:
        """Makes the folder."""

    def record(self, tracer: Tracer) -> None:
        """Runs the commands."""

    def judge(self, image: Path, moment: float) -> str:
        """Raises unless the image is what may be left. Returns what is there."""
        raise NotImplementedError

    def use(self, changes: int) -> None:
        """Makes a data directory."""
        self.run_service(self.program, changes)

    def run_service(self, program: Path, changes: int) -> None:
        """Starts a service, uses it and ends it in order."""
        with Service(program, self.folder).listen() as service:
            with service.connect() as client:
                self.begun(client)
                self.history.use(client, changes, self.generator)
            service.process.terminate()
            service.process.wait(60)

    def begun(self, client: Connection) -> None:
        """A service has begun."""

    def traced(self, tracer: Tracer, *arguments: Any) -> None:
        """Runs the command that the scenario is about."""
        done = run(tracer.prepare(), *arguments)
        check(done.returncode == 0, f"{arguments[0]}: {done.stdout}{done.stderr}")
        self.ended = time.time()


class Start(Scenario):
    """The first start of a service, changes, its end, and a second start."""

    challenged = 0.0
    secret = b""

    def record(self, tracer: Tracer) -> None:
        for _ in range(2):
            self.run_service(tracer.prepare(), 14)

    def begun(self, client: Connection) -> None:
        if not self.secret:
            client.ask(issue_challenges(1)).result()
            self.challenged = time.time()
            self.secret = (self.folder / "data" / "secret").read_bytes()

    def judge(self, image: Path, moment: float) -> str:
        self.history.check(serve(self.program, image), moment)
        is_there = contents(image / "data" / "secret") == self.secret
        check(is_there or moment < self.challenged, "the secret that issued a challenge is not there")
        errors = (image / "errors").read_text()
        check("clock" not in errors or moment < self.challenged, f"the clock's file is damaged: {errors}")
        return "started"


class Restore(Scenario):
    """A restore to a new folder."""

    def prepare(self) -> None:
        self.use(20)
        made = run(self.program, "backup", "--data", self.folder / "data", "--output", self.folder / "backup")
        check(made.returncode == 0, made.stderr)
        shutil.rmtree(self.folder / "data")

    def record(self, tracer: Tracer) -> None:
        self.traced(tracer, "restore", self.folder / "backup", "--data", self.folder / "data")

    def judge(self, image: Path, moment: float) -> str:
        data = image / "data"
        if not data.exists() or not any(data.iterdir()):
            check(moment < self.ended, "nothing is there after the end")
            found = "nothing"
        else:
            try:
                self.history.check(serve(self.program, image), moment)
                return "everything"
            except CheckFailed as failure:
                refused = "a restore to" in str(failure) and "did not start" in str(failure)
                check(refused and moment < self.ended, str(failure))
            shutil.rmtree(data)
            found = "an unfinished folder that is refused"
        again = run(self.program, "restore", image / "backup", "--data", data)
        check(again.returncode == 0, f"a second restore: {again.stderr}")
        self.history.check(serve(self.program, image), moment)
        return found


class Repair(Scenario):
    """A repair of a storage with one flipped bit."""

    def prepare(self) -> None:
        self.use(20)
        data = self.folder / "data" / "data.mdb"
        whole = data.read_bytes()
        roots = [root for name, roots in self.history.states[-1].items() if name.startswith("set-") for root in roots]
        for root in self.generator.sample(roots, min(len(roots), 200)):
            place = whole.find(root[:24])
            while place >= 0:
                data.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
                if run(self.program, "fsck", self.folder / "data").returncode == 1 and self.is_repairable():
                    return
                place = whole.find(root[:24], place + 1)
        raise CheckFailed("no damage was found that can be repaired")

    def is_repairable(self) -> bool:
        """Whether a copy can be repaired."""
        copy = self.folder.parent / "copy"
        shutil.copytree(self.folder / "data", copy)
        done = run(self.program, "fsck", "--repair", copy)
        shutil.rmtree(copy)
        return done.returncode == 0

    def record(self, tracer: Tracer) -> None:
        self.traced(tracer, "fsck", "--repair", self.folder / "data")

    def judge(self, image: Path, moment: float) -> str:
        looked = run(self.program, "fsck", image / "data")
        check(looked.returncode in (0, 1), f"fsck: {looked.stdout}{looked.stderr}")
        if looked.returncode == 1:
            check(moment < self.ended, f"it is damaged after the end: {looked.stdout}{looked.stderr}")
            again = run(self.program, "fsck", "--repair", image / "data")
            check(again.returncode == 0, f"a second repair: {again.stdout}{again.stderr}")
        self.history.check(serve(self.program, image), moment)
        return "damaged" if looked.returncode else "repaired"


class Rotate(Scenario):
    """A rotation of the secret of a stopped service."""

    before = after = b""

    def prepare(self) -> None:
        self.use(2)
        self.before = (self.folder / "data" / "secret").read_bytes()

    def record(self, tracer: Tracer) -> None:
        self.traced(tracer, "keys", "rotate-secret", "--data", self.folder / "data")
        self.after = (self.folder / "data" / "secret").read_bytes()

    def judge(self, image: Path, moment: float) -> str:
        secret = contents(image / "data" / "secret")
        allowed = (self.after,) if moment >= self.ended else (self.before, self.after)
        check(secret in allowed, "the secret is neither the old one nor the new one")
        self.history.check(serve(self.program, image), moment)
        return "old" if secret == self.before else "new"


class Backup(Scenario):
    """A backup to a file."""

    def prepare(self) -> None:
        self.use(20)

    def record(self, tracer: Tracer) -> None:
        self.traced(tracer, "backup", "--data", self.folder / "data", "--output", self.folder / "backup")

    def judge(self, image: Path, moment: float) -> str:
        backup = image / "backup"
        looked = run(self.program, "restore", "--check", backup)
        if looked.returncode != 0:
            check(moment < self.ended, f"no whole backup after the end: {looked.stderr}")
            return "none that passes for one" if backup.exists() else "none"
        shutil.rmtree(image / "data")
        restored = run(self.program, "restore", backup, "--data", image / "data")
        check(restored.returncode == 0, restored.stderr)
        self.history.check(serve(self.program, image), moment)
        return "whole"


SCENARIOS = {"start": Start, "restore": Restore, "repair": Repair, "rotate": Rotate, "backup": Backup}


def run_scenario(name: str, program: Path, images: int, seed: int, *, ignores_syncs: bool) -> int:
    """Makes and judges images; returns how many were wrong."""
    generator = random.Random(f"{seed}/{name}")
    with tempfile.TemporaryDirectory() as scratch:
        folder, image = Path(scratch).resolve() / "disk", Path(scratch).resolve() / "image"
        folder.mkdir()
        scenario = SCENARIOS[name](program, folder, generator)
        scenario.prepare()
        disk = Disk(folder)
        tracer = Tracer(program, Path(scratch))
        scenario.record(tracer)
        runs = tracer.steps()
        places = [
            (number, index)
            for number, steps in enumerate(runs)
            for index, step in enumerate(steps)
            if concerns(step, folder)
        ]
        end = (len(runs) - 1, len(runs[-1]))
        # The last calls and the end are where names are changed and promises are made.
        cuts = Counter(generator.choice(generator.choice([places, places[-20:], [end]])) for _ in range(images))
        wrong, undurable = 0, 0
        found: Counter[str] = Counter()
        for number, steps in enumerate(runs):
            player = Player(disk, ignores_syncs=ignores_syncs)
            for index in range(len(steps) + 1):
                for _ in range(cuts[(number, index)]):
                    image.mkdir()
                    undurable += disk.image(image, generator)
                    moment = time.time() if (number, index) == end else steps[index].time
                    try:
                        found[scenario.judge(image, moment)] += 1
                    except (CheckFailed, OSError, RootgateError, subprocess.TimeoutExpired) as failure:
                        if ignores_syncs and isinstance(failure, CheckFailed):
                            wrong += 1
                            continue
                        wrong += not ignores_syncs
                        call = steps[index].name if index < len(steps) else "its end"
                        print(f"seed {seed}, {name}, cut before {call} of run {number}: {failure}", flush=True)
                    finally:
                        shutil.rmtree(image)
                if index < len(steps):
                    step = steps[index]
                    if step.result is None:
                        player.begin(step.thread, step.name, step.arguments)
                    else:
                        player.end(step.thread, step.name, step.arguments, step.result)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.items()))
    print(
        f"{name}: {images} images at {len(places)} calls, {undurable} with something that was not durable: "
        f"{kinds or 'none right'}; {wrong} wrong", flush=True)
    return wrong


def main() -> int:
    """Runs the scenarios."""
    parser = argparse.ArgumentParser(description="cuts the power while Rootgate makes and replaces files")
    parser.add_argument("program", type=Path)
    parser.add_argument("--images", type=positive_number, default=400)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--only", choices=list(SCENARIOS))
    parser.add_argument("--ignore-syncs", action="store_true")
    options = parser.parse_args()
    names = [options.only] if options.only else list(SCENARIOS)
    print(f"seed {options.seed}", flush=True)
    program, lies = options.program.resolve(), options.ignore_syncs
    wrong = [run_scenario(name, program, options.images, options.seed, ignores_syncs=lies) for name in names]
    if lies:
        return LOST if all(wrong) else 1
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
