"""`tinyfuse cmsis-nn install`: installs CMSIS-NN as a CMSIS-Pack, where `find_cmsis_nn` finds it."""

from __future__ import annotations

from tinyfuse.errors import ToolMissing
from tinyfuse.toolchain.cmsis_nn.find import find_cmsis_nn
from tinyfuse.toolchain.cmsis_nn.tree import Tree
from tinyfuse.toolchain.pack_manager import Progress, download_pack


def install(version: str | None, progress: Progress) -> Tree:
    """Installs Arm's pack CMSIS-NN in that version ("6.0"; None for the latest), and returns its tree.

    It is downloaded into cmsis-pack-manager's cache unless it is there, with CMSIS core if it needs that. ToolMissing
    if a download fails, UsageError for a version that does not exist or that tinyfuse cannot use.
    """
    pack = download_pack("ARM", "CMSIS-NN", version, progress)
    try:
        tree = find_cmsis_nn(str(pack))
    except ToolMissing:  # 4.0 includes headers of CMSIS core
        download_pack("ARM", "CMSIS", None, progress)
        tree = find_cmsis_nn(str(pack))
    assert tree is not None
    return tree
