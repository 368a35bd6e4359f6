"""The effects of the line, one model each: what they are called, their keys and bounds.

A model says what is wanted and nothing about how it is done: ``line`` maps models
onto kernels. Keys are spelled as on the command line; times end in ``_ms``, losses
and probabilities are fractions, levels are dB. ``spelling`` and ``presets`` make
models, nobody else does.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

NOISE_KINDS = (
    "white",
    "pink",
    "brown",
    "babble",
    "cafe",
    "street",
    "car",
    "office",
    "airport",
    "train",
    "construction",
    "rain",
    "thunderstorm",
    "children",
    "crying_baby",
    "library",
)
BURST_KINDS = ("any", "horn", "bark", "door", "siren", "phone")
TIC_KINDS = ("any", "cough", "throat", "sniff")

_SOUND_FILES = (".wav", ".flac", ".ogg", ".mp3")
DEFAULT_SNR_DB = 15.0


def complaint(message: str) -> PydanticCustomError:
    """Make a validation error in our words."""
    return PydanticCustomError("duplex", "{message}", {"message": message})


class Effect(BaseModel):
    """Base of all effects; ``title`` is the name, ``says`` what it does to a leg.

    ``alternatives`` are keys of which one stands: giving one replaces the others.
    ``uplink_only`` effects are sounds a caller or a caller's room makes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    title: ClassVar[str]
    says: ClassVar[str]
    alternatives: ClassVar[tuple[str, ...]] = ()
    uplink_only: ClassVar[bool] = False

    def keys(self) -> dict[str, float | int | str | bool]:
        """Every key that stands, in the order of the model; what is left out is None."""
        return {name: value for name, value in self if value is not None}


def _one_of(values: object, names: tuple[str, ...], fallback: dict[str, float]) -> object:
    """Let exactly one of ``names`` stand, the fallback when none was given."""
    if not isinstance(values, dict):
        return values
    given = [name for name in names if values.get(name) is not None]
    if len(given) > 1:
        raise complaint(f"has {' and '.join(given)}, wanted one of: {', '.join(names)}")
    return values if given else values | fallback


class Noise(Effect):
    """A bed of noise under the whole leg."""

    title = "noise"
    says = "a noise bed under the whole leg"
    alternatives = ("snr", "gain", "rms")

    kind: str = Field(
        default="white", description=f"{', '.join(NOISE_KINDS)}, or a sound file", min_length=1
    )
    snr: float | None = Field(
        default=None, ge=-30, le=60, description="dB below the leg's active speech level (P.56)"
    )
    gain: float | None = Field(
        default=None, ge=0, le=1, description="level of the bed; 1 is as loud as the speaker"
    )
    rms: float | None = Field(
        default=None, ge=0, le=16_000, description="level of the bed in int16 steps"
    )
    drift_db: float = Field(
        default=0.0, ge=0, le=12, description="how far the level wanders up and down, slowly"
    )

    @model_validator(mode="before")
    @classmethod
    def _has_one_level(cls, values: object) -> object:
        return _one_of(values, cls.alternatives, {"snr": DEFAULT_SNR_DB})

    @model_validator(mode="after")
    def _kind_exists(self) -> Noise:
        if self.kind not in NOISE_KINDS and not is_sound_file(self.kind):
            raise complaint(
                f'kind "{self.kind}" does not exist, wanted a sound file '
                f"({' '.join(_SOUND_FILES)}) or one of: {', '.join(NOISE_KINDS)}"
            )
        return self


class Bursts(Effect):
    """Loud single sounds, a Poisson process in samples."""

    title = "bursts"
    says = "single loud sounds at random (Poisson) times"

    rate_per_min: float = Field(default=1.0, gt=0, le=60, description="sounds a minute, on average")
    snr_min: float = Field(default=-5.0, ge=-30, le=60, description="the loudest, dB below speech")
    snr_max: float = Field(default=10.0, ge=-30, le=60, description="the softest, dB below speech")
    kind: str = Field(
        default="any", description=f"{', '.join(BURST_KINDS)}, or a folder of WAVs", min_length=1
    )

    @model_validator(mode="after")
    def _is_a_range(self) -> Bursts:
        if self.snr_min > self.snr_max:
            raise complaint(f"snr_min {_num(self.snr_min)} is above snr_max {_num(self.snr_max)}")
        if self.kind not in BURST_KINDS and not _is_folder(self.kind):
            raise complaint(
                f'kind "{self.kind}" does not exist, wanted a folder (with a / in its name) '
                f"or one of: {', '.join(BURST_KINDS)}"
            )
        return self


