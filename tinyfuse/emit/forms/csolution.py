"""csolution (CMSIS-Toolbox): a software layer (.clayer.yml), which projects list under `layers:`."""

from __future__ import annotations

from tinyfuse.emit.forms.base import Form

FORM = Form(
    "csolution",
    "NAME.clayer.yml: a layer for CMSIS-Toolbox projects",
    {"{layer}": "forms/csolution.clayer.yml.j2"},
    cmsis_nn="package",
)
