"""What an environment may offer beyond Gymnasium's interface. Re-exports `skyfall_core.protocols`."""

from skyfall_core.protocols import (
    DEFAULT_REGIME_ID,
    SAVED,
    BindsRegime,
    DescribesRuns,
    RestorablePolicy,
    RestoredByKwargs,
    ResumesWorlds,
    SavesState,
    capability,
    describe_run,
    record_from_info,
    regime_from_info,
    regime_origin_from_info,
)

__all__ = [
    "DEFAULT_REGIME_ID",
    "SAVED",
    "BindsRegime",
    "DescribesRuns",
    "RestorablePolicy",
    "RestoredByKwargs",
    "ResumesWorlds",
    "SavesState",
    "capability",
    "describe_run",
    "record_from_info",
    "regime_from_info",
    "regime_origin_from_info",
]
