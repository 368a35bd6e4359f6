"""What there is to hear: every bed and every single sound, with what it is.

Names are those that ``conditions`` allows; a test compares both. Nothing here is
rendered before somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from duplex.beds import clips, outside, people
from duplex.beds.tools import Floats, Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class BedEntry:
    """A bed: ``scene`` renders a loop at 24 kHz; None for noise made at the rate asked for."""

    kind: str
    says: str
    scene: Scene | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipEntry:
    """A kind of single sound and the function that makes all its takes."""

    kind: str
    says: str
    takes: Callable[[], list[Floats]]


BEDS: tuple[BedEntry, ...] = (
    BedEntry(kind="white", says="white noise, bell-shaped"),
    BedEntry(kind="pink", says="noise falling 3 dB an octave"),
    BedEntry(kind="brown", says="noise falling 6 dB an octave"),
    BedEntry(kind="babble", says="ten people talk at once", scene=people.babble),
    BedEntry(kind="cafe", says="eight voices in a room, cups, chairs, steam", scene=people.cafe),
    BedEntry(
        kind="street",
        says="traffic rumble, cars passing, a horn now and then",
        scene=outside.street,
    ),
    BedEntry(kind="car", says="inside a car: engine, road, wind", scene=outside.car),
    BedEntry(
        kind="office", says="ventilation, keyboards, distant voices, a phone", scene=people.office
    ),
    BedEntry(
        kind="airport",
        says="the murmur of a hall, trolleys, a chime and an announcement",
        scene=people.airport,
    ),
    BedEntry(kind="train", says="inside a train: rolling, wheels over joints", scene=outside.train),
    BedEntry(
        kind="construction",
        says="hammers, a pneumatic drill, a saw, diesel",
        scene=outside.construction,
    ),
    BedEntry(kind="rain", says="steady rain, gutters", scene=outside.rain),
    BedEntry(kind="thunderstorm", says="rain, gusts, rolling thunder", scene=outside.thunderstorm),
    BedEntry(kind="children", says="six children at play, laughter, a ball", scene=people.children),
    BedEntry(kind="crying_baby", says="an infant wails in a room", scene=people.crying_baby),
    BedEntry(kind="library", says="a quiet hum, pages, a creak, a whisper", scene=people.library),
)

BURSTS: tuple[ClipEntry, ...] = (
    ClipEntry(kind="horn", says="a car's horn", takes=clips.horns),
    ClipEntry(kind="bark", says="a dog barks", takes=clips.barks),
    ClipEntry(kind="door", says="a door falls shut", takes=clips.doors),
    ClipEntry(kind="siren", says="a siren", takes=clips.sirens),
    ClipEntry(kind="phone", says="a telephone rings", takes=clips.phones),
)

TICS: tuple[ClipEntry, ...] = (
    ClipEntry(kind="cough", says="the caller coughs", takes=clips.coughs),
    ClipEntry(kind="throat", says="the caller clears the throat", takes=clips.throats),
    ClipEntry(kind="sniff", says="the caller sniffs", takes=clips.sniffs),
)

SIDE_SPEECH: tuple[ClipEntry, ...] = (
    ClipEntry(kind="side_talk", says="the caller talks to somebody else", takes=clips.side_talks),
)
