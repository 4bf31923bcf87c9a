"""An open loop of requests to a server of this machine, at a constant rate.

Requests fall due by the clock, whether earlier ones were answered or not, as those of independent users do. Latency is
counted from the moment when a request was due, so that a server that stalls cannot hide the requests it held up.
Plain sockets and epoll: the generator shares the cores with the server, and asyncio would take twice as much of them.
"""

from __future__ import annotations

import re
import select
import socket
import time
from array import array
from collections import Counter, deque
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np
from serve_wrk import CONNECTIONS, MAX_SECONDS, TIMEOUT_SECONDS, Target

MAX_CONNECTIONS = 512  # where the server holds up so many
MAX_IDLE_SECONDS = 3.0  # servers close idle connections, many after 5 s: do not race with that
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
OK = 200
TOO_MANY = 429
RECEIVE_BYTES = 2**18


@dataclass(frozen=True)
class OpenLoop:
    """What became of the requests that were due; latencies are those of answers with status 200."""

    rate: float  # requests due in a second
    offered: int
    statuses: dict[int, int]
    failed: int  # connections that were refused or broke, and requests without an answer at the end
    unsent: int  # still waiting for a connection at the end, with MAX_CONNECTIONS open
    p50_ms: float
    p99_ms: float
    p99_sent_ms: float  # counted from when the request was sent
    connections: int
    cores: float  # that the generator itself kept busy

    def share(self, status: int) -> float:
        """The share of a status among all requests that were due."""
        return self.statuses.get(status, 0) / self.offered

    @property
    def not_ok(self) -> int:
        """Requests that were not answered with 200."""
        return self.offered - self.statuses.get(OK, 0)

    @property
    def other(self) -> int:
        """Requests that were neither answered with 200 nor turned away with 429."""
        return self.not_ok - self.statuses.get(TOO_MANY, 0)


def open_loop(target: Target, rate: float, seconds: float) -> OpenLoop:
    """Offer ``rate`` requests a second for some seconds, evenly spaced."""
    generator = _Generator(target)
    try:
        return generator.run(rate, max(1, round(rate * min(seconds, MAX_SECONDS))))
    finally:
        generator.close()


class _Generator:
    """Connections, and the requests that wait for one."""

    def __init__(self, target: Target) -> None:
        self.requests = target.requests
        self.port = urlsplit(target.url).port or 80
        self.epoll = select.epoll()
        self.connections: dict[int, _Connection] = {}  # by file number
        self.idle: deque[_Connection] = deque()
        self.waiting: deque[float] = deque()  # when each was due
        self.n_sent = self.n_failed = self.most_connections = 0
        self.statuses: Counter[int] = Counter()
        self.latencies, self.latencies_sent = array("d"), array("d")

    def run(self, rate: float, offered: int) -> OpenLoop:
        """Send all requests when they are due, and wait for the answers."""
        for _ in range(CONNECTIONS):
            self.open()
        while not all(each.is_connected for each in self.connections.values()):
            self.serve_events(0.1)
        start, cpu = time.perf_counter(), time.process_time()
        due = 0
        while due < offered:
            by_now = min(offered, int((time.perf_counter() - start) * rate) + 1)
            for i in range(due, by_now):
                self.offer(start + i / rate)
            due = by_now
            self.serve_events(start + due / rate - time.perf_counter())
        cores = (time.process_time() - cpu) / (time.perf_counter() - start)
        n_unsent = len(self.waiting)
        self.waiting.clear()
        self.drain()
        return self.result(rate, offered, n_unsent, cores)

    def serve_events(self, timeout: float) -> None:
        """Wait for answers, at most so long, and take them."""
        if timeout > 0:
            select.select([self.epoll], [], [], timeout)  # epoll itself waits for whole milliseconds
        for file, events in self.epoll.poll(0):
            connection = self.connections.get(file)
            if connection is not None:
                connection.on_events(events)

    def open(self) -> None:
        """Open a connection; it takes a request when it is there."""
        connection = _Connection(self)
        self.connections[connection.file] = connection
        self.most_connections = max(self.most_connections, len(self.connections))

    def offer(self, due: float) -> None:
        """Send a request by the connection that is idle for longest, or let it wait for one."""
        while self.idle:
            connection = self.idle.popleft()
            if connection.is_fresh():
                connection.send(self.next_request(), due)
                return
        self.waiting.append(due)
        if len(self.connections) < MAX_CONNECTIONS:
            self.open()

    def next_request(self) -> bytes:
        """The requests in turn."""
        self.n_sent += 1
        return self.requests[self.n_sent % len(self.requests)]

    def free(self, connection: _Connection) -> None:
        """Give a connection to the request that waits for longest, if there is one."""
        if self.waiting:
            connection.send(self.next_request(), self.waiting.popleft())
        else:
            connection.idle_since = time.perf_counter()
            self.idle.append(connection)

    def note(self, status: int, due: float, sent: float) -> None:
        """Count an answer."""
        self.statuses[status] += 1
        if status == OK:
            now = time.perf_counter()
            self.latencies.append(now - due)
            self.latencies_sent.append(now - sent)

    def drain(self) -> None:
        """Wait for the last answers; those that do not come have failed."""
        end = time.perf_counter() + TIMEOUT_SECONDS
        while any(each.is_busy for each in self.connections.values()) and time.perf_counter() < end:
            self.serve_events(0.05)
        self.n_failed += sum(each.is_busy for each in self.connections.values())

    def result(self, rate: float, offered: int, n_unsent: int, cores: float) -> OpenLoop:
        """The figures."""
        if not self.latencies:
            counts = f"{dict(self.statuses)}, {self.n_failed} failed"
            raise RuntimeError(f"some requests must be answered with 200, but none was: {counts}; see the server's log")
        p50, p99 = np.quantile(self.latencies, [0.5, 0.99])
        return OpenLoop(
            rate=round(rate, 1),
            offered=offered,
            statuses=dict(self.statuses),
            failed=self.n_failed,
            unsent=n_unsent,
            p50_ms=round(1e3 * float(p50), 2),
            p99_ms=round(1e3 * float(p99), 2),
            p99_sent_ms=round(1e3 * float(np.quantile(self.latencies_sent, 0.99)), 2),
            connections=self.most_connections,
            cores=round(cores, 2),
        )

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self.connections.values()):
            connection.close()
        self.epoll.close()


