"""Sounds of our own making: streams of noise in which a doorbell rings and a smoke alarm beeps, among others that are
neither; and the recording that the firmware hears.

    python examples/doorbell/sounds.py      # writes recording.wav
"""

from __future__ import annotations

import sys
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
RECORDING = HERE / "recording.wav"
RATE = 8000  # samples a second
CLASSES = ("nothing", "doorbell", "alarm")

Random = np.random.Generator
Samples = np.ndarray  # float64, about -1 to 1


@dataclass(frozen=True)
class Event:
    """A sound of a class, from sample `start` to before `end`; `known` samples of it are enough to know it."""

    kind: int
    start: int
    end: int
    known: int


# --- sounds ------------------------------------------------------------------------------------


def _time(seconds: float) -> Samples:
    return np.arange(int(seconds * RATE)) / RATE


def _struck(frequency: float, seconds: float, random: Random) -> Samples:
    """A chime's bar: some partials, each of which fades."""
    time = _time(seconds)
    partials = [(1.0, 1.0), (2.0, random.uniform(0, 0.3)), (2.76, random.uniform(0.1, 0.4)), (4.1, 0.1)]
    sound = sum(
        strength * np.exp(-time * ratio / random.uniform(0.25, 0.5)) * np.sin(2 * np.pi * frequency * ratio * time)
        for ratio, strength in partials
        if frequency * ratio < RATE / 2
    )
    return np.asarray(sound) * np.minimum(1, time / 0.004)


def _after(first: Samples, gap: float, second: Samples) -> Samples:
    """Both, the second from `gap` seconds on."""
    start = int(gap * RATE)
    sound = np.zeros(max(first.size, start + second.size))
    sound[: first.size] += first
    sound[start : start + second.size] += second
    return sound


def doorbell(random: Random) -> tuple[Samples, float]:
    """Ding, dong: a tone, and one a third to a fourth below; known a quarter of a second into the second."""
    high, interval, gap = random.uniform(600, 900), random.uniform(1.18, 1.35), random.uniform(0.28, 0.42)
    return _after(_struck(high, 0.9, random), gap, _struck(high / interval, 0.9, random)), gap + 0.25


def alarm(random: Random) -> tuple[Samples, float]:
    """Beeps, known when the third one ends."""
    time, frequency = _time(random.uniform(1.4, 2.2)), random.uniform(2600, 3400)
    on, off = random.uniform(0.1, 0.16), random.uniform(0.08, 0.14)
    beeps = (time % (on + off)) < on
    return np.sin(2 * np.pi * frequency * time) * beeps, 3 * on + 2 * off


def _one_tone(random: Random) -> Samples:
    return _struck(random.uniform(450, 1200), 0.9, random)


def _rising(random: Random) -> Samples:
    low = random.uniform(450, 700)
    second = _struck(low * random.uniform(1.18, 1.35), 0.9, random)
    return _after(_struck(low, 0.9, random), random.uniform(0.28, 0.42), second)


def _knocks(random: Random) -> Samples:
    knock = random.normal(0, 1, int(0.05 * RATE)) * np.exp(-_time(0.05) / 0.01)
    return _after(knock, gap := random.uniform(0.15, 0.3), _after(knock, gap, knock))


def _voice(random: Random) -> Samples:
    """Syllables: pulses of a pitch that glides, coloured by two formants."""
    time = _time(random.uniform(0.5, 1.2))
    phase = np.cumsum(random.uniform(90, 220) * (1 + 0.2 * np.sin(2 * np.pi * random.uniform(1, 3) * time))) / RATE
    formants = random.uniform(300, 900), random.uniform(1000, 2500)
    sound = sum(
        np.sin(2 * np.pi * n * phase) * sum(np.exp(-(((n * 150 - f) / 250) ** 2)) for f in formants)
        for n in range(1, 20)
    )
    return np.asarray(sound) * np.abs(np.sin(2 * np.pi * random.uniform(1.5, 3) * time))


def _whistle(random: Random) -> Samples:
    time = _time(random.uniform(0.3, 0.8))
    start, end = random.uniform(500, 3000, 2)
    return np.sin(2 * np.pi * (start + (end - start) * time / (2 * time[-1])) * time)


def _one_beep(random: Random) -> Samples:
    return np.sin(2 * np.pi * random.uniform(2000, 3600) * _time(random.uniform(0.1, 0.5)))


OTHERS = (_one_tone, _rising, _knocks, _voice, _whistle, _one_beep)
_KNOWN = {1: doorbell, 2: alarm}


# --- streams -----------------------------------------------------------------------------------


def _noise(count: int, random: Random) -> Samples:
    """White noise, some of it smoothed, and the mains' hum."""
    white = random.normal(0, 1, count)
    smooth = np.convolve(white, np.ones(8) / 8, "same")
    hum = np.sin(2 * np.pi * 50 * np.arange(count) / RATE)
    return random.uniform(0.2, 1) * white + random.uniform(0, 2) * smooth + random.uniform(0, 0.5) * hum


def stream(seconds: float, random: Random) -> tuple[np.ndarray, list[Event]]:
    """(int16 samples, the doorbells and alarms among them), a sound every two seconds or so."""
    count = int(seconds * RATE)
    sound, events, at = _noise(count, random) * 10 ** random.uniform(-3, -1.9), [], int(random.uniform(0.5, 1.5) * RATE)
    while at < count - 3 * RATE:
        kind = int(random.choice([0, 0, 1, 2]))
        if kind:
            made, known = _KNOWN[kind](random)
            events.append(Event(kind, at, at + made.size, int(known * RATE)))
        else:
            made = OTHERS[random.integers(len(OTHERS))](random)
        sound[at : at + made.size] += made * random.uniform(0.08, 0.5)
        at += made.size + int(random.uniform(0.2, 1.5) * RATE)
    return as_samples(sound), events


def as_samples(sound: Samples) -> np.ndarray:
    """int16, clipped."""
    return np.clip(np.round(sound * 32767), -32768, 32767).astype(np.int16)


def recording() -> np.ndarray:
    """int16, six seconds: three knocks, a doorbell, a rising chime, an alarm; noise."""
    random = np.random.default_rng(2026)
    sound = _noise(6 * RATE, random) * 0.004
    sounds = ((0.5, _knocks(random)), (1.2, doorbell(random)[0]), (2.6, _rising(random)), (4.1, alarm(random)[0]))
    for at, made in sounds:
        start = int(at * RATE)
        made = made[: sound.size - start]
        sound[start : start + made.size] += 0.3 * made
    return as_samples(sound)


# --- wav ---------------------------------------------------------------------------------------


def write_wav(path: Path, samples: np.ndarray) -> None:
    """A mono file of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", "not compressed"))
        file.writeframes(samples.astype("<i2").tobytes())


def read_wav(path: Path) -> np.ndarray:
    """int16; ValueError for another kind of file than the firmware takes: mono, 16 bits, 8 kHz."""
    with wave.open(str(path), "rb") as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, RATE):
            raise ValueError(f"{path}: must be mono, of 16 bits and {RATE} samples a second")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


if __name__ == "__main__":
    write_wav(RECORDING, recording())
    print(f"{RECORDING}: {RECORDING.stat().st_size:,} bytes", file=sys.stderr)
