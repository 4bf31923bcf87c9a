"""Start the workers of a server, replace a worker that dies, and end them all."""

import logging
import os
import signal
import subprocess  # nosec B404
import sys
import threading
import time
from dataclasses import replace
from socket import socket
from types import FrameType

from labelspace.errors import LabelspaceError
from labelspace.kernels.threads import BLAS_VARIABLES, THREADS_VARIABLE, n_threads
from labelspace.server.database import open_database
from labelspace.server.monitoring import share_between_processes
from labelspace.server.processes import INHERITED, PLACE, READY_FOLDER, REPLACEMENT, SHARES_PORT
from labelspace.server.settings import SUPERVISOR, VARIABLE, Settings, read_api_keys

logger = logging.getLogger("labelspace.server")
LOOK_SECONDS = 0.2  # between two looks at the workers; how late a dead worker is replaced
STOP_SECONDS = 15.0  # within which workers must end
QUICK_SECONDS = 5.0  # a worker that dies within this time after its start died quickly
MAX_QUICK_DEATHS = 5  # in a row; after that a further start would not succeed either


def check(settings: Settings) -> None:
    """Raise an error for keys or a database that no worker could use."""
    if settings.api_key_file is not None:
        read_api_keys(settings.api_key_file)
    database = open_database(settings.database_url)
    try:
        database.ping()
    finally:
        database.close()


def serve(settings: Settings, reserved: socket) -> None:
    """Run the workers until the server is stopped."""
    settings = replace(settings, port=reserved.getsockname()[1], job_threads=n_threads())
    for variable in (THREADS_VARIABLE, *BLAS_VARIABLES):
        os.environ.setdefault(variable, "1")  # a request is too short for threads: they double its time
    with share_between_processes() as folder:
        os.environ[READY_FOLDER] = folder
        Supervisor(settings, reserved).run()


class Supervisor:
    """The workers, as processes."""

    def __init__(self, settings: Settings, reserved: socket) -> None:
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
                raise LabelspaceError(
                    f"workers must stay alive, but {MAX_QUICK_DEATHS} in a row ended at once, the last with {code};"
                    " see what they printed above"
                )
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
