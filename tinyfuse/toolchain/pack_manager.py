"""Downloads CMSIS-Packs and their descriptions through cmsis-pack-manager.

Its cache is shared with other tools (pyOCD). The environment's TINYFUSE_PACK_INDEX replaces Arm's index.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import xml.etree.ElementTree as xml
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.toolchain.extras import import_package

INDEX = "http://www.keil.com/pack/index.pidx"

#: version of a release, which becomes part of a path
_VERSION = re.compile(r"\d+\.\d+\.\d+([-+][\w.+-]*)?")

Progress = Callable[[str], None]


def index_url() -> str:
    """Address of the index of all packs: TINYFUSE_PACK_INDEX, else Keil's."""
    return os.environ.get("TINYFUSE_PACK_INDEX") or INDEX


#: data of a device in cmsis-pack-manager
Entry = dict[str, Any]


def open_cache(json_path: str | None = None, vidx_list: str | None = None) -> Any:
    """Opens cmsis-pack-manager's Cache. ToolMissing if it is not installed."""
    return import_package("cmsis_pack_manager").Cache(True, False, json_path=json_path, vidx_list=vidx_list)


def update_descriptions(progress: Progress) -> dict[str, Entry]:
    """Downloads the descriptions (.pdsc) of all packs in the index that are not in the cache yet.

    Returns the devices in them, which replace the cached ones unless there are none.
    """
    url = index_url()
    progress(f"downloading the descriptions of all packs in {url}; the first time takes minutes")
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder:
        vendors = Path(folder, "vendors")
        vendors.write_text(url, encoding="utf-8")
        cache = open_cache(folder, str(vendors))
        _quiet(cache.cache_descriptors)
        devices: dict[str, Entry] = cache.index
        if devices:
            # the result is moved to the cache only if it has devices: an unreachable index gives none, and no error
            kept = Path(open_cache().index_path)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(cache.index_path, kept)
        return devices


def download_pack(vendor: str, name: str, version: str | None, progress: Progress) -> Path:
    """Downloads a .pack file unless it is in the cache, and returns its path.

    `version` "6.0" is the latest 6.0.x, None the latest of all. UsageError for a version that the pack lacks,
    ToolMissing if the download fails.
    """
    from_cache = open_cache()
    data = Path(from_cache.data_path)
    description = _newest_description(data, vendor, name)
    if description is None or (version is not None and _release(description, version) is None):
        update_descriptions(progress)
        description = _newest_description(data, vendor, name)
    if description is None:
        raise ToolMissing(f"the pack {vendor}::{name}", f"{index_url()} does not list it, or can't be reached")
    release = _release(description, version)
    if release is None:
        known = ", ".join(_releases(description))
        raise UsageError(f"{vendor}::{name} has no version {version}; its versions: {known}")
    pack = data / vendor / name / f"{release}.pack"
    if not pack.is_file():
        progress(f"downloading {vendor}::{name} {release}")
        if release != _releases(description)[0]:
            description = _description_of(description, release, data / f"{vendor}.{name}.{release}.pdsc")
        reference = import_package("cmsis_pack_manager").CmsisPackRef(
            vendor, name, _version_in_name(description, vendor, name)
        )
        _quiet(lambda: from_cache.download_pack_list([reference]))
    if not pack.is_file():
        raise ToolMissing(f"the pack {vendor}::{name} {release}", "its server can't be reached, or no longer has it")
    return pack


def _quiet(call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception as error:  # it raises no more specific type
        raise ToolMissing("the index of packs", f"cmsis-pack-manager: {error}") from None


def _newest_description(data: Path, vendor: str, name: str) -> Path | None:
    found = {}
    for path in data.glob(f"{vendor}.{name}.*.pdsc"):
        version = _version_in_name(path, vendor, name)
        if _VERSION.fullmatch(version):
            found[version] = path
    return found[max(found, key=_order)] if found else None


def _version_in_name(description: Path, vendor: str, name: str) -> str:
    return description.name.removeprefix(f"{vendor}.{name}.").removesuffix(".pdsc")


def _order(version: str) -> tuple[list[int], bool]:
    """Sort key: newer versions are greater; a pre-release comes before its release."""
    numbers, _, rest = version.partition("-")
    return [int(n) for n in re.findall(r"\d+", numbers)[:3]], not rest


def _releases(description: Path) -> list[str]:
    """Versions that a description lists, newest first."""
    try:
        root = xml.parse(description).getroot()
    except (xml.ParseError, OSError) as error:
        raise UsageError(f"{description} is not a description of a pack: {error}") from None
    versions = {release.get("version", "") for release in root.iterfind("releases/release")}
    return sorted((v for v in versions if _VERSION.fullmatch(v)), key=_order, reverse=True)


def _release(description: Path, version: str | None) -> str | None:
    known = _releases(description)
    if version is None:
        return next(iter(known), None)
    return next((v for v in known if v == version or v.startswith(f"{version}.")), None)


def _description_of(description: Path, release: str, path: Path) -> Path:
    """Writes the pack's description with only this release to `path`, because cmsis-pack-manager downloads the latest
    one it finds."""
    tree = xml.parse(description)
    releases = tree.find("releases")
    assert releases is not None
    for other in list(releases):
        if other.get("version") != release:
            releases.remove(other)
    partial = path.with_suffix(".part")
    tree.write(partial, encoding="utf-8", xml_declaration=True)
    partial.replace(path)
    return path
