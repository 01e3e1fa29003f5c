"""Providers: what a run asks about its configuration."""

from pathlib import Path
from typing import Any

import pytest

from skyfall_core.errors import ConfigError, ScheduleError
from skyfall_core.regime import (
    DEFAULT_REGIME_ID,
    ConstantRegime,
    Regime,
    RegimeProvider,
    RegimeSchedule,
    ScheduledRegime,
)

CONFIG: dict[str, Any] = {
    "regimes": [
        {"regime_id": "a", "duration_steps": 3, "axes": {"g": 1}},
        {"regime_id": "b", "axes": {"g": 2}},
    ]
}


def test_constant_world_never_shifts() -> None:
    provider = ConstantRegime()
    assert DEFAULT_REGIME_ID == "baseline"
    assert {provider.regime_id(step) for step in (0, 1, 10**9)} == {"baseline"}
    assert provider.regime_at(7) == Regime("baseline")
    assert provider.regimes == (Regime("baseline"),)
    assert not any(provider.is_boundary(step) for step in range(10))
    assert provider.next_boundary(0) is None


def test_constant_world_goes_by_the_label_it_is_given() -> None:
    assert ConstantRegime("control").regime_id(5) == "control"


@pytest.mark.parametrize("label", ["", 3, None, True])
def test_label_that_is_no_text_is_refused(label: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        ConstantRegime(label)
    assert str(caught.value) == f"regime_id: {label!r}: expected a non-empty string"


@pytest.mark.parametrize("provider", [ConstantRegime(), ScheduledRegime(CONFIG)])
def test_both_are_providers(provider: Any) -> None:
    assert isinstance(provider, RegimeProvider)


def test_schedule_may_be_built_a_mapping_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "shifts.yaml"
    file.write_text(
        "regimes: [{regime_id: a, duration_steps: 3, axes: {g: 1}}, {regime_id: b, axes: {g: 2}}]\n"
    )
    built = RegimeSchedule.from_dict(CONFIG)
    providers = [
        ScheduledRegime(built),
        ScheduledRegime(CONFIG),
        ScheduledRegime(file),
        ScheduledRegime(str(file)),
        ScheduledRegime.from_yaml_file(file),
        ScheduledRegime.from_dict(CONFIG),
    ]
    assert providers[0].schedule is built
    for provider in providers:
        assert provider.regimes == built.regimes
        for step in range(6):
            assert provider.regime_id(step) == built.regime_id(step)
            assert provider.regime_at(step) == built.regime_at(step)
            assert provider.is_boundary(step) == built.is_boundary(step)
            assert provider.next_boundary(step) == built.next_boundary(step)


def test_schedule_of_another_kind_is_refused_when_it_is_built() -> None:
    with pytest.raises(ScheduleError, match=r"^a schedule is a mapping with 'regimes', not int$"):
        ScheduledRegime(3)  # type: ignore[arg-type]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{tmp_path}/no.yaml: cannot be read: No such file or directory$"):
        ScheduledRegime(tmp_path / "no.yaml")
