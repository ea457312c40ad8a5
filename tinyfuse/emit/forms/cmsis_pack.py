"""A CMSIS-Pack: VENDOR.NAME.pdsc, and VENDOR.NAME.VERSION.pack, a zip of that and the files that it names."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

from tinyfuse.emit.forms.base import About, Form
from tinyfuse.targets import Target

_WITHOUT_DSP = ("Cortex-M0", "Cortex-M0+", "Cortex-M1", "Cortex-M3", "Cortex-M23", "SC000", "SC300")
_WITH_DSP = ("Cortex-M4", "Cortex-M7")
_DSP_OPTIONAL = ("Cortex-M33", "Cortex-M35P", "Star-MC1")
_MVE_OPTIONAL = ("Cortex-M52", "Cortex-M55", "Cortex-M85")

#: oldest date of a zip, so that packs do not depend on the time
_NO_DATE = (1980, 1, 1, 0, 0, 0)
_UNIX = 3


def _accepted(target: Target) -> list[dict[str, str]]:
    """Cores with exactly the extensions that the plan relies on, as attributes of <accept>; empty if any core will
    do."""
    if target.cpu is None:
        return []
    if target.mve:
        return [{"Dcore": core, "Dmve": mve} for core in _MVE_OPTIONAL for mve in ("MVE", "FP_MVE")]
    dsp = "DSP" if target.dsp else "NO_DSP"
    optional = [{"Dcore": core, "Ddsp": dsp} for core in _DSP_OPTIONAL]
    if not target.dsp:
        return [{"Dcore": core} for core in _WITHOUT_DSP] + optional
    return [{"Dcore": core} for core in _WITH_DSP] + optional + [
        {"Dcore": core, "Dmve": "NO_MVE"} for core in _MVE_OPTIONAL
    ]  # fmt: skip


def _pack(name: str, about: About, files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """Name and content of the pack. Files are stored, because deflated bytes depend on zlib's version."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for file, data in sorted(files.items()):
            entry = zipfile.ZipInfo(file, _NO_DATE)
            entry.create_system = _UNIX  # the default depends on the system that runs this
            archive.writestr(entry, data)
    return f"{about.vendor}.{name}.{about.version}.pack", packed.getvalue()


FORM = Form(
    "cmsis-pack",
    "a .pack with its .pdsc, for MDK, CubeMX and CMSIS-Toolbox",
    {"{vendor}.{name}.pdsc": "forms/cmsis_pack.pdsc.j2"},
    cmsis_nn="package",
    context=lambda known: {"accepted": _accepted(known["target"])},
    archive=_pack,
)
