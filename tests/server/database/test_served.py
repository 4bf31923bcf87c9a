"""A server whose PostgreSQL crashes goes on by itself, and has lost nothing that it said was stored."""

import urllib.error

import pytest

from labelspace.server.database import open_database
from tests.server.conftest import documents, wait_until
from tests.server.load import MODEL, asking, clients, wrong

N_CLIENTS = 3
BETWEEN = 30  # entries of feedback between two crashes


@pytest.mark.slow
def test_a_server_outlives_crashes_of_its_database(cluster, start_server, model_folder, tagger):
    url = cluster.new_schema_url()
    server = start_server(str(model_folder), "--workers", "2", "--database", url)
    rows, stored, away = documents(), [], []

    def post(name):
        def call(turn):
            row = rows[turn % len(rows)]
            entries = [{"id": f"{name}-{turn}-{i}", "text": row["text"], "accepted": row["labels"]} for i in range(2)]
            try:
                stored.extend(server.post(f"{MODEL}/feedback", entries)["ids"])
            except urllib.error.HTTPError as error:
                with error:
                    away.append(error.code)

        return call

    with asking(server, 1) as asked, clients(*map(post, range(N_CLIENTS))):
        for _ in range(2):
            before = len(stored)
            wait_until(lambda before=before: len(stored) >= before + BETWEEN, server.log)
            cluster.pg_ctl("restart", "-m", "immediate")
        before = len(stored)
        wait_until(lambda: len(stored) >= before + BETWEEN, server.log)
    assert set(away) <= {503}  # where the restart took longer than the server waits
    assert wrong(asked, {server.get(MODEL)["version"]: tagger}) == []  # suggestions need no database

    database = open_database(url)
    found = [entry.id for entry in database.feedback("foods")]
    database.close()
    assert len(found) == len(set(found)) == server.get(MODEL)["n_feedback"]
    assert set(stored) <= set(found)
    assert len(found) <= len(stored) + 2 * len(away)
    assert server.stop() == 0
