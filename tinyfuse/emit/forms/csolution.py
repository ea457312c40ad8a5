"""csolution (CMSIS-Toolbox): a layer, which projects name under `layers:`."""

from __future__ import annotations

from tinyfuse.emit.forms.base import Form

FORM = Form(
    "csolution",
    "NAME.clayer.yml: a layer for CMSIS-Toolbox projects",
    {"{layer}": "forms/csolution.clayer.yml.j2"},
    cmsis_nn="package",
)
