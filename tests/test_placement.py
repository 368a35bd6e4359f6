"""A session's milliseconds land where its audio was played."""

from __future__ import annotations

from duplex.placement import Placement
from duplex.values import Happening, Json

RATE = 24_000


def label(start_ms: int, end_ms: int, direction: str = "said") -> Happening:
    fields: dict[str, Json] = {"text": "x", "direction": direction}
    return Happening(type="transcript", fields=fields | {"start_ms": start_ms, "end_ms": end_ms})


def test_a_label_waits_until_its_audio_was_played_and_moves_by_the_hold() -> None:
    place = Placement(RATE)
    hold, tick = 2880, 480
    assert place.place(label(0, 100)) == []
    ready: list[Happening] = []
    for n in range(1, 20):
        position = n * tick
        if position == hold + tick:
            place.moved(0, hold)
        ready += place.note(position, max(0, position - hold))
    assert [(h.fields["start"], h.fields["end"]) for h in ready] == [(hold, hold + 2400)]


def test_silence_dropped_later_moves_only_later_labels() -> None:
    place = Placement(RATE)
    place.moved(0, 2400)
    place.note(4800, 2400)
    place.moved(4800, -2400)
    place.note(7200, 7200)
    early, late = label(0, 100), label(200, 300)
    assert place.place(early)[0].fields["start"] == 2400
    assert place.place(late)[0].fields["start"] == 4800


def test_heard_words_are_already_on_the_timeline() -> None:
    place = Placement(RATE)
    (placed,) = place.place(label(1000, 1500, "heard"))
    assert (placed.fields["start"], placed.fields["end"]) == (24_000, 36_000)


def test_samples_that_never_reached_the_ring_do_not_shift_what_follows() -> None:
    place = Placement(RATE)
    place.fed(4800, 2400)
    place.note(2400, 2400)
    place.note(4800, 4800)
    (placed,) = place.place(label(200, 250))
    assert placed.fields["start"] == 2400


def test_what_was_never_played_is_placed_at_the_end_of_the_call() -> None:
    place = Placement(RATE)
    place.note(4800, 2400)
    place.place(label(90, 5000))
    (placed,) = place.flush()
    assert placed.fields["end"] == 4800


def test_other_happenings_pass_untouched() -> None:
    place = Placement(RATE)
    other = Happening(type="agenda", fields={"item_id": "a", "status": "completed"})
    assert place.place(other) == [other]
