"""Documents of a file into the inbox of a model."""

import logging
from itertools import islice

from labelspace.data.read_options import ReadOptions
from labelspace.data.source import iter_records
from labelspace.server.database import InboxDocument
from labelspace.server.state import ServerState

logger = logging.getLogger("labelspace.server")
AT_ONCE = 256  # documents


async def add_inbox_file(state: ServerState, model: str, path: str) -> None:
    """Add the documents that are not there yet; what is asked first is scored first (see ``routes/review.py``)."""
    stored = known = 0
    tagger = state.loaded(model).tagger
    records = iter_records(path, columns=tagger.columns_, options=ReadOptions(fields=tagger.fields_))
    while batch := await state.beside(lambda: list(islice(records, AT_ONCE))):
        rows = [
            InboxDocument(document=record.id, text=record.text or "") for record in batch if (record.text or "").strip()
        ]
        new, old = await state.beside(state.database.add_documents, model, rows)
        stored, known = stored + new, known + old
    logger.info("inbox of %s: %d documents of the file are new, %d were there", model, stored, known)
