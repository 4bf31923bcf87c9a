"""What a server is started with, and how workers get it."""

import pytest

from labelspace.errors import ParameterError
from labelspace.server.settings import RequestLimits, Settings, parse_models


def test_workers_get_the_same_settings():
    settings = Settings(
        models={"a": "runs/a", "b": "runs/ü b"}, host="0.0.0.0", port=1, workers=3, database="postgresql://x@y/z",
        data="data", inbox="inbox.jsonl", api_key_file="keys", read_only=True, cors_origins=["https://a.example"],
        allowed_hosts=["b.example"], access_log=True, limits=RequestLimits(1, 2, 3, 4, 5, 0.5),
    )  # fmt: skip
    assert Settings.from_json(settings.to_json()) == settings


def test_feedback_goes_to_a_file_beside_the_first_model(tmp_path):
    folder = tmp_path / "foods"
    folder.mkdir()
    settings = Settings(models={"foods": str(folder), "other": str(tmp_path / "other")})
    assert settings.database_url == f"sqlite:///{tmp_path / 'foods.feedback.db'}"
    (tmp_path / "current").symlink_to(folder)  # by any name, the same model has the same feedback
    assert Settings(models={"x": str(tmp_path / "current")}).database_url == settings.database_url
    assert Settings(models={"x": f"{folder}/"}).database_url == settings.database_url


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://anna:secret@db/tags", "postgresql://anna:***@db/tags"),
        ("postgresql://anna:se@cret@db/tags", "postgresql://anna:***@db/tags"),
        ("postgresql://anna:se/cret@db/tags", "postgresql://anna:***@db/tags"),
        ("postgresql://:secret@db/tags", "postgresql://:***@db/tags"),
        ("postgresql://db/tags?user=anna&password=secret", "postgresql://db/tags?user=anna&password=***"),
        ("postgresql://anna@db/tags", "postgresql://anna@db/tags"),
        ("sqlite:///feedback.db", "sqlite:///feedback.db"),
    ],
)  # fmt: skip
def test_no_password_is_shown(given, shown):
    assert Settings(models={"a": "a"}, database=given).shown_database == shown


def test_keys_and_no_keys_contradict():
    with pytest.raises(ParameterError, match="--api-key-file and --no-auth exclude each other"):
        Settings(models={"a": "a"}, api_key_file="keys", no_auth=True)


def test_any_web_site_only_with_keys():
    with pytest.raises(ParameterError, match=r"--cors-origin is \* without --api-key-file"):
        Settings(models={"a": "a"}, cors_origins=["*"])
    assert Settings(models={"a": "a"}, cors_origins=["*"], api_key_file="keys").cors_origins == ["*"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_requests_must_name_this_machine_where_they_need_no_key(host):
    assert Settings(models={"a": "a"}, host=host).checks_host is True
    assert Settings(models={"a": "a"}, host=host, api_key_file="keys").checks_host is False


def test_models_by_folder_and_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "a=b").mkdir()
    assert parse_models(["runs/demo", "tags=runs/other", "runs/x.y_z-1"]) == {
        "demo": "runs/demo",
        "tags": "runs/other",
        "x.y_z-1": "runs/x.y_z-1",
    }
    assert parse_models(["n=a=b"]) == {"n": "a=b"}
    assert parse_models(["./runs/../runs/"]) == {"runs": "./runs/../runs/"}
    with pytest.raises(ParameterError, match="the name of a served model must be letters"):
        parse_models(["a=b"])  # there is such a folder, whose name is none for a model


@pytest.mark.parametrize("given", [["a", "x/a"], ["n=a", "n=b"], ["a", "a=b"]])
def test_names_must_differ(given):
    with pytest.raises(ParameterError, match="served models must have different names, but two are"):
        parse_models(given)


@pytest.mark.parametrize("name", ["a b", "ü", "a/b", ".hidden", "-x", "x" * 65, "a?b", "<script>", ""])
def test_names_must_fit_in_an_address(name):
    with pytest.raises(ParameterError, match="the name of a served model must be letters, digits"):
        parse_models([f"{name}=folder"])
