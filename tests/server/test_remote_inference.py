"""Batches under way on several threads: the rest waits and is tagged together; a bad request fails alone."""

import asyncio
import threading

from labelspace.errors import ClusterError
from labelspace.server.inference import RemoteInference


class Machine:
    """A function that doubles numbers, slowly: batches are answered once ``release`` is set."""

    def __init__(self):
        self.batches, self.release = [], threading.Event()

    def __call__(self, items):
        self.batches.append(list(items))
        self.release.wait(10)
        if "lost" in items:
            raise ClusterError("a machine was lost")
        if "bad" in items:
            raise ValueError("a bad item")
        return [2 * item for item in items]


def answers(machine, requests, n_threads, groups=None):
    """The answers of requests that come one after the other while the first is under way."""

    async def ask():
        sizes = []
        inference = RemoteInference(n_threads, sizes.append)
        groups_of = groups or ["same"] * len(requests)
        asked = []
        for items, group in zip(requests, groups_of, strict=True):
            asked.append(asyncio.create_task(inference.map(machine, items, group)))
            await asyncio.sleep(0)
        machine.release.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        inference.close()
        assert sum(sizes) == sum(map(len, requests))
        return found

    return asyncio.run(ask())


def test_what_waits_is_one_batch():
    machine = Machine()
    assert answers(machine, [[1], [2], [3, 4], [5]], n_threads=2) == [[2], [4], [6, 8], [10]]
    assert sorted(machine.batches) == [[1], [2], [3, 4, 5]]


def test_other_options_are_another_batch():
    machine = Machine()
    assert answers(machine, [[1], [2], [3], [4]], 1, ["a", "a", "b", "a"]) == [[2], [4], [6], [8]]
    assert machine.batches == [[1], [2, 4], [3]]


def test_a_bad_request_fails_alone():
    good, also_good, bad = answers(Machine(), [[1], [2], ["bad"]], n_threads=1)
    assert (good, also_good) == ([2], [4])
    assert isinstance(bad, ValueError)


def test_a_batch_whose_machine_is_lost_is_not_asked_again_one_by_one():
    machine = Machine()
    first, *lost = answers(machine, [[1], [2], ["lost"]], n_threads=1)
    assert first == [2]
    assert all(isinstance(error, ClusterError) for error in lost)
    assert machine.batches == [[1], [2, "lost"]]


def test_a_request_that_nobody_waits_for_is_dropped():
    machine = Machine()

    async def ask():
        inference = RemoteInference(1)
        first = asyncio.create_task(inference.map(machine, [1], "same"))
        second = asyncio.create_task(inference.map(machine, [2], "same"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        machine.release.set()
        return await first, await inference.run(lambda number: number + 1, 2)

    assert asyncio.run(ask()) == ([2], 3)
    assert machine.batches == [[1]]
