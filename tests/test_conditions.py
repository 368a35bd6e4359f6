"""Conditions are read, refused with the list of what exists, and written back the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticUndefined

from duplex.conditions import (
    EFFECTS,
    PRESETS,
    VERSION,
    Condition,
    Noise,
    PacketLoss,
    SideSpeech,
    Telephony,
    Tics,
    names,
    parse,
)
from duplex.errors import InputError
from duplex.scenario.options import DuplexOptions


@pytest.mark.parametrize("text", ["clean", "none", "downlink:clean", "clean + none"])
def test_a_clean_line_has_no_effects_and_no_realism(text: str) -> None:
    condition = parse(text)
    assert condition.is_clean
    assert str(condition) == "clean"
    assert condition.as_json(seed=7) == {}


@pytest.mark.parametrize("name", names())
def test_every_name_reads_back_as_itself_on_both_legs(name: str) -> None:
    up = parse(name)
    assert parse(str(up)) == up
    if not all(effect.uplink_only for effect in up.uplink) or up.is_clean:
        down = parse(f"downlink:{name}")
        assert not down.uplink
        assert parse(str(down)) == down


def test_a_name_that_is_both_means_the_preset() -> None:
    both = {preset.name for preset in PRESETS} & {kind.title for kind in EFFECTS}
    assert both == {"telephony", "background_speech", "echo", "packet_loss"}
    assert parse("telephony").uplink == (Telephony(law="mu", gain=1.8),)


def test_presets_are_the_published_figures() -> None:
    (noisy,) = parse("noisy").uplink
    assert noisy.keys() == {"kind": "white", "rms": 1200.0, "drift_db": 0.0}
    (lossy,) = parse("lossy").uplink
    assert isinstance(lossy, PacketLoss)
    assert (lossy.model, lossy.loss, lossy.burst_ms) == ("gilbert_elliott", 0.05, 60)
    realistic = {effect.title: effect.keys() for effect in parse("realistic").uplink}
    assert list(realistic) == [
        "noise",
        "background_speech",
        "echo",
        "telephony",
        "packet_loss",
        "tics",
        "side_speech",
    ]
    assert realistic["noise"]["rms"] == 500
    assert realistic["background_speech"]["gain"] == 0.4
    assert (realistic["echo"]["delay_ms"], realistic["echo"]["gain"]) == (120, 0.25)
    assert (realistic["packet_loss"]["loss"], realistic["packet_loss"]["burst_ms"]) == (0.04, 20)
    assert (realistic["tics"]["every_ms"], realistic["tics"]["length_ms"]) == (3200, 80)
    assert (realistic["side_speech"]["every_ms"], realistic["side_speech"]["length_ms"]) == (
        4600,
        160,
    )


def test_environments_are_a_tenth_as_loud_as_the_caller_unless_told() -> None:
    for name in ("airport", "children_playing", "city", "coffee_shop", "thunderstorm", "train"):
        (bed,) = parse(name).uplink
        assert isinstance(bed, Noise)
        assert bed.gain == 0.1
    (loud,) = parse("COFFEE-SHOP,gain=0.7").uplink
    assert loud == Noise(kind="cafe", gain=0.7)


def test_a_level_given_replaces_the_one_that_stands() -> None:
    assert parse("noisy,snr=0").uplink == (Noise(kind="white", snr=0),)
    assert parse("noise").uplink == (Noise(kind="white", snr=15),)


def test_a_key_of_one_effect_of_a_preset_needs_no_name() -> None:
    by_title = {effect.title: effect for effect in parse("realistic,loss=0.1").uplink}
    loss = by_title["packet_loss"]
    assert isinstance(loss, PacketLoss)
    assert loss.loss == 0.1


def test_effects_compose_in_table_order_however_they_are_given() -> None:
    condition = parse(["packet_loss", "downlink:echo", "telephony", "noise,kind=rain"])
    assert [effect.title for effect in condition.uplink] == ["noise", "telephony", "packet_loss"]
    assert [effect.title for effect in condition.downlink] == ["echo"]


def test_the_downlink_leaves_out_what_a_caller_does() -> None:
    titles = {effect.title for effect in parse("downlink:realistic").downlink}
    assert {"tics", "side_speech"}.isdisjoint(titles)
    assert Tics.uplink_only
    assert SideSpeech.uplink_only


REFUSED = {
    "an unknown name": ("nosy", "did you mean noisy; presets: clean, noisy, telephony"),
    "an empty one": ("", '"" does not exist'),
    "an unknown leg": ("left:noise", "wanted one of: uplink, downlink"),
    "an unknown key": ("noise,loud=1", "wanted one of: kind, snr, gain, rms, drift_db"),
    "a key of a clean line": ("clean,snr=1", "wanted one of: none"),
    "a key of two effects": ("realistic,snr=3", "wanted noise.snr or background_speech.snr"),
    "another effect's key": ("telephony,echo.gain=1", 'no key "echo.gain"'),
    "no value": ("noise,snr", "wanted key=value"),
    "an empty value": ("noise,snr=", "wanted key=value"),
    "a key twice": ("noise,snr=1,snr=2", 'key "snr" is given twice'),
    "words for a number": ("noise,snr=low", 'noise.snr: got "low", wanted a number from -30 to 60'),
    "nan": ("noise,snr=nan", "wanted a number from -30 to 60"),
    "out of range": ("packet_loss,loss=1.5", "wanted a number from 0 to 0.9"),
    "an open bound": ("tics,rate_per_min=0", "wanted a number above 0 to 60"),
    "a fraction for a whole": ("echo,delay_ms=1.5", "wanted a whole number from 1 to 1000"),
    "another choice": ("telephony,law=x", "wanted one of: mu, a"),
    "neither on nor off": ("microphone,agc=perhaps", "wanted on or off"),
    "an unknown kind": ("noise,kind=zoo", "wanted a sound file (.wav .flac .ogg .mp3) or one of"),
    "an unknown burst": ("bursts,kind=zoo", "wanted a folder"),
    "two levels": ("noise,snr=3,rms=100", "wanted one of: snr, gain, rms"),
    "a range turned round": ("bursts,snr_min=5,snr_max=1", "snr_min 5 is above snr_max 1"),
    "a band turned round": ("microphone,low_hz=900,high_hz=800", "is not below high_hz 800"),
    "bursts below a packet": ("lossy,burst_ms=10", "less than a packet of 20 ms"),
    "bursts of half packets": ("packet_loss,burst_ms=50", "no multiple of packet_ms 20"),
    "unreachable loss": ("packet_loss,loss=0.8", "wanted at most 0.6667"),
    "the same effect twice": ("realistic + noisy", "uplink has noise already"),
    "a caller's sound on the downlink": ("downlink:tics", "wanted it on the uplink"),
    "an open quote": ('noise,kind="a.wav', "never closed"),
    "words after a quote": ('noise,kind="a.wav"x', "not quoted to its end"),
}


@pytest.mark.parametrize("text, said", REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_exist_is_refused_with_what_does(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert said in str(caught.value)
    assert str(caught.value).startswith("condition ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["a.wav", "a, b.WAV", 'quo"ted.wav', "x + y.flac", "C:\\s\\r.wav"])
def test_any_path_survives_spelling(path: str) -> None:
    quoted = path.replace('"', '""')
    condition = parse(f'noise,kind="{quoted}",gain=0.5')
    assert condition.uplink == (Noise(kind=path, gain=0.5),)
    assert parse(str(condition)) == condition


_NUMBERS = st.floats(-30, 60, allow_nan=False).map(lambda value: value + 0.0)


@given(
    snr=_NUMBERS,
    loss=st.floats(0, 0.6),
    jitter=st.floats(0, 500),
    agc=st.booleans(),
    leg=st.sampled_from(["", "downlink:"]),
)
def test_every_number_survives_spelling(
    snr: float, loss: float, jitter: float, agc: bool, leg: str
) -> None:
    condition = parse(
        [
            f"{leg}noise,snr={snr!r}",
            f"{leg}packet_loss,loss={loss!r}",
            f"network,jitter_ms={jitter!r}",
            f"microphone,agc={'on' if agc else 'off'}",
        ]
    )
    again = parse(str(condition))
    assert again == condition
    assert str(again) == str(condition)
    assert again.as_json(1) == condition.as_json(1)


def test_json_holds_every_key_the_version_and_the_seed() -> None:
    told = parse("telephony + downlink:lossy").as_json(seed=11)
    assert told == {
        "version": VERSION,
        "seed": 11,
        "uplink": [{"effect": "telephony", "law": "mu", "gain": 1.8}],
        "downlink": [
            {
                "effect": "packet_loss",
                "model": "gilbert_elliott",
                "loss": 0.05,
                "burst_ms": 60.0,
                "packet_ms": 20,
                "concealment": "none",
            }
        ],
    }


def test_every_key_of_every_effect_has_a_default_and_a_description() -> None:
    for kind in EFFECTS:
        kind()
        for name, field in kind.model_fields.items():
            assert field.default is not PydanticUndefined, f"{kind.title}.{name}"
            assert field.description, f"{kind.title}.{name}"


def test_a_scenario_names_conditions_that_exist() -> None:
    with pytest.raises(ValueError, match="presets: clean, noisy"):
        DuplexOptions.model_validate({"conditions": ["loud"]})
    with pytest.raises(ValueError, match="do not compose: uplink has noise already"):
        DuplexOptions.model_validate({"conditions": ["noisy", "realistic"]})


def test_equal_effects_are_equal_conditions_whatever_they_were_called() -> None:
    assert parse("noisy") == parse("noise,rms=1200")
    assert parse("noisy") != parse("noisy,rms=1201")
    assert parse("clean") == Condition()
