"""Tests of words.py."""

import unittest

from words import page_hits, rust_hits, web_hits


class Words(unittest.TestCase):
    def test_doc_comments_start_with_a_verb_or_a_noun_phrase(self) -> None:
        found = [(hit.line, hit.phrase) for hit in rust_hits("a.rs", "/// What a framer counts.\nstruct Counts;\n")]
        self.assertEqual(found, [(1, "What")])
        self.assertEqual(list(rust_hits("a.rs", "/// Counters of the framer, and\n/// how they grow.\n")), [])

    def test_strings_and_code_are_no_comments(self) -> None:
        self.assertEqual(list(rust_hits("a.rs", 'let text = "// what is read"; let c = \'"\'; // input\n')), [])

    def test_phrases_are_found_in_comments_and_pages(self) -> None:
        self.assertEqual([hit.phrase for hit in rust_hits("a.rs", "// A gap is no error.\n")], ["is no"])
        page = "A gap is no error.\n\n```sh\nwhat is this\n```\n"
        self.assertEqual([(hit.line, hit.phrase) for hit in page_hits("a.md", page)], [(1, "is no")])

    def test_the_web_page_is_checked_in_comments_and_strings(self) -> None:
        text = '/** Whether it is. */\nconst url = "https://x/what is"; // What is a gap\n/* A gap\n is no error. */\n'
        found = [(hit.line, hit.phrase) for hit in web_hits("a.ts", text)]
        self.assertEqual(found, [(1, "Whether"), (2, "what is"), (2, "What is"), (4, "is no")])

    def test_code_of_the_web_page_is_not_checked(self) -> None:
        self.assertEqual(list(web_hits("a.ts", "const beside = { ...behind };\n")), [])


if __name__ == "__main__":
    unittest.main()
