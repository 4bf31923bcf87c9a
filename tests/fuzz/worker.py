"""The process that runs cases: ``python worker.py KIND BASES SCRATCH``; JSON lines on stdin and stdout.

It makes the bases where there are none, imports and compiles once by using them as they are, and then forks: the child
runs one case after the other, and where one kills it, another is forked in no time.
"""

import faulthandler
import json
import os
import resource
import shutil
import sys
import time
import traceback
import warnings
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from labelspace import tagger  # noqa: E402 - found on the path above
from tests.fuzz.bases import make_bases  # noqa: E402
from tests.fuzz.mutators import mutate  # noqa: E402
from tests.fuzz.mutators.subject import Files  # noqa: E402
from tests.fuzz.targets import BY_KIND, outcome_of  # noqa: E402

MEMORY = 6 * 2**30  # bytes of address space, so that an absurd allocation fails at once
CASES_PER_CHILD = 1000  # then a fresh one is forked: what leaks is not added up
DONE, NEXT = 0, 3  # exit codes of a child


def say(**what: object) -> None:
    """One line to whoever asked."""
    os.write(1, json.dumps(what).encode() + b"\n")


def read_line() -> str:
    """One line of stdin, and no byte more: the rest is for another child."""
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode()


def read_files(folder: Path) -> Files:
    """All files of a folder and of those in it, by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def write_files(folder: Path, files: Files) -> None:
    """A new folder with these files."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)


def run_files(kind: str, base: str, files: Files, scratch: Path) -> tuple[str, str]:
    """The outcome of a folder with these files."""
    folder = scratch / f"case-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    write_files(folder / "given", files)
    try:
        return outcome_of(lambda: BY_KIND[kind](base, folder / "given", folder / "out"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_cases(kind: str, bases: dict[str, Files], scratch: Path) -> int:
    """Run cases until there are no more; the exit code."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    say(pid=os.getpid())
    for _ in range(CASES_PER_CHILD):
        line = read_line()
        if not line:
            return DONE
        case = json.loads(line)
        rng = Random(case["seed"])
        try:
            files, mutation = mutate(kind, bases[case["base"]], bases[case["donor"]], case["mutator"], rng)
        except Exception:
            say(failed=traceback.format_exc())
            raise
        say(mutation=mutation)
        started = time.perf_counter()
        outcome, detail = run_files(kind, case["base"], files, scratch)
        say(outcome=outcome, detail=detail, seconds=time.perf_counter() - started)
    return NEXT


def main(kind: str, bases: Path, scratch: Path) -> None:
    """Get ready, then keep a child running."""
    warnings.simplefilter("ignore")
    tagger.LOAD_PAUSE = 0.0  # nothing is being replaced here
    if not any(bases.iterdir()):
        make_bases(kind, bases)
    files = {path.name: read_files(path) for path in sorted(bases.iterdir())}
    for name, given in files.items():
        outcome, detail = run_files(kind, name, given, scratch)
        if outcome != "answered":
            say(failed=f"{name} must answer before it is mutated, but: {outcome} {detail}")
            return
        say(warm=name)
    faulthandler.enable()
    while True:
        child = os.fork()
        if child == 0:
            os._exit(run_cases(kind, files, scratch))
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == DONE:
            return
        if code != NEXT:
            say(died=code)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
