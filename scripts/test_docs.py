"""Tests of the scripts that check the pages and their examples: `python -m unittest discover -s scripts`."""

import tempfile
import unittest
from pathlib import Path

from check_docs import link_problem, problems, reader_problem
from check_readme import Workplace, examples, prints
from docs_pages import ROOT, Page, command_reference, parser, read, slug
from docs_site import REFERENCE_PART, LinkReader, parts, turn


def page(name: str, *lines: str) -> Page:
    return read(ROOT / "docs" / name, "\n".join(lines))


def among(*pages: Page) -> dict[Path, Page]:
    return {page.path: page for page in pages}


class Links(unittest.TestCase):
    def test_headings_get_the_anchors_that_github_gives_them(self) -> None:
        # As on GitHub: punctuation is removed, each space becomes a dash, letters of other scripts stay.
        for title, anchor in [
            ("Is it the network?", "is-it-the-network"),
            ("smbscope: what, why & how", "smbscope-what-why--how"),
            ("`--by` and `snap_length`", "--by-and-snap_length"),
            ("Größe in µs", "größe-in-µs"),
        ]:
            heading = read(ROOT / "docs" / "x.md", f"# {title}").headings[0]
            self.assertEqual(heading.anchor, anchor)
        self.assertEqual(slug("A  b"), "a--b")

    def test_headings_of_the_same_name_are_numbered(self) -> None:
        found = page("x.md", "# A", "## B", "## B", "## B")
        self.assertEqual([heading.anchor for heading in found.headings], ["a", "b", "b-1", "b-2"])

    def test_a_link_that_leads_nowhere_is_a_problem(self) -> None:
        here = page("here.md", "# Here", "## There")
        pages = among(here, page("limits.md", "# Limits", "## Reading"))
        for target, problem in [
            ("limits.md#reading", None),
            ("#there", None),
            ("https://example.org/a#b", None),
            ("limits.md#writing", "docs/limits.md has no heading for #writing"),
            ("#nowhere", "docs/here.md has no heading for #nowhere"),
            ("nowhere.md", "there is no such file"),
            ("../../x", "leads out of the repository"),
            ("/etc/passwd", "give a path relative to the page"),
            ("https://", "the address has no host"),
            ("../LICENSE-MIT#x", "only pages have headings to link to"),
        ]:
            self.assertEqual(link_problem(here, target, pages), problem, target)

    def test_pages_are_held_to_titles_levels_and_the_index(self) -> None:
        index = page("README.md", "# Index", "For testers: [a](limits.md)")
        self.assertEqual(list(problems(among(index))), [])
        lost = page("fuzzing.md", "# Lost", "### Deep", "# Again", "![](limits.md)", "[x][y]")
        found = "\n".join(problems(among(index, lost)))
        for expected in [
            "docs/fuzzing.md: wants one title, at the top; has 2",
            "docs/fuzzing.md: the first paragraph wants to begin with who needs the page",
            "docs/fuzzing.md:2: 'Deep' skips a level",
            "docs/fuzzing.md:4: limits.md: a picture needs a text",
            "looks like a link that is not understood: [x][y]",
            "docs/fuzzing.md: docs/README.md does not link to it",
        ]:
            self.assertIn(expected, found)

    def test_a_page_begins_with_who_needs_it(self) -> None:
        for lines, good in [
            (["For anyone who records traffic: how to."], True),
            (["For administrators who", "record: how to."], True),
            (["This page says how to."], False),
            (["For anyone who records traffic."], False),
            (["## For anyone who records: how to", "Text."], False),
            ([], False),
        ]:
            self.assertEqual(reader_problem(page("x.md", "# Title", *lines)) is None, good, lines)
        self.assertIsNone(reader_problem(read(ROOT / "CHANGELOG.md", "# Changes")))

    def test_pages_are_a_book_in_the_order_of_the_index(self) -> None:
        index = page("README.md", "# Index", "## A", "[l](limits.md)", f"## {REFERENCE_PART}", "[f](filter.md)", "## C")
        pages = among(index, page("filter.md", "# F"), page("limits.md", "# L"), page("commands.md", "# All"))
        book = parts(pages)
        names = [(part, [chapter.title for chapter in chapters]) for part, chapters in book]
        self.assertEqual(names, [("", ["Index"]), ("A", ["L"]), (REFERENCE_PART, ["F", "All"])])
        order = [chapter for _, chapters in book for chapter in chapters]
        links = LinkReader()
        links.feed(turn(order[1], order) + turn(order[-1], order) + turn(page("x.md", "# X"), order))
        self.assertEqual(links.targets, ["README.html", "filter.html", "filter.html"])

    def test_the_command_reference_has_the_help_of_every_command(self) -> None:
        program = """#!/bin/sh
case "$*" in
--help) printf 'Usage: s\\n\\nCommands:\\n  lab   Start\\n  help  Print\\n\\nOptions:\\n  --no  No\\n' ;;
"lab --help") printf '\\nCommands:\\n  up  Go\\n' ;;
"lab up --help") echo '--port' ;;
*) exit 1 ;;
esac
"""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "smbscope"
            path.write_text(program, encoding="utf-8")
            path.chmod(0o755)
            found = command_reference(path)
        self.assertEqual([h.text for h in found.headings[1:]], ["smbscope", "smbscope lab", "smbscope lab up"])
        self.assertIsNone(reader_problem(found))

    def test_html_in_a_page_is_shown_and_not_obeyed(self) -> None:
        self.assertIn("&lt;script&gt;", parser().render("<script>"))


