"""The files of `changes/`: one sentence each, for the next release."""

from __future__ import annotations

import tomllib

from tests.prose import sentences_of
from tests.simulations import ROOT


def test_a_change_is_one_sentence_of_a_known_type() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
    types = {each["directory"] for each in settings["type"]}
    for file in (ROOT / "changes").iterdir():
        if file.name not in settings["ignore"]:
            _, type, suffix = file.name.split(".")
            assert type in types, file.name
            assert suffix == "md", file.name
            (sentence,) = sentences_of(file.read_text())
            assert len(sentence.split()) <= 30, file.name
