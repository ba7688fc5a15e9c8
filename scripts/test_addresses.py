"""Addresses of the project: they are declared in Cargo.toml, and nothing else names another one."""

import re
import subprocess
import tomllib
import unittest
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# An address with the name of the project in it, up to a character that ends it in text, Markdown, TOML, JSON or code.
ADDRESS = re.compile(r"(?:https?|git|ssh)://[^\s\"'`<>()\[\]|{}]*smbscope[^\s\"'`<>()\[\]|{}]*", re.I)
# Pages are read wherever the repository is hosted, and link within it.
PAGES = (".md", ".ipynb")


def declared() -> set[str]:
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    return {package["repository"], package["homepage"]}


def named() -> Iterator[tuple[str, str]]:
    """Yields each tracked text file that names an address of the project, with the address."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    for name in listed.decode().split("\0")[:-1]:
        path = ROOT / name
        if path == Path(__file__).resolve() or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        yield from ((name, found.rstrip(".,;:")) for found in ADDRESS.findall(text))


class Addresses(unittest.TestCase):
    def test_every_address_is_one_that_cargo_toml_declares_or_lies_below_it(self) -> None:
        known = declared()
        found = list(named())
        self.assertIn("Cargo.toml", {name for name, _ in found})
        for name, address in found:
            below = any(address == one or address.startswith(f"{one}/") for one in known)
            self.assertTrue(below, f"{name}: {address} is not below {', '.join(sorted(known))}")

    def test_pages_name_no_address_of_the_project(self) -> None:
        self.assertEqual([(name, address) for name, address in named() if name.endswith(PAGES)], [])


if __name__ == "__main__":
    unittest.main()
