"""Colors by role. The series are those of Okabe and Ito, told apart under every common color blindness.

Roles, not colors, are what figures name: the page maps them to custom properties that differ between light
and dark, files of figures use the light ones. A color never carries meaning alone; names, symbols and numbers
stand beside it.

Source: M. Okabe, K. Ito, "Color Universal Design", 2008 (the eight-color palette).
"""

from __future__ import annotations

__all__ = ["DARK", "LIGHT", "band_color", "css_variables", "series_color"]

_SERIES_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A6A00")
_SERIES_DARK = ("#56B4E9", "#E69F00", "#21C795", "#E2A0C5", "#F0E442", "#7FA8FF", "#C9B458")
_BANDS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#D55E00")


def _roles(series: tuple[str, ...], **others: str) -> dict[str, str]:
    roles = {f"series-{k}": color for k, color in enumerate(series)}
    roles |= {f"band-{k}": color for k, color in enumerate(_BANDS)}
    return roles | others


LIGHT = _roles(
    _SERIES_LIGHT,
    ink="#1b1f24",
    muted="#59636e",
    grid="#d8dee4",
    paper="#ffffff",
    loss="#D55E00",
    gain="#0072B2",
)
"""Role to color on white."""

DARK = _roles(
    _SERIES_DARK,
    ink="#e6edf3",
    muted="#9aa5b1",
    grid="#353c45",
    paper="#12161b",
    loss="#FF7F2A",
    gain="#56B4E9",
)
"""Role to color on near-black: the same hues, lightened where they would drown."""


def series_color(index: int) -> str:
    """Role of the `index`-th series; colors repeat after the seventh."""
    return f"series-{index % len(_SERIES_LIGHT)}"


def band_color(index: int) -> str:
    """Role of the `index`-th configuration's band."""
    return f"band-{index % len(_BANDS)}"


def css_variables(roles: dict[str, str]) -> str:
    """Declarations of custom properties, one a role."""
    return "".join(f"--{role}:{color};" for role, color in roles.items())
