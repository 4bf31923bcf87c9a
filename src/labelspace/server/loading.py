"""Keep the models of a server loaded: again when their folder is replaced, each version with its figures."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from labelspace.data.source import open_source
from labelspace.errors import DatabaseError, LabelspaceError
from labelspace.server.job import EVALUATE, start_job
from labelspace.server.routes.feedback import add_inbox_file
from labelspace.server.served_model import ServedModel
from labelspace.server.state import ServerState

logger = logging.getLogger("labelspace.server")
LOOK_SECONDS = 1.0  # between two looks at the folders of models; how late a replaced model is noticed


@asynccontextmanager
async def running(state: ServerState, on_load: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
    """Load the models in the background while the block runs, and end all tasks with it; then close the state."""
    tasks = [asyncio.create_task(_keep_loaded(state, model, on_load)) for model in state.models.values()]
    try:
        yield
    finally:
        for task in [*tasks, *state.jobs]:
            task.cancel()
        await asyncio.gather(*tasks, *state.jobs, return_exceptions=True)
        state.close()


async def _keep_loaded(state: ServerState, model: ServedModel, on_load: Callable[[], None]) -> None:
    """Load a model, again whenever its folder is replaced or its cluster failed, and evaluate each version."""
    await _load(state, model, on_load)
    measured = None
    while True:
        if model.current is not None and model.current.version != measured:
            measured = await _measure(state, model.name, model.current.version)
        await asyncio.sleep(LOOK_SECONDS)
        if model.is_replaced():
            await _load(state, model, on_load)


async def _load(state: ServerState, model: ServedModel, on_load: Callable[[], None]) -> None:
    first = model.current is None
    before = model.error
    try:
        loaded = await state.in_thread(model.load)
    except Exception as error:  # a bad folder must not end the look at others
        state.monitoring.reloads.labels(model.name, "failed").inc()
        if str(error) != before:  # a cluster may fail in the same way every second: log it once
            old = "" if first else "; the old version is still served"
            logger.error("%s could not be loaded%s: %s", model.name, old, error)
        return
    state.monitoring.reloads.labels(model.name, "loaded").inc()
    on_load()
    logger.info("%s is ready: version %s", model.name, loaded.version)
    if state.has_models:
        state.readiness.mark()
    if first and state.settings.inbox is not None:
        try:
            await add_inbox_file(state, model.name, state.settings.inbox)
        except (LabelspaceError, OSError) as error:
            logger.error("the inbox of %s could not be filled: %s", model.name, error)


async def _measure(state: ServerState, name: str, version: str) -> str | None:
    """Start an evaluation of a version, if there are test documents and no figures yet.

    Return the version, or None if this is to be tried again: another evaluation runs, or the database does not answer.
    """
    try:
        if state.settings.data is None or open_source(state.settings.data).test_path is None:
            return version
        if await state.in_thread(state.database.figures, name, version) is not None:
            return version
        return None if await start_job(state, name, EVALUATE) is None else version
    except (LabelspaceError, OSError) as error:
        logger.error("the figures of %s could not be measured: %s", name, error)
        return None if isinstance(error, DatabaseError) else version
