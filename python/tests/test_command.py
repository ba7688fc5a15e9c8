"""The command that the wheel installs, and the verbs that run it."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import smbscope
from conftest import COMMAND, OFFICE, SMB1, cli, needs_samba, unpacked
from smbscope import _command

# What stands in a terminal or a file makes no sense as an option of a function.
NOT_IN_PYTHON = {
    "analyze": {
        *("format", "full", "classic", "output", "csv_raw", "top", "color", "width", "quiet", "verbose", "help"),
        *("fail_if", "junit"),
    },
    "bench": {"format", "full", "color", "width", "quiet", "verbose", "plain", "help"},
    "compare": {"format", "output", "color", "width", "quiet", "verbose", "help"},
    "predict": {"format", "output", "color", "width", "quiet", "verbose", "help"},
    "study": {"format", "dry_run", "color", "width", "quiet", "verbose", "help"},
}


@pytest.mark.parametrize("verb", NOT_IN_PYTHON)
def test_functions_have_the_options_of_the_command_line(verb: str) -> None:
    options = {name.replace("-", "_") for name in re.findall(r"^ +(?:-\w, )?--([a-z-]+)", cli(verb, "--help"), re.M)}
    function = inspect.signature(getattr(smbscope, verb)).parameters.values()
    # A keyword that Python reserves has an underscore: from_.
    keywords = {parameter.name.rstrip("_") for parameter in function if parameter.kind is parameter.KEYWORD_ONLY}
    assert keywords - {"password"} == options - NOT_IN_PYTHON[verb]


def test_the_command_is_the_same_as_the_module() -> None:
    module = [sys.executable, "-P", "-m", "smbscope"]
    assert cli("--version") == f"smbscope {smbscope.__version__}\n"
    for line, status in (("--version", 0), ("analyze", 2), ("analyze nothing.pcap", 1)):
        runs = [subprocess.run([*how, *line.split()], capture_output=True, check=False) for how in (module, [COMMAND])]
        assert [run.returncode for run in runs] == [status, status]
        assert runs[0].stdout == runs[1].stdout and runs[0].stderr == runs[1].stderr


def test_a_reader_that_goes_away_is_no_failure() -> None:
    line = f"'{COMMAND}' analyze --format csv '{OFFICE}' | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("exchange_id,") and done.stdout.endswith("\n0\n") and done.stderr == ""


def test_ctrl_c_ends_the_command_with_what_was_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = subprocess.Popen([COMMAND, "analyze", pipe], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pipe.open("wb") as writer:
        writer.write(unpacked(OFFICE))
        writer.flush()
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        printed, said = child.communicate(timeout=20)
    assert child.returncode == 130, said
    assert "interrupted" in said and "Traceback" not in said and printed


def test_a_prediction_is_that_of_the_command_line() -> None:
    changes = ["rtt=20ms", "server=2x"]
    prediction = smbscope.predict(OFFICE, if_=changes)
    printed = cli("predict", "-q", "--format", "json", *(f"--if={change}" for change in changes), OFFICE)
    assert prediction.to_json() == printed
    assert [row["change"] for row in prediction.predictions.to_pylist()] == changes
    assert len(prediction.users) == 0 and prediction.to_html().startswith("<!doctype html>")
    assert prediction.to_dict()["headline"] in prediction._repr_html_()
    with pytest.raises(smbscope.ArgumentError, match="unknown change"):
        smbscope.predict(OFFICE, if_="faster")


def test_a_comparison_is_that_of_the_command_line() -> None:
    comparison = smbscope.compare(SMB1, OFFICE, name=["old", "new"], title="T")
    names = ["--name", "old", "--name", "new", "--title", "T"]
    assert comparison.to_json() == cli("compare", "-q", "--format", "json", *names, SMB1, OFFICE)
    assert len(comparison.commands) == len(comparison.to_dict()["commands"]) > 0
    assert comparison.to_html().startswith("<!doctype html>")
    repeated = smbscope.compare([SMB1, SMB1], [OFFICE, OFFICE])
    assert len(repeated.to_dict()["columns"]) == 2


def test_a_limit_that_is_exceeded_is_an_error() -> None:
    with pytest.raises(smbscope.LimitError, match=r"count|commands"):
        smbscope.compare(OFFICE, SMB1, fail_if="commands < 1000x", strict=True)


def test_what_a_run_says_becomes_an_exception(tmp_path: Path) -> None:
    with pytest.raises(smbscope.ArgumentError, match="--users"):
        smbscope.bench(users="none")
    with pytest.raises(smbscope.RunError, match="cannot open"):
        smbscope.compare(tmp_path / "a", tmp_path / "b")
    with pytest.raises(smbscope.RunError):
        smbscope.study(tmp_path / "none.toml", output=tmp_path / "out")


def test_a_password_is_in_no_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[str], dict[str, str]]] = []

    class Child(subprocess.Popen[str]):
        def __init__(self, line: list[str], **options: object) -> None:
            environment = options["env"]
            assert isinstance(environment, dict)
            seen.append((line, environment))
            raise OSError("enough is known")

    monkeypatch.setattr(subprocess, "Popen", Child)
    with pytest.raises(OSError, match="enough"):
        smbscope.bench("smb://ann@files/share", password="correct horse")
    [(line, environment)] = seen
    assert environment["SMBSCOPE_PASSWORD"] == "correct horse" and "correct horse" not in " ".join(line)


def test_options_become_arguments() -> None:
    options = {
        "no_findings": True,
        "port": (445, 139),
        "by": "client",
        "capture": False,
        "title": None,
        "output": Path("x"),
    }
    expected = ["--no-findings", "--port=445", "--port=139", "--by=client", "--output=x"]
    assert _command.arguments(options) == expected


def test_a_run_on_a_private_server_is_measured_and_kept(tmp_path: Path) -> None:
    needs_samba()
    run = smbscope.bench(
        users="1,2", duration="500ms", warmup="0s", workload="echo", output=tmp_path / "run", title="T"
    )
    document = run.to_dict()
    assert [point["users"] for point in document["runs"]] == [1, 2] == [row["users"] for row in run.runs.to_pylist()]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["title"] == "T" == document["title"]
    assert run.to_html().startswith("<!doctype html>")
    again = smbscope.compare(tmp_path / "run", tmp_path / "run")
    assert len(again.to_dict()["columns"]) == 2


def test_ctrl_c_ends_a_run(tmp_path: Path) -> None:
    needs_samba()
    code = "import smbscope; smbscope.bench(users=1, duration='60s', workload='echo', output='run')"
    child = subprocess.Popen([sys.executable, "-P", "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    time.sleep(6)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    assert child.returncode != 0 and "KeyboardInterrupt" in said
    # What was measured until then is there.
    assert json.loads((tmp_path / "run" / "run.json").read_text())["runs"][0]["ended"]["how"] == "interrupted"


def test_a_study_is_run(tmp_path: Path) -> None:
    needs_samba()
    file = tmp_path / "study.toml"
    file.write_text(
        'name = "two"\nquestion = "Which is faster?"\nrepetitions = 1\nmeasures = ["ops"]\n'
        '[bench]\nworkload = "echo"\nusers = 1\nduration = "300ms"\nwarmup = "0s"\n'
        '[[axis]]\nname = "dialect"\n[[axis.setting]]\nname = "3.1.1"\nbench.dialect = "3.1.1"\n'
        '[[axis.setting]]\nname = "2.1"\nbench.dialect = "2.1"\n'
    )
    study = smbscope.study(file, output=tmp_path / "out")
    assert len(study.runs) == 2 == len(study.variants) and len(study.results) > 0
    assert study.to_html().startswith("<!doctype html>")


def test_a_lab_server_is_kept_by_the_command(tmp_path: Path) -> None:
    needs_samba()
    folder = ["--state", str(tmp_path / "lab")]
    cli("lab", "up", "--name", "python", *folder)
    try:
        assert "python" in cli("lab", "status", *folder)
    finally:
        cli("lab", "down", "python", *folder)
