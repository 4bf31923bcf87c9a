"""The files of the container agree with each other, with the program and with what the docs tell to type."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import typer

from labelspace.cli.app import app
from labelspace.kernels.compilation import VARIABLE
from labelspace.server.settings import Settings, parse_models

ROOT = Path(__file__).parents[1]
IMAGE_NAME = re.compile(r"[a-z0-9-]+:[a-z0-9.-]+")  # without the host of a registry
KEY_FILE = "/run/secrets/api_keys"


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def instructions(wanted):
    """The arguments of an instruction of the Dockerfile, one for each time it is written."""
    lines = [line for line in read("Dockerfile").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return re.findall(rf"^{wanted} (.*)$", joined, re.MULTILINE)


def exec_form(wanted):
    (given,) = instructions(wanted)
    return json.loads(given[given.index("[") :])


def environment():
    """The variables of the last stage."""
    return dict(pair.split("=", 1) for pair in shlex.split(instructions("ENV")[-1]))


def user():
    return instructions("USER")[-1]


def documented_runs():
    """What docs/container.md gives to the image, for each `docker run`."""
    page = read("docs/container.md").replace("\\\n", " ")
    commands = [shlex.split(line) for line in page.splitlines() if line.startswith("docker run ")]
    return [(words[: words.index("labelspace")], words[words.index("labelspace") + 1 :]) for words in commands]


def settings_of(arguments):
    """The settings of `labelspace serve` with these arguments after those of the image, as the program reads them."""
    program, command, *first = exec_form("ENTRYPOINT")
    assert program == "labelspace"
    commands = typer.main.get_command(app).commands
    given = commands[command].make_context(command, [*first, *arguments]).params
    return Settings(
        models=parse_models(given["models"]), host=given["host"], port=given["port"], database=given["database"],
        no_auth=given["no_auth"], allowed_hosts=given["allowed_host"] or [],
        api_key_file=given["api_key_file"] and str(given["api_key_file"]),
    )  # fmt: skip


@pytest.fixture
def compose():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(read("compose.yaml"))


def test_hadolint_finds_nothing():
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    hadolint = shutil.which("hadolint", path=folders)
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([hadolint, "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_every_stage_starts_from_the_same_image_by_name_and_tag():
    """Else the environment that one stage makes does not run in the other."""
    bases = [given.split()[0] for given in instructions("FROM")]
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert IMAGE_NAME.fullmatch(bases[0])


def test_the_user_is_no_root_and_owns_the_state_and_the_kernels():
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user())
    owner, group = user().split(":")
    made = next(given for given in instructions("RUN") if "useradd" in given)
    assert f"useradd --uid {owner} --gid {group} " in made
    folders = re.search(rf"--mode=700 --owner={owner} --group={group} ([^&]*)", made)
    assert folders is not None
    assert folders[1].split() == ["/state", environment()[VARIABLE]]
    kernels = [given for given in instructions("COPY") if given.endswith(f" {environment()[VARIABLE]}")]
    assert kernels == [f"--from=build --chown={user()} {environment()[VARIABLE]} {environment()[VARIABLE]}"]


def test_kernels_are_compiled_for_the_cpu_and_the_folder_they_are_used_with():
    first, last = (dict(pair.split("=", 1) for pair in shlex.split(given)) for given in instructions("ENV"))
    numba = {name: value for name, value in first.items() if name.startswith("NUMBA_")}
    assert set(numba) == {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", VARIABLE}
    assert numba == {name: value for name, value in last.items() if name.startswith("NUMBA_")}
    assert instructions("ARG") == ["CPU=x86-64-v3", "CPU", "CPU"]


def test_paths_that_are_copied_exist_and_are_not_ignored():
    ignored, *others = [line for line in read(".dockerignore").splitlines() if not line.startswith("#")]
    assert ignored == "*"
    kept = {line[1:] for line in others if line.startswith("!")}
    own = [given.split()[:-1] for given in instructions("COPY") if not given.startswith("--from=")]
    sources = [source for given in own for source in given]
    assert "pyproject.toml" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
    assert {source.split("/")[0] for source in sources} == kept


def test_installed_extras_exist():
    installed = re.findall(r"'\.\[([a-z,]+)\]'", "\n".join(instructions("RUN")))
    assert installed == ["serve,postgres"]
    declared = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    assert set(installed[0].split(",")) <= set(declared)


def test_the_server_gets_signals_and_its_output_is_not_held_back():
    assert exec_form("ENTRYPOINT")[0] == "labelspace"  # no shell
    assert environment()["PYTHONUNBUFFERED"] == "1"


def test_without_arguments_it_needs_a_file_of_keys():
    settings = settings_of(exec_form("CMD"))
    assert (settings.host, settings.api_key_file, settings.no_auth) == ("0.0.0.0", KEY_FILE, False)
    assert settings.models == {"demo": "/models/demo"}
    assert settings.database == "sqlite:////state/feedback.db"
    assert json.loads(instructions("VOLUME")[0]) == ["/models", "/state"]


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_health_check_asks_whether_the_server_is_ready(status, code):
    asked = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            """Be quiet."""

    _, option, check = exec_form("HEALTHCHECK")
    (port,) = instructions("EXPOSE")
    assert check.count(f":{port}/") == 1
    assert settings_of(exec_form("CMD")).port == int(port)
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        here = check.replace(f":{port}/", f":{server.server_port}/")
        proxy = {**os.environ, "http_proxy": "http://127.0.0.1:9"}  # where nobody listens
        done = subprocess.run([sys.executable, option, here], env=proxy, capture_output=True, timeout=60, check=False)
    assert (asked, done.returncode) == (["/readyz"], code)


def test_what_the_docs_tell_to_type_is_safe():
    first, second = documented_runs()
    without_keys = settings_of(first[1])
    assert without_keys.no_auth
    assert without_keys.checks_host
    assert "127.0.0.1:8000:8000" in first[0]
    assert second[1] == []
    assert any(word.endswith(f":{KEY_FILE}:ro") for word in second[0])


def test_compose_gives_the_server_keys_and_a_database(compose):
    service = compose["services"]["labelspace"]
    settings = settings_of(service["command"])
    assert settings.api_key_file == KEY_FILE
    assert settings.models == {"demo": "/models/demo"}
    assert settings.database is not None
    user_name, host, name = re.fullmatch(r"postgresql://(\w+)@(\w+)/(\w+)\?service=\w+", settings.database).groups()
    database = compose["services"][host]
    assert (user_name, name) == (database["environment"]["POSTGRES_USER"], database["environment"]["POSTGRES_DB"])
    assert service["depends_on"] == {host: {"condition": "service_healthy"}}
    assert set(database["networks"]) <= set(service["networks"])
    assert compose["networks"]["database"] == {"internal": True}
    assert "ports" not in database
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_compose_has_its_volumes_and_secrets_and_no_password(compose):
    named = [volume.split(":")[0] for each in compose["services"].values() for volume in each["volumes"]]
    assert {name for name in named if not name.startswith(".")} == set(compose["volumes"])
    used = set()
    for each in compose["services"].values():
        paths = re.findall(r"/run/secrets/(\w+)", json.dumps(each))
        assert set(paths) == set(each["secrets"])
        used |= set(paths)
        assert all("PASSWORD" not in name or name.endswith("_FILE") for name in each["environment"])
    assert used == set(compose["secrets"])
    page = read("docs/container.md")
    for secret in compose["secrets"].values():
        assert f"> {secret['file'].removeprefix('./')}\n" in page


def test_compose_keeps_both_services_from_what_they_do_not_need(compose):
    supervisor = pytest.importorskip("labelspace.server.supervisor", reason="the extra serve is not installed")
    for each in compose["services"].values():
        assert each["read_only"]
        assert each["cap_drop"] == ["ALL"]
        assert each["security_opt"] == ["no-new-privileges:true"]
        assert "/tmp" in each["tmpfs"]
    assert compose["services"]["postgres"]["user"] == "postgres"
    assert IMAGE_NAME.fullmatch(compose["services"]["postgres"]["image"])
    service = compose["services"]["labelspace"]
    assert f"kernels:{environment()[VARIABLE]}" in service["volumes"]  # it must be writable
    assert int(service["stop_grace_period"].removesuffix("s")) > supervisor.STOP_SECONDS


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("answers", [True, False])
def test_make_image_builds_where_docker_answers(tmp_path, answers):
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\n[ "$1" = version ] && exit {0 if answers else 1}\necho "called: $*"\n')
    docker.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    quiet = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(
        ["make", "image"], cwd=ROOT, env={**quiet, "PATH": path}, capture_output=True, text=True, check=False
    )
    if answers:
        assert done.returncode == 0, done.stderr
        assert re.search(r"^called: build --tag labelspace .*\.$", done.stdout, re.MULTILINE)
    else:
        said, by_make = done.stderr.splitlines()
        assert said.startswith("docker must be usable, but is missing or its daemon does not answer; ")
        assert "Error 2" in by_make
        assert (done.returncode, done.stdout) == (2, "")