class BackgroundSpeech(Effect):
    """Other people talking near the speaker."""

    title = "background_speech"
    says = "other people talking nearby, without words of the call"
    alternatives = ("gain", "snr")

    gain: float | None = Field(
        default=None, ge=0, le=1, description="level; 1 is as loud as the speaker"
    )
    snr: float | None = Field(
        default=None, ge=-30, le=60, description="dB below the leg's active speech level (P.56)"
    )
    voices: int = Field(default=2, ge=1, le=8, description="how many talk")

    @model_validator(mode="before")
    @classmethod
    def _has_one_level(cls, values: object) -> object:
        return _one_of(values, cls.alternatives, {"gain": 0.65})


class Echo(Effect):
    """The speaker's own voice, delayed."""

    title = "echo"
    says = "the speaker's own delayed copy"

    delay_ms: int = Field(default=120, ge=1, le=1_000, description="delay of the first copy")
    gain: float = Field(default=0.35, ge=0, le=1, description="level of the first copy")
    decay: float = Field(
        default=0.0, ge=0, le=0.9, description="level of each further copy against the one before"
    )


class AcousticEcho(Effect):
    """The assistant's voice from the loudspeaker in the caller's microphone."""

    title = "acoustic_echo"
    says = "the assistant's voice comes back through the caller's microphone"
    uplink_only = True

    delay_ms: int = Field(default=80, ge=20, le=500, description="loudspeaker to microphone")
    gain: float = Field(default=0.2, ge=0, le=1, description="level of the first copy")
    decay: float = Field(
        default=0.0, ge=0, le=0.9, description="level of each further copy against the one before"
    )


class Reverb(Effect):
    """A room around the speaker."""

    title = "reverb"
    says = "a room around the speaker"

    rt60_ms: int = Field(default=400, ge=50, le=3_000, description="time to decay by 60 dB")
    drr: float = Field(default=6.0, ge=-20, le=40, description="direct sound over the room, dB")


class Microphone(Effect):
    """A microphone that is less than good, or turned away."""

    title = "microphone"
    says = "a worse microphone: band, clipping, offset, level, gain control, few bits"

    low_hz: float = Field(default=100.0, ge=0, le=4_000, description="high-pass; 0 is none")
    high_hz: float = Field(default=7_000.0, ge=0, le=24_000, description="low-pass; 0 is none")
    muffle_prob: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="share of utterances partly turned away (low-pass 1 500 Hz, cross-faded)",
    )
    clip: float = Field(default=0.0, ge=-40, le=0, description="clips at this level, dBov; 0: none")
    dc: float = Field(default=0.0, ge=-0.5, le=0.5, description="offset as a share of full scale")
    level_db: float = Field(default=0.0, ge=-40, le=40, description="gain before clipping, dB")
    agc: bool = Field(default=False, description="automatic gain control")
    bits: int = Field(default=16, ge=2, le=16, description="resolution of the converter")

    @model_validator(mode="after")
    def _has_a_band(self) -> Microphone:
        if self.low_hz and self.high_hz and self.low_hz >= self.high_hz:
            raise complaint(f"low_hz {_num(self.low_hz)} is not below high_hz {_num(self.high_hz)}")
        return self


class Telephony(Effect):
    """A narrow-band telephone line with G.711."""

    title = "telephony"
    says = "a telephone line: 300–3 400 Hz, 8 kHz, G.711 there and back"

    law: Literal["mu", "a"] = Field(default="mu", description="which G.711 table (ITU)")
    gain: float = Field(default=1.8, gt=0, le=4, description="linear gain before the codec")


