"""Documents that wait are tagged together, each gets its own answer, and a bad one fails alone."""

import asyncio

import pytest

from labelspace.server.inference import MAX_BATCH, Inference


class Calls:
    """A function that doubles numbers, and remembers what it was called with."""

    def __init__(self):
        self.batches = []

    def __call__(self, items):
        self.batches.append(list(items))
        if "bad" in items:
            raise ValueError("a bad item")
        return [2 * item for item in items]


async def together(inference, function, *requests, group="same"):
    """The answers of requests that come at once; an error is an answer too."""
    asked = [inference.map(function, items, group) for items in requests]
    return await asyncio.gather(*asked, return_exceptions=True)


def test_requests_that_come_together_are_one_batch():
    function, sizes = Calls(), []
    found = asyncio.run(together(Inference(sizes.append), function, [1, 2], [3], [4, 5]))
    assert found == [[2, 4], [6], [8, 10]]
    assert function.batches == [[1, 2, 3, 4, 5]]
    assert sizes == [5]


def test_other_options_are_another_batch():
    one, other = Calls(), Calls()

    async def both():
        inference = Inference()
        return await asyncio.gather(
            inference.map(one, [1], "a"), inference.map(other, [2], "b"), inference.map(one, [3], "a")
        )

    assert asyncio.run(both()) == [[2], [4], [6]]
    assert (one.batches, other.batches) == ([[1, 3]], [[2]])


def test_a_batch_has_a_limit():
    function = Calls()
    found = asyncio.run(together(Inference(), function, *([at] for at in range(3 * MAX_BATCH))))
    assert found == [[2 * at] for at in range(3 * MAX_BATCH)]
    assert [len(batch) for batch in function.batches] == [MAX_BATCH] * 3


def test_a_bad_request_fails_alone():
    good, bad, also_good = asyncio.run(together(Inference(), Calls(), [1], ["bad"], [3]))
    assert (good, also_good) == ([2], [6])
    assert isinstance(bad, ValueError)


def test_work_goes_on_after_a_failure():
    async def twice():
        inference = Inference()
        with pytest.raises(ValueError, match="a bad item"):
            await inference.map(Calls(), ["bad"], "a")
        return await inference.map(Calls(), [1], "a")

    assert asyncio.run(twice()) == [2]


def test_what_nobody_waits_for_is_not_done():
    async def given_up():
        inference, function = Inference(), Calls()
        task = asyncio.create_task(inference.map(function, [1], "a"))
        other = asyncio.create_task(inference.map(function, [2], "a"))
        await asyncio.sleep(0)
        task.cancel()
        return await other, function.batches

    found, batches = asyncio.run(given_up())
    assert found == [4]
    assert batches == [[2]]


def test_one_function_with_arguments():
    assert asyncio.run(Inference().run(divmod, 7, 2)) == (3, 1)


def test_other_requests_are_answered_between_batches():
    """A long queue does not keep the event loop to itself."""
    order = []

    async def ask():
        inference = Inference()
        asked = [asyncio.create_task(inference.map(lambda items: order.append("batch") or items, [at] * MAX_BATCH, at))
                 for at in range(3)]  # fmt: skip
        await asyncio.sleep(0)
        for _ in range(4):
            order.append("loop")
            await asyncio.sleep(0)
        await asyncio.gather(*asked)

    asyncio.run(ask())
    first, last = order.index("batch"), len(order) - 1 - order[::-1].index("batch")
    assert "loop" in order[first:last]
