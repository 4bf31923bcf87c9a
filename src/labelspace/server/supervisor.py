"""Start the workers of a server, replace a worker that dies, and end them all; they share its port and its readiness.

The supervisor reserves the address, and every worker listens on a socket of its own, between which the system spreads
the connections. With one socket that all accept from, a burst of connections would go to the worker that wakes up
first. Where a system cannot spread them (all but Linux), the workers inherit one socket.
"""

import logging
import os
import signal
import socket
import subprocess  # nosec B404
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import FrameType

from labelspace.errors import LabelspaceError
from labelspace.kernels.threads import BLAS_VARIABLES, THREADS_VARIABLE, n_threads
from labelspace.server.database import open_database
from labelspace.server.monitoring import share_between_processes
from labelspace.server.settings import SUPERVISOR, VARIABLE, Settings, read_api_keys

# Variables in the environment of a worker.
INHERITED = "LABELSPACE_SERVE_SOCKET"  # the number of an inherited socket
PLACE = "LABELSPACE_SERVE_WORKER"  # the number of the worker
READY_FOLDER = "LABELSPACE_SERVE_READY"  # where each worker that is ready leaves a file
REPLACEMENT = "LABELSPACE_SERVE_REPLACEMENT"  # 1 for a worker that replaces a dead one
SHARES_PORT = sys.platform == "linux"


def reserve(settings: Settings) -> socket.socket:
    """Take the address for this server; port 0 takes a free one. An address that another program uses is an error."""
    bound = socket.socket(_family(settings))
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((settings.host, settings.port))
        if SHARES_PORT:  # only after bind: two servers must not share a port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except (OSError, OverflowError) as error:
        bound.close()
        rule = f"the server must be able to listen on {settings.host}:{settings.port}"
        problem = f"cannot ({getattr(error, 'strerror', None) or error})"
        remedy = "give another --port or --host, or end what uses it"
        raise LabelspaceError(f"{rule}, but {problem}; {remedy}") from error
    bound.set_inheritable(not SHARES_PORT)
    return bound


def worker_socket(settings: Settings) -> socket.socket:
    """Return the socket of a worker, at the address that the supervisor has reserved."""
    if not SHARES_PORT:
        return socket.socket(fileno=int(os.environ[INHERITED]))
    bound = socket.socket(_family(settings))
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((settings.host, settings.port))
    return bound


def _family(settings: Settings) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in settings.host else socket.AF_INET


class Readiness:
    """Whether the workers of a server have been ready once: a client of a ready server may meet any of them.

    A worker without a supervisor has no others to wait for.
    """

    def __init__(self, n_workers: int) -> None:
        folder = os.environ.get(READY_FOLDER)
        self._folder = None if folder is None else Path(folder)
        self._n_workers = n_workers
        self._all_ready = self._folder is None

    def mark(self) -> None:
        """Record that this worker is ready."""
        if self._folder is not None:
            (self._folder / f"ready-{int(os.environ[PLACE])}").touch()

    @property
    def of_all(self) -> bool:
        """Return whether every worker was ready once; a replacement does not listen before it is ready."""
        if not self._all_ready and self._folder is not None:
            self._all_ready = sum(1 for _ in self._folder.glob("ready-*")) >= self._n_workers
        return self._all_ready


logger = logging.getLogger("labelspace.server")
LOOK_SECONDS = 0.2  # between two looks at the workers; how late a dead worker is replaced
STOP_SECONDS = 15.0  # within which workers must end
QUICK_SECONDS = 5.0  # a worker that dies within this time after its start died quickly
MAX_QUICK_DEATHS = 5  # in a row; after that a further start would not succeed either


def check(settings: Settings) -> None:
    """Raise an error for keys or a database that no worker could use."""
    if settings.api_key_file is not None:
        read_api_keys(settings.api_key_file)
    with closing(open_database(settings.database_url)) as database:
        database.ping()


def serve(settings: Settings, reserved: socket.socket) -> None:
    """Run the workers until the server is stopped."""
    settings = replace(settings, port=reserved.getsockname()[1], job_threads=n_threads())
    for variable in (THREADS_VARIABLE, *BLAS_VARIABLES):
        os.environ.setdefault(variable, "1")  # a request is too short for threads: they double its time
    with share_between_processes() as folder:
        os.environ[READY_FOLDER] = folder
        Supervisor(settings, reserved).run()


class Supervisor:
    """The workers, as processes."""

    def __init__(self, settings: Settings, reserved: socket.socket) -> None:
        self._settings, self._reserved = settings, reserved
        self._workers: dict[int, subprocess.Popen[bytes]] = {}  # by place
        self._started: dict[int, float] = {}
        self._quick_deaths = 0
        self._stop = threading.Event()

    def run(self) -> None:
        """Keep the workers alive until SIGTERM or SIGINT."""
        handlers = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            for place in range(self._settings.workers):
                self._start(place)
            while not self._stop.wait(LOOK_SECONDS):
                self._replace_dead()
        finally:
            self._end_all()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()

    def _start(self, place: int, replacement: bool = False) -> None:
        environment = {**os.environ, VARIABLE: self._settings.to_json(), SUPERVISOR: str(os.getpid())}
        environment |= {PLACE: str(place), REPLACEMENT: str(int(replacement))}
        inherited = [] if SHARES_PORT else [self._reserved.fileno()]
        if inherited:
            environment[INHERITED] = str(inherited[0])
        command = [sys.executable, "-m", "labelspace.server.worker"]
        self._workers[place] = subprocess.Popen(command, env=environment, pass_fds=inherited)  # nosec B603
        self._started[place] = time.monotonic()

    def _replace_dead(self) -> None:
        for place, worker in self._workers.items():
            code = worker.poll()
            if code is None:
                continue
            is_quick = time.monotonic() - self._started[place] < QUICK_SECONDS
            self._quick_deaths = self._quick_deaths + 1 if is_quick else 0
            if self._quick_deaths >= MAX_QUICK_DEATHS:
                problem = f"{MAX_QUICK_DEATHS} in a row ended at once, the last with {code}"
                raise LabelspaceError(f"workers must stay alive, but {problem}; see what they printed above")
            logger.warning("worker %d ended with code %d, and is replaced", worker.pid, code)
            self._start(place, replacement=True)

    def _end_all(self) -> None:
        """End the workers; requests in progress have some seconds to be answered."""
        deadline = time.monotonic() + STOP_SECONDS
        for worker in self._workers.values():
            worker.terminate()
        for worker in self._workers.values():
            try:
                worker.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