class _Connection:
    """A keep-alive connection with at most one request under way."""

    def __init__(self, generator: _Generator) -> None:
        self.generator = generator
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(("127.0.0.1", generator.port))  # on_events hears how it went
        self.file = self.socket.fileno()
        generator.epoll.register(self.file, select.EPOLLOUT)
        self.is_connected = self.is_busy = self.is_closed = self.waits_to_send = False
        self.to_send, self.received = b"", bytearray()
        self.due = self.sent = self.idle_since = 0.0

    def is_fresh(self) -> bool:
        """Whether it can be used again; it is closed where it was idle for too long."""
        if not self.is_closed and time.perf_counter() - self.idle_since > MAX_IDLE_SECONDS:
            self.close()
        return not self.is_closed

    def send(self, request: bytes, due: float) -> None:
        """Send a request that was due at some moment."""
        self.is_busy, self.due, self.sent = True, due, time.perf_counter()
        self.to_send = request
        self._send()

    def on_events(self, events: int) -> None:
        """React to what epoll saw."""
        if not self.is_connected:
            self._connected()
        elif events & select.EPOLLOUT:
            self._send()
        else:
            self._receive()

    def close(self) -> None:
        """Close it; a request under way has failed."""
        self.generator.n_failed += self.is_busy
        self.is_busy, self.is_closed = False, True
        del self.generator.connections[self.file]
        self.socket.close()  # epoll forgets it too

    def _connected(self) -> None:
        if self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.generator.n_failed += 1
            if self.generator.waiting:
                self.generator.waiting.popleft()
            self.close()
            return
        self.is_connected = True
        self.generator.epoll.modify(self.file, select.EPOLLIN)
        self.generator.free(self)

    def _send(self) -> None:
        try:
            self.to_send = self.to_send[self.socket.send(self.to_send) :]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if self.to_send or self.waits_to_send:  # a long text may not fit into the socket's buffer at once
            self.waits_to_send = bool(self.to_send)
            wanted = select.EPOLLIN | (select.EPOLLOUT if self.to_send else 0)
            self.generator.epoll.modify(self.file, wanted)

    def _receive(self) -> None:
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self.received += data
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return
        length = LENGTH.search(self.received, 0, end)
        if length is None:
            self.close()  # an answer that we cannot delimit counts as failed
        elif len(self.received) >= end + 4 + int(length[1]):
            self._answered(CLOSE.search(self.received, 0, end) is not None)

    def _answered(self, closes: bool) -> None:
        self.generator.note(int(self.received[9:12]), self.due, self.sent)
        self.received.clear()
        self.is_busy = False
        if closes:
            self.close()
        else:
            self.generator.free(self)
