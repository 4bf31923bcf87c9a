"""Threads and processes that write at once lose nothing, and a killed one loses nothing that it acknowledged."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from labelspace.server.database import Feedback, InboxDocument, open_database

IMPORTS = """
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from labelspace.server.database import Feedback, InboxDocument, open_database

url, name = sys.argv[1:]
"""
# Says an id when it is stored, for ever.
ACKNOWLEDGE = f"""{IMPORTS}
database = open_database(url)
for i in range(1_000_000):
    (id,) = database.add_feedback("demo", [Feedback(id=f"{{name}}-{{i}}", text="a" * 3000, accepted=["b"])])
    print(id, flush=True)
"""
WRITE = f"""{IMPORTS}
sys.stdin.readline()  # all processes begin together
database = open_database(url)


def write(thread):
    for i in range(10):
        database.add_feedback("demo", [Feedback(id=f"{{name}}-{{thread}}-{{i}}-{{j}}", text="a") for j in range(2)])
        texts = f"text {{i}}", f"{{name}} {{thread}} {{i}}"
        database.add_documents("demo", [InboxDocument(text=text) for text in texts])


with ThreadPoolExecutor(4) as threads:
    list(threads.map(write, range(4)))
job = database.start_job("demo", "learn")
print(job.id if job else None)
database.close()
"""
FORK = f"""{IMPORTS}
database = open_database(url)
database.add_feedback("demo", [Feedback(id="parent", text="a")])
child = os.fork()
database.add_feedback("demo", [Feedback(id="after" if child else "child", text="a")])
if child:
    assert os.waitpid(child, 0)[1] == 0
    database.ping()
database.close()
"""


def start(code, url, name="x"):
    return subprocess.Popen(
        [sys.executable, "-c", code, url, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def acknowledged(process, n):
    """The first n ids that a process says."""
    return [process.stdout.readline().strip() for _ in range(n)]


def kill(process):
    """Kill a process; all that it said before."""
    process.send_signal(signal.SIGKILL)
    with process:
        said = process.stdout.read()
    return [line.strip() for line in said.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.slow
def test_processes_and_threads_that_start_and_write_at_once_lose_nothing(url):
    processes = [start(WRITE, url, str(i)) for i in range(4)]
    for process in processes:
        process.stdin.write("begin\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sum(line != "None" for line in said) == 1  # one job
    database = open_database(url)
    expected = {f"{p}-{t}-{i}-{j}" for p in range(4) for t in range(4) for i in range(10) for j in range(2)}
    assert sorted(entry.id for entry in database.feedback("demo")) == sorted(expected)
    assert database.inbox_counts("demo") == {"pending": 4 * 4 * 10 + 10, "done": 0, "skipped": 0}
    database.close()


@pytest.mark.slow
def test_a_killed_process_loses_nothing_that_it_acknowledged(url):
    said = []
    for round in range(4):
        process = start(ACKNOWLEDGE, url, str(round))
        said += acknowledged(process, 1 + 40 * round)
        time.sleep(0.003 * round)
        said += kill(process)
        database = open_database(url)  # repairs what the dead one left, and can write
        database.add_feedback("demo", [Feedback(id=f"between {round}", text="a")])
        stored = [entry.id for entry in database.feedback("demo")]
        database.close()
        assert set(said) <= set(stored)
        assert (
            len(stored) == len(set(stored)) <= len(said) + 2 * (round + 1)
        )  # per round one that was not said, one ours


@pytest.mark.slow
@pytest.mark.parametrize("break_connections", ["restart", "kill a backend", "terminate backends"])
def test_a_client_outlives_a_crash_of_the_server(cluster, break_connections):
    name = cluster.new_database()
    process = start(ACKNOWLEDGE, cluster.url(name))
    said = acknowledged(process, 50)
    pids = f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}' AND application_name = 'labelspace'"
    if break_connections == "restart":
        cluster.pg_ctl("restart", "-m", "immediate")
    elif break_connections == "kill a backend":  # the server ends all other sessions and repairs itself
        os.kill(cluster.execute(pids)[0][0], signal.SIGKILL)
    else:
        assert cluster.execute(f"SELECT pg_terminate_backend(pid) FROM ({pids}) AS found") == [(True,)]
    said += acknowledged(process, 200)
    assert process.poll() is None
    said += kill(process)
    database = open_database(cluster.url(name))
    stored = [entry.id for entry in database.feedback("demo")]
    database.close()
    assert stored[: len(said)] == said == [f"x-{i}" for i in range(len(said))]
    assert len(stored) <= len(said) + 1


def test_all_idle_connections_may_be_lost_at_once(cluster):
    name = cluster.new_database()
    database = open_database(cluster.url(name))
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    together = threading.Barrier(4)

    def hold_connection(_):
        database._connections.read(lambda session: together.wait(timeout=60))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(hold_connection, range(4)))
        assert cluster.execute(end) == [(True,)] * 4
        list(threads.map(lambda i: database.add_feedback("demo", [Feedback(id=str(i), text="a")]), range(4)))
        list(threads.map(hold_connection, range(4)))
    assert cluster.execute(end) == [(True,)] * 4
    database.ping()  # it tries only once more
    assert sorted(entry.id for entry in database.feedback("demo")) == list("0123")
    database.close()


def test_many_make_the_tables_at_once(url):
    together = threading.Barrier(8)

    def make(_):
        together.wait(timeout=60)
        open_database(url).close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(make, range(8)))
    database = open_database(url)
    database.ping()
    database.close()


def test_one_of_many_threads_starts_a_job(database):
    together = threading.Barrier(8)

    def job(_):
        together.wait(timeout=60)
        return database.start_job("demo", "learn")

    with ThreadPoolExecutor(8) as threads:
        jobs = list(threads.map(job, range(8)))
    assert len([job for job in jobs if job]) == 1
    assert len(database.jobs()) == 1


def test_transactions_that_wait_for_each_other_both_succeed(database):
    """Documents in opposite orders: PostgreSQL undoes one of two transactions, which is repeated."""
    database.add_documents("demo", [InboxDocument(id=str(i), text=str(i)) for i in range(30)])
    together = threading.Barrier(2)

    def write(step):
        entries = [Feedback(id=f"{step} {i}", text=str(i), document=str(i)) for i in range(30)]
        together.wait(timeout=60)
        database.add_feedback("demo", entries[::step])
        for entry in entries:  # at the same time as the other thread that of the same document
            together.wait(timeout=60)
            database.withdraw_feedback("demo", entry.id)

    for _ in range(3):
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(write, (1, -1)))
        assert database.count_feedback("demo") == 0
        assert database.inbox_counts("demo") == {"pending": 30, "done": 0, "skipped": 0}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_connections_of_its_own(url):
    process = start(FORK, url)
    process.communicate(timeout=60)
    assert process.returncode == 0
    database = open_database(url)
    assert sorted(entry.id for entry in database.feedback("demo")) == ["after", "child", "parent"]
    database.close()
