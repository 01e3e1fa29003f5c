"""The sentences of a report: what it is about, what to beware of, how it was scored."""

from __future__ import annotations

from collections.abc import Sequence

from skyfall_metrics.measures import HEADLINES
from skyfall_metrics.report.contents import Report
from skyfall_metrics.report.levels import headline_measures
from skyfall_metrics.report.lives import Family
from skyfall_metrics.report.summaries import remarks_of
from skyfall_metrics.trace import counted

__all__ = ["life_in_words", "method", "notices"]

_MOST_NAMED = 4
"""Names in a sentence; beyond these it counts."""

_DEFINITIONS = {
    "reward": "Mean reward under each configuration, all visits together; each configuration counts once.",
    "adaptation_speed": "1 − τ/n after each shift: the share of a segment's n rows that was left when the "
    "smoothed reward had climbed most of the way to its settled level and stayed there.",
    "forgetting": "When a configuration returns: best earlier settled level minus the level it opens with.",
    "recovery_steps": "Rows after each shift until the smoothed reward is back near the level before it "
    "and stays there.",
    "stability": "Standard deviation of the smoothed reward in the settled parts, weighted by rows.",
    "gap": "Upper bound of a configuration minus the settled level of its last visit.",
}


def life_in_words(families: Sequence[Family]) -> str:
    """How many runs of what, and how long they were."""
    cards = [card for family in families for card in family.cards]
    tasks = sorted({card.run.task for card in cards if card.run.task})
    rows = counted(sum(card.rows for card in cards), "row")
    shifts = counted(sum(card.shifts for card in cards), "shift")
    if len(families) > _MOST_NAMED:
        of = f"{counted(len(cards), 'run')} of {len(families)} families"
    else:
        of = ", ".join(f"{counted(len(family.lives), 'run')} of {family.name}" for family in families)
    on = f" on {tasks[0]}" if len(tasks) == 1 else ""
    return f"{of}{on}: {rows}, {shifts}."


def notices(report: Report) -> list[str]:
    """What must be read beside the numbers, notes about single traces at the end."""
    found = remarks_of(report.families)
    found += [note.message for note in report.comparison.warnings]
    cards = [card for family in report.families for card in family.cards]
    missing = [
        f"{card.run.path or card.run.title()} ({counted(card.missing_rewards, 'row')})"
        for card in cards
        if card.missing_rewards
    ]
    if missing:
        more = f" and {counted(len(missing) - _MOST_NAMED, 'run')} more" if len(missing) > _MOST_NAMED else ""
        found.append(f"Rewards missing, left out of every mean: {', '.join(missing[:_MOST_NAMED])}{more}.")
    return found + [f"{c.run.path or c.run.title()}: {note.message}." for c in cards for note in c.notes]


def method(report: Report) -> tuple[str, dict[str, str]]:
    """The settings in a sentence, and the metrics' definitions by title."""
    used = [card.parameters for family in report.families for card in family.cards]
    bootstrap = report.bootstrap

    def of(name: str) -> str:
        values = (getattr(parameters, name) for parameters in used)
        return " or ".join(sorted({f"{v:g}" if isinstance(v, float) else str(v) for v in values}))

    settings = (
        f"Moving average over {of('window')} rows ({of('window_chosen')}); a level counts once it is held "
        f"for {of('hold')} rows ({of('hold_chosen')}); settled is the last {of('settled_fraction')} of a "
        f"segment, adapted {of('adaptation_level')} of the rise, recovered {of('recovery_level')} of the "
        "level before. "
        f"Intervals: {bootstrap.confidence:.0%} percentile bootstrap of the interquartile mean over runs, "
        f"{bootstrap.resamples:,} resamples, seed {bootstrap.seed}."
    )
    titles = {measure.name: measure.title for measure in headline_measures()}
    return settings, {titles[name]: _DEFINITIONS[name] for name in HEADLINES}
