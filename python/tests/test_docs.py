"""What the documentation shows, runs: docs/python.md, the notebook, the example that type checkers check."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from conftest import OFFICE, ROOT, needs_samba


def blocks() -> list[str]:
    """The examples of the page, in their order."""
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)


def test_the_examples_of_the_page_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_samba()
    (tmp_path / "capture.pcap.zst").symlink_to(OFFICE)
    (tmp_path / "before.pcap.zst").symlink_to(OFFICE)
    (tmp_path / "after.pcap.zst").symlink_to(ROOT / "tests" / "data" / "demo-slow-server.pcap.zst")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    assert len(blocks()) >= 6
    for number, block in enumerate(blocks()):
        exec(compile(block, f"docs/python.md, example {number + 1}", "exec"), names)
    assert (tmp_path / "report.html").exists()


def test_the_notebook_shows_what_its_cells_print() -> None:
    """SMBSCOPE_UPDATE_NOTEBOOK=1 writes the outputs instead."""
    path = ROOT / "docs" / "notebook.ipynb"
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    kept = shown(notebook)
    resources = {"metadata": {"path": ROOT / "docs"}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
    if os.environ.get("SMBSCOPE_UPDATE_NOTEBOOK"):
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")  # type: ignore[no-untyped-call]
    else:
        assert kept == shown(notebook)
    assert "<strong>Server: " in shown(notebook)[0]["text/html"]


def shown(notebook: nbformat.NotebookNode) -> list[dict[str, str]]:
    """The outputs of a notebook's cells, by their kind."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [dict(output["data"]) for cell in cells for output in cell.outputs]


def test_the_example_runs() -> None:
    example = Path(__file__).parent / "example.py"
    done = subprocess.run([sys.executable, "-P", example, OFFICE], capture_output=True, text=True, check=True)
    count, *names = done.stdout.split()
    assert int(count) > 0 and "READ" in names
    done = subprocess.run([sys.executable, "-P", example, "nothing"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
