"""A closed loop of requests to a server of this machine, by wrk.

Each connection waits for its answer before it asks again: that finds the highest throughput.
"""

from __future__ import annotations

import json
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

CONNECTIONS = 32
TIMEOUT_SECONDS = 40  # more than the server's own limit for a request
MAX_SECONDS = 3600
SETTLE_SECONDS = 2  # wrk ends with requests under way, which the server still works on
LOOPBACK = ("127.0.0.1", "localhost")

# The bodies stand in a file, one a line: neither JSON nor a form has line breaks.
WRK_SCRIPT = """
local requests, sent = {}, 0
function init(arguments)
  for body in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format("POST", nil, {["Content-Type"] = arguments[2]}, body)
  end
end
function request()
  sent = sent % #requests + 1
  return requests[sent]
end
function done(summary, latency)
  local e = summary.errors
  print(string.format('{"requests": %d, "microseconds": %d, "status": %d, "failed": %d, "p50": %d, "p99": %d}',
    summary.requests, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True)
class Target:
    """Where requests go, and their bodies, which are sent in turn."""

    url: str
    content_type: str
    bodies: Sequence[bytes]

    def __post_init__(self) -> None:
        host = urlsplit(self.url).hostname
        if host not in LOOPBACK:
            raise ValueError(f"load goes to this machine only, but the host is {host!r}; take a URL of 127.0.0.1")

    @property
    def requests(self) -> list[bytes]:
        """Whole requests, as bytes on the wire."""
        address = urlsplit(self.url)
        head = f"POST {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: {self.content_type}\r\n"
        return [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in self.bodies]


@dataclass(frozen=True)
class ClosedLoop:
    """What wrk saw; only answers with a status under 400 count for ``per_second``."""

    connections: int
    per_second: float
    p50_ms: float
    p99_ms: float
    refused: int  # answers with a status of 400 or more
    failed: int  # connections that failed, and timeouts
    cores: float  # that wrk itself kept busy


def closed_loop(target: Target, seconds: float, connections: int = CONNECTIONS) -> ClosedLoop:
    """Run wrk with one thread."""
    with tempfile.TemporaryDirectory() as folder:
        script, bodies = Path(folder, "requests.lua"), Path(folder, "bodies")
        script.write_text(WRK_SCRIPT)
        bodies.write_bytes(b"".join(body + b"\n" for body in target.bodies))
        options = ["-t1", f"-c{connections}", f"-d{_whole(seconds)}s", "--timeout", f"{TIMEOUT_SECONDS}s", "-s", script]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["wrk", *map(str, options), target.url, "--", str(bodies), target.content_type]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    time.sleep(SETTLE_SECONDS)
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    taken = seen["microseconds"] / 1e6
    return ClosedLoop(
        connections=connections,
        per_second=round((seen["requests"] - seen["status"]) / taken, 1),
        p50_ms=round(seen["p50"] / 1e3, 2),
        p99_ms=round(seen["p99"] / 1e3, 2),
        refused=seen["status"],
        failed=seen["failed"],
        cores=round((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / taken, 2),
    )


def _whole(seconds: float) -> int:
    return max(1, round(min(seconds, MAX_SECONDS)))
