"""The command info."""

import hashlib
import json
from pathlib import Path


def test_info_tells_the_data_the_method_and_the_versions(run, tmp_path):
    lines = [json.dumps({"text": f"{word} {i}", "labels": [word]}) for i in range(30) for word in ("apple", "car")]
    Path("tickets.jsonl").write_text("\n".join(lines))
    assert run("train", "tickets.jsonl", "--method", "neighbors", "--license", "mit", "--out", "m")[0] == 0
    assert run("labels", "retire", "m", "car")[0] == 0
    about = json.loads(run("info", "m", "--json")[1])
    digest = hashlib.sha256(Path("tickets.jsonl").read_bytes()).hexdigest()
    assert about["data"] == {"data": "tickets.jsonl", "sha256": digest}
    assert (about["model"], about["method"], about["license"]) == ("m", "neighbors", "mit")
    assert (about["labels"]["n"], about["labels"]["retired"], about["n_documents"]) == (2, 1, 60)
    assert [each["made_by"] for each in about["versions"]] == ["train", "labels"]
    code, out, err = run("info", "m")
    assert (code, err) == (0, "")
    for words in ("tickets.jsonl, SHA-256", "2, 1 retired", "apple (30)", "2; older ones that are kept: 1"):
        assert words in " ".join(out.split()), words


def test_a_wrong_license_is_refused_before_the_training(run, tmp_path):
    Path("t.jsonl").write_text('{"text": "a", "labels": ["b"]}\n')
    code, _, err = run("train", "t.jsonl", "--license", "my own", "--out", "m")
    assert code == 2
    assert err.startswith("error: --license must be ")
    assert not Path("m").exists()