class PacketLoss(Effect):
    """Lost packets, on the packet clock."""

    title = "packet_loss"
    says = "packets that never arrive"

    model: Literal["iid", "fixed_burst", "gilbert_elliott"] = Field(
        default="fixed_burst",
        description="independent losses, bursts of one length, or a chain of two states",
    )
    loss: float = Field(default=0.08, ge=0, le=0.9, description="share of packets lost")
    burst_ms: float = Field(
        default=40.0, gt=0, le=5_000, description="mean length of a burst (not used by iid)"
    )
    packet_ms: int = Field(default=20, ge=5, le=100, description="length of a packet")
    concealment: Literal["none", "repeat"] = Field(
        default="none", description="what fills the gap: silence, or the last pitch period, fading"
    )

    @model_validator(mode="after")
    def _can_be_reached(self) -> PacketLoss:
        if self.model == "iid":
            return self
        packets = self.burst_ms / self.packet_ms
        if packets < 1:
            raise complaint(
                f"burst_ms {_num(self.burst_ms)} is less than a packet of {self.packet_ms} ms"
            )
        if self.model == "fixed_burst" and packets != int(packets):
            raise complaint(
                f"burst_ms {_num(self.burst_ms)} is no multiple of packet_ms {self.packet_ms}, "
                "which fixed_burst wants"
            )
        most = packets / (1 + packets)
        if self.loss > most:
            raise complaint(
                f"loss {_num(self.loss)} cannot be had with bursts of {_num(packets)} packets, "
                f"wanted at most {_num(round(most, 4))}"
            )
        return self


class Network(Effect):
    """Packets that arrive late, unevenly or out of order."""

    title = "network"
    says = "delay, jitter, reordering and stalls, through the playout buffer of a live leg"

    base_ms: float = Field(default=60.0, ge=0, le=2_000, description="delay every packet has")
    jitter_ms: float = Field(default=20.0, ge=0, le=500, description="mean delay on top of it")
    reorder: float = Field(default=0.0, ge=0, le=0.5, description="share of packets overtaken")
    stall_ms: float = Field(default=300.0, ge=0, le=10_000, description="length of a stall")
    stalls_per_min: float = Field(default=0.0, ge=0, le=30, description="stalls a minute")


class Tics(Effect):
    """Coughs and the like, between the caller's utterances."""

    title = "tics"
    says = "the caller coughs, clears the throat or sniffs while otherwise silent"
    uplink_only = True

    rate_per_min: float = Field(
        default=2.0, gt=0, le=60, description="sounds a minute of silence, on average (Poisson)"
    )
    kind: Literal["any", "cough", "throat", "sniff"] = Field(
        default="any", description="which sound; any draws among them"
    )
    every_ms: int | None = Field(
        default=None, ge=500, le=600_000, description="evenly spaced instead of Poisson"
    )
    length_ms: int | None = Field(
        default=None, ge=20, le=5_000, description="cut to this length; a whole sound otherwise"
    )


class SideSpeech(Effect):
    """The caller talks to somebody else in the room."""

    title = "side_speech"
    says = "the caller talks to somebody else while otherwise silent"
    uplink_only = True

    rate_per_min: float = Field(
        default=1.0, gt=0, le=60, description="remarks a minute of silence, on average (Poisson)"
    )
    kind: Literal["side_talk"] = Field(default="side_talk", description="what is heard")
    every_ms: int | None = Field(
        default=None, ge=500, le=600_000, description="evenly spaced instead of Poisson"
    )
    length_ms: int | None = Field(
        default=None, ge=20, le=5_000, description="cut to this length; a whole remark otherwise"
    )


EFFECTS: tuple[type[Effect], ...] = (
    Noise,
    Bursts,
    BackgroundSpeech,
    Echo,
    AcousticEcho,
    Reverb,
    Microphone,
    Telephony,
    PacketLoss,
    Network,
    Tics,
    SideSpeech,
)
"""All effects in the order in which they compose."""


def is_sound_file(kind: str) -> bool:
    """Whether a bed's kind names a file."""
    return kind.lower().endswith(_SOUND_FILES)


def _is_folder(kind: str) -> bool:
    return "/" in kind or "\\" in kind


def _num(value: float) -> str:
    return f"{value:g}"