class Examples(unittest.TestCase):
    def test_shown_output_is_compared_and_dots_stand_for_anything(self) -> None:
        for output, shown, same in [
            ("a  b\n", ["a b"], True),
            ("a b", ["a b"], True),
            ("a b\n", ["a c"], False),
            ("a b c\n", ["a … c"], True),
            ("1\n2\n3\n", ["1", "…", "3"], True),
            ("1\n3\n", ["1", "…", "3"], True),
            ("1\n2\n", ["1"], False),
            ("1\n2\n", ["1", "…"], True),
            ("1\n\n2\n", ["1", "", "2"], True),
            ("", [], True),
            ("x\n", [], False),
            ("a.b\n", ["a*b"], False),
        ]:
            self.assertEqual(prints(output, shown), same, f"{output!r} {shown}")

    def test_blocks_are_run_by_their_word(self) -> None:
        with tempfile.TemporaryDirectory(dir=ROOT / "docs") as directory:
            path = Path(directory) / "page.md"
            lines = ["```sh", "smbscope a \\", "  b", "ls", "```", "```console", "$ no", "```"]
            lines += ["```console checked", "$ echo 1", "1", "$ echo 2", "```"]
            path.write_text("\n".join(lines), encoding="utf-8")
            found = [(example.line, example.command, example.shown) for example in examples(path)]
        self.assertEqual(found, [(2, "smbscope a b", None), (10, "echo 1", ["1"]), (12, "echo 2", [])])

    def test_every_line_of_a_tutorial_is_run(self) -> None:
        with tempfile.TemporaryDirectory(dir=ROOT / "docs") as directory:
            path = Path(directory) / "tutorial-x.md"
            path.write_text("```sh\nls\n# ls\nsmbscope a\n```\n", encoding="utf-8")
            self.assertEqual([example.command for example in examples(path)], ["ls", "smbscope a"])

    def test_the_captures_of_the_package_stand_for_those_of_the_clone(self) -> None:
        with tempfile.TemporaryDirectory(dir=ROOT / "docs") as directory:
            path = Path(directory) / "page.md"
            packaged = "/usr/share/smbscope/captures"
            lines = ["```console checked", f"$ export A={packaged}", f"$ echo $A/x {packaged}/y"]
            path.write_text("\n".join([*lines, f"{packaged}/x {packaged}/y", "```"]), encoding="utf-8")
            here = Workplace(Path(directory), {"PATH": "/usr/bin:/bin"})
            outcomes = [here.run(example) for example in examples(path)]
        self.assertEqual([(outcome.good, outcome.complaint) for outcome in outcomes], [(True, "")] * 2)

    def test_what_is_exported_holds_for_the_lines_below(self) -> None:
        with tempfile.TemporaryDirectory(dir=ROOT / "docs") as directory:
            path = Path(directory) / "page.md"
            path.write_text("```console checked\n$ export A=1\n$ echo $A\n1\n$ false\n$ echo\n2\n```", encoding="utf-8")
            workplace = Workplace(Path(directory), {"PATH": "/usr/bin:/bin"})
            outcomes = [workplace.run(example).good for example in examples(path)]
        self.assertEqual(outcomes, [True, True, False, False])


if __name__ == "__main__":
    unittest.main()
