"""The English of docstrings, comments and pages: read once, and understood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.prose import pages, prose_of, sentences_of, sources
from tests.simulations import ROOT

# Words that hide the actor or the condition, with better ones.
BANNED = {
    r"tells?|told|telling": "report, print, log, show, return, distinguish",
    r"anew": "again",
    r"whoever|whosoever": "anyone who, a user who",
    r"(is|are|was|were|be) (told|said|had)": "name the actor",
    r"of then": "from that time",
    r"comes? to rest": "settles",
    r"so many|so much": "the number, the amount",
    r"nobody|somebody": "the actor: a user, another client, no handler",
}
# Nine of ten sentences have at most this number of words.
WORDS_MOST = 25
# The most words of a page, without code and tables' lines.
PAGE_MOST = 1500
_WORD = re.compile(r"[^\s|]*\w[^\s|]*")


def found_in(path: Path) -> Iterator[str]:
    for text in prose_of(path):
        for words, better in BANNED.items():
            for each in re.finditer(rf"\b({words})\b", text, re.IGNORECASE):
                near = " ".join(
                    text[max(0, each.start() - 40) : each.end() + 30].split()
                )
                yield f"{path.relative_to(ROOT)}: {near!r}; better: {better}"


@pytest.mark.parametrize(
    "folder",
    ["docs", *sorted({path.parent.relative_to(ROOT).as_posix() for path in sources()})],
)
def test_no_word_hides_who_acts(folder: str) -> None:
    files = (
        pages()
        if folder == "docs"
        else [path for path in sources() if path.parent == ROOT / folder]
    )
    assert [each for path in files for each in found_in(path)] == []


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_sentences_of_a_page_are_short(path: Path) -> None:
    lengths = lengths_in(path)
    assert lengths[int(len(lengths) * 0.9)] <= WORDS_MOST


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_page_is_not_too_long(path: Path) -> None:
    """A longer page is two pages; the index of names and CONTRIBUTING are no pages."""
    words = sum(len(_WORD.findall(text)) for text in prose_of(path))
    assert path.name in ("names.md", "CONTRIBUTING.md") or words <= PAGE_MOST


def test_sentences_of_docstrings_and_comments_are_short() -> None:
    lengths = sorted(each for path in sources() for each in lengths_in(path))
    assert lengths[int(len(lengths) * 0.9)] <= WORDS_MOST


def lengths_in(path: Path) -> list[int]:
    return sorted(
        len(each.split()) for text in prose_of(path) for each in sentences_of(text)
    )
