"""Finds the numbers in a .tflite file and changes them. Tests of hostile files change one field by its name, or many at
random.

Tests of hostile files change a valid file through these: one field by its name, or many at random.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tinyfuse.frontend.flatbuffer_check import Walk
from tinyfuse.frontend.schema import TABLES


@dataclass(frozen=True)
class Site:
    """A number in a file: `format` is struct's."""

    place: str
    position: int
    format: str

    @property
    def size(self) -> int:
        return struct.calcsize(self.format)

    @property
    def field(self) -> str:
        """Last name of the path: Model.subgraphs[0].inputs[3] -> inputs."""
        return self.place.rpartition(".")[2].partition("[")[0]


class _Mapper(Walk):
    """Walks through a file and records every number, also each element of number vectors."""

    _FORMATS: ClassVar = {"int": "<i", "float": "<f", "long": "<q", "ulong": "<Q", "double": "<d"}

    def __init__(self, data: bytes):
        super().__init__(data)
        self.sites: list[Site] = []

    def number(self, format: struct.Struct, position: int, place: str) -> int:
        self.sites.append(Site(place, position, format.format))
        return super().number(format, position, place)

    def table(self, table: str, position: int, place: str) -> None:
        self.layouts.clear()  # each is passed again
        super().table(table, position, place)

    def inside(self, end: int) -> bool:
        return False

    def offsets(self, count: int, position: int, place: str) -> tuple[int, ...]:
        self.sites += [Site(place, position + 2 * i, "<H") for i in range(count)]
        return super().offsets(count, position, place)

    def vector(self, kind: str, position: int, place: str) -> None:
        super().vector(kind, position, place)
        element = kind[1:-1]
        if kind in ("string", "[ubyte]") or element in TABLES:
            return
        format = self._FORMATS[element]
        (length,) = struct.unpack_from("<I", self.data, position)
        for i in range(length):
            at = position + 4 + i * struct.calcsize(format)
            self.sites.append(Site(f"{place}[{i}]", at, format))


def sites(data: bytes, root: str = "Model") -> list[Site]:
    """All numbers of a sound file, in the order of the walk."""
    mapper = _Mapper(data)
    mapper.run(root)
    return mapper.sites


def patch(data: bytes, values: dict[str, float], root: str = "Model") -> bytes:
    """The file with some numbers replaced, by their names in the walk: {"Model.version": 4}. For a field that is an
    offset, the offset changes."""
    found: dict[str, Site] = {}
    for site in sites(data, root):
        found.setdefault(site.place, site)
    changed = bytearray(data)
    for place, value in values.items():
        site = found[place]
        format = site.format if value >= 0 else site.format.lower()  # the walk reads most unsigned
        struct.pack_into(format, changed, site.position, value)
    return bytes(changed)


def mutants(data: bytes, seed: int, root: str = "Model") -> Iterator[bytes]:
    """Endless variants of a sound file, each with one to eight changes; same seed, same variants."""
    mutator = _Mutator(data, random.Random(seed), root)
    while True:
        yield mutator.mutant()


#: of Operator.builtin_options
_OPTIONS_SLOT = next(field.slot for field in TABLES["Operator"] if field.name == "builtin_options")


class _Mutator:
    def __init__(self, data: bytes, chance: random.Random, root: str):
        self.data, self.chance = data, chance
        self.sites = sites(data, root)
        self.fields = [site for site in self.sites if "vtable" not in site.place]
        first: dict[str, Site] = {}
        for site in self.fields:
            first.setdefault(site.place, site)
        # (type, where the vtable has the field, the field) of the options that are walked
        self.unions = []
        for place, site in first.items():
            if place.endswith(".builtin_options"):
                vtable = [s for s in self.sites if s.place == f"the vtable of {place.removesuffix('.builtin_options')}"]
                entry = vtable[1 + _OPTIONS_SLOT]  # after the vtable's size
                self.unions.append((first[f"{place}_type"], entry, site))
        self.alike: dict[str, list[Site]] = {}
        for site in self.sites:
            self.alike.setdefault(site.field, []).append(site)

    def mutant(self) -> bytes:
        changed = bytearray(self.data)
        for _ in range(self.chance.choice((1, 1, 1, 2, 3, 8))):
            kind = self.chance.random()
            if kind < 0.7:
                self.replace(changed)
            elif kind < 0.75 and self.unions:
                self.retype(changed)
            elif kind < 0.9:
                changed[self.chance.randrange(len(changed))] ^= 1 << self.chance.randrange(8)
            else:
                self.cut(changed)
            if not changed:
                break
        return bytes(changed)

    def replace(self, data: bytearray) -> None:
        """Changes a number that the reader examines, most often not one of a vtable."""
        site = self.chance.choice(self.fields if self.chance.random() < 0.8 else self.sites)
        old = int.from_bytes(data[site.position : site.position + site.size], "little")
        value = self.value(site, old) % (1 << 8 * site.size)
        if site.position + site.size <= len(data):
            data[site.position : site.position + site.size] = value.to_bytes(site.size, "little")

    def retype(self, data: bytearray) -> None:
        """Gives an operator's options another type, most often one that is never read, and moves them or the offset to
        them."""
        _, *offsets = self.chance.choice(self.unions)
        offset = self.chance.choice(offsets)
        # operators may share a vtable
        kinds = [kind.position for kind, *others in self.unions if offset.position in [o.position for o in others]]
        end = offset.position + offset.size
        if max([*kinds, end - 1]) < len(data):
            for position in kinds:
                data[position] = self.chance.choice((0, self.chance.randrange(256)))
            elsewhere = self.chance.choice((0, -2, len(data), self.chance.getrandbits(32))) % (1 << 8 * offset.size)
            data[offset.position : end] = elsewhere.to_bytes(offset.size, "little")

    def value(self, site: Site, old: int) -> int:
        chance, bits = self.chance, 8 * site.size
        kind = chance.randrange(5)
        if kind == 0:  # the edges of the type; infinity and NaN
            edge = 1 << (bits - 1)
            return chance.choice((0, 1, -1, edge, edge - 1, 0x7F800000, 0x7FC00000))
        if kind == 1:
            return old + chance.choice((-4, -2, -1, 1, 2, 4))
        if kind == 2:  # what the same field says elsewhere
            other = chance.choice(self.alike[site.field])
            return int.from_bytes(self.data[other.position : other.position + other.size], "little")
        if kind == 3:  # an offset to where some other number lies
            return chance.choice(self.sites).position - site.position
        return chance.getrandbits(chance.randrange(1, bits + 1))

    def cut(self, data: bytearray) -> None:
        """Truncates the file, removes a range, or inserts one."""
        start = self.chance.randrange(len(data))
        kind, length = self.chance.randrange(3), self.chance.choice((1, 2, 4, 16, 64))
        if kind == 0:
            del data[start:]
        elif kind == 1:
            del data[start : start + length]
        else:
            data[start:start] = self.chance.randbytes(length)
