"""The list of faults fits the package, and the script that tries them can tell a found fault from a missed one."""

import pytest

from tests import mutants


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_of_every_mutant_stands_once_in_its_file(mutant):
    text = (mutants.ROOT / "companion" / mutant.file).read_text("utf8")
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    assert all((mutants.ROOT / "tests" / name).exists() for name in mutant.tests)


def test_names_of_mutants_are_distinct():
    names = [mutant.name for mutant in mutants.MUTANTS]
    assert len(set(names)) == len(names)


def test_a_fault_that_no_test_finds_is_reported(monkeypatch, capsys):
    found = mutants.Mutant(
        "no rows", "multimodal.py", "sizes[0]), (3, 1))", "sizes[0]), (2, 1))", ("test_multimodal.py",)
    )
    missed = mutants.Mutant(
        "a comma",
        "multimodal.py",
        "(3, *batch, seq_len), got",
        "(3, batch, seq_len), got",
        ("test_multimodal.py",),
    )
    stale = mutants.Mutant("gone", "multimodal.py", "no such text", "", ("test_multimodal.py",))
    monkeypatch.setattr(mutants, "MUTANTS", [found, missed, stale])
    assert mutants.main() == 1
    printed = capsys.readouterr().out
    assert "1 of 3 faults found" in printed
    assert "no rows" in printed and "a comma" in printed.split("faults found")[1] and "STALE" in printed
    assert mutants.main(["unknown"]) == 2


@pytest.mark.parametrize(
    "kernels", [pytest.param(False, marks=pytest.mark.slow), pytest.param(True, marks=pytest.mark.exhaustive)]
)
def test_every_mutant_turns_a_test_red(monkeypatch, kernels):
    chosen = [mutant for mutant in mutants.MUTANTS if (mutant.file == "rope_triton.py") == kernels]
    monkeypatch.setattr(mutants, "MUTANTS", chosen)
    assert mutants.main() == 0
