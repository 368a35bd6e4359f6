"""Word and character errors: counted as the definition says, and pooled by counts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.metrics.hearing_words import HeardWords, Piece, heard_words, joined
from duplex.metrics.word_errors import Errors, by_utterance, character_errors, word_errors

WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "e7"]), max_size=9)


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Levenshtein distance by its recurrence."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, start=1):
        before, row[0] = row[0], i
        for j, right in enumerate(other, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


@given(WORDS, WORDS)
def test_errors_are_the_edit_distance_over_what_was_said(one: list[str], other: list[str]) -> None:
    errors = word_errors(" ".join(one), " ".join(other))
    assert errors.count == distance(one, other)
    assert errors.said == len(one)
    assert errors.hits + errors.substitutions + errors.insertions == len(other)


@given(WORDS, WORDS)
def test_character_errors_are_the_edit_distance_of_the_characters(
    one: list[str], other: list[str]
) -> None:
    said, heard = " ".join(one), " ".join(other)
    errors = character_errors(f" {said} ", heard)
    assert (errors.count, errors.said) == (distance(said, heard), len(said))


def test_nothing_said_and_nothing_heard_is_no_error_and_no_rate() -> None:
    for count in (word_errors, character_errors):
        assert (count("", "").count, count("", "").rate) == (0, None)


def test_anything_heard_of_nothing_is_added_and_has_no_rate() -> None:
    assert word_errors("", "hello there") == Errors(insertions=2)
    assert character_errors("", "hi you") == Errors(insertions=6)
    assert word_errors("", "hello there").rate is None


def test_nothing_heard_is_all_lost() -> None:
    assert word_errors("hello there", "") == Errors(deletions=2)
    assert word_errors("hello there", " ").rate == 1


def test_a_rate_can_exceed_one() -> None:
    assert word_errors("no", "oh no not that").rate == 3


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4))
def test_counts_add_up_over_calls(calls: list[tuple[list[str], list[str]]]) -> None:
    each = [word_errors(" ".join(said), " ".join(heard)) for said, heard in calls]
    together = sum(each, Errors())
    assert together.count == sum(one.count for one in each)
    assert together.said == sum(len(said) for said, _ in calls)


@given(st.lists(WORDS, max_size=4), WORDS)
def test_utterances_share_out_every_error_and_every_heard_word(
    said: list[list[str]], heard: list[str]
) -> None:
    parts = by_utterance(said, heard)
    assert len(parts) == len(said)
    if said:
        whole = word_errors(" ".join(word for words in said for word in words), " ".join(heard))
        assert sum((part.errors for part in parts), Errors()) == whole
        assert [word for part in parts for word in part.heard] == heard
    assert [part.errors.said for part in parts] == [len(words) for words in said]


# -- of one side -------------------------------------------------------------------


def compared(said: Sequence[Piece], heard: Sequence[Piece]) -> HeardWords:
    return heard_words(said, heard, (), str.lower)


def at(start: float, end: float, text: str) -> Piece:
    return Piece(text=text, start_ms=start, end_ms=end)


def test_two_utterances_heard_as_one_are_no_error() -> None:
    found = compared([at(0, 900, "Hello there"), at(1000, 1900, "it is me")],
                     [at(0, 1900, "hello there it is me")])  # fmt: skip
    assert found.words == Errors(hits=5)
    assert [item.errors.count for item in found.utterances] == [0, 0]
    assert [item.heard_words for item in found.utterances] == [
        ("hello", "there"),
        ("it", "is", "me"),
    ]


@pytest.mark.parametrize("late", [-3_000, 0, 2_500])
def test_late_time_stamps_make_no_errors(late: float) -> None:
    said = [at(1000 * i, 1000 * i + 400, f"number {i} of many") for i in range(10)]
    heard = [at(p.start_ms + late, p.end_ms + late, p.text) for p in said]
    assert compared(said, heard).words == Errors(hits=40)


def test_a_pause_parts_words_and_a_frame_does_not() -> None:
    assert joined([at(0, 200, "two"), at(700, 900, "three")]) == "two three"
    assert joined([at(0, 200, "twen"), at(240, 400, "ty")]) == "twenty"


def test_words_lost_at_one_border_are_not_swapped_for_words_added_at_the_next() -> None:
    found = compared(
        [at(0, 900, "two please"), at(2000, 2900, "maya")],
        [at(0, 900, "two"), at(2000, 2900, "my a")],
    )
    assert [item.errors for item in found.utterances] == [
        Errors(hits=1, deletions=1),
        Errors(substitutions=1, insertions=1),
    ]
    assert found.words.count == 3


def test_words_heard_far_from_any_utterance_are_added_and_belong_to_none() -> None:
    found = compared([at(0, 900, "hello there")],
                     [at(0, 900, "hello"), at(6000, 7000, "there you go")])  # fmt: skip
    assert found.words == Errors(hits=1, deletions=1, insertions=3)
    assert found.utterances[0].heard == "hello"


@given(st.lists(st.tuples(WORDS, WORDS, st.integers(-900, 900), st.integers(0, 2500)), max_size=5))
def test_counts_are_never_below_the_fewest_nor_far_above(
    turns: list[tuple[list[str], list[str], int, int]],
) -> None:
    said, heard, begins = [], [], 0
    for own, other, late, pause in turns:
        begins += pause
        said.append(at(begins, begins + 500, " ".join(own)))
        heard.append(at(begins + late, begins + late + 500, f" {' '.join(other)} "))
        begins += 500
    found = compared(said, heard)
    ordered = sorted(heard, key=lambda piece: piece.start_ms)
    fewest = distance(
        " ".join(piece.text for piece in said).split(),
        " ".join(piece.text for piece in ordered).split(),
    )
    assert fewest <= found.words.count <= 2 * fewest + 2
    assert found.words.said == sum(len(own) for own, *_ in turns)
    assert sum(item.errors.said for item in found.utterances) == found.words.said


def test_words_heard_out_of_order_in_the_log_are_read_by_time() -> None:
    said = [at(0, 900, "one two"), at(1000, 1900, "three four")]
    assert (
        compared(said[::-1], [at(1000, 1900, "three four"), at(0, 900, "one two")]).words.count == 0
    )


def test_raw_errors_take_the_text_as_it_came() -> None:
    found = compared([at(0, 900, "OK, thanks.")], [at(0, 900, "ok thanks")])
    assert found.raw_words == Errors(substitutions=2)
    assert found.raw_characters.count == 4


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([" Hel", "lo", " there", "."], "Hello there."),
        (["Hello.", "I'd like"], "Hello. I'd like"),
        (["at 7", ".", "30"], "at 7. 30"),
        (["  ", " a  b "], "a b"),
        ([], ""),
    ],
)
def test_pieces_join_verbatim_and_sentences_apart(pieces: list[str], text: str) -> None:
    assert joined([at(i, i + 1, piece) for i, piece in enumerate(pieces)]) == text
