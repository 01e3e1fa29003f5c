"""The report as a document: whole, escaped, truthful, and small."""

import errno
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_metrics.bounds_file import with_observed_bounds
from skyfall_metrics.errors import InputError
from skyfall_metrics.measures import HEADLINES
from skyfall_metrics.report.contents import report_of
from skyfall_metrics.report.files import write_page
from skyfall_metrics.report.lives import life_of
from skyfall_metrics.report.page import render_page
from skyfall_metrics.report.scales import extent, ticks
from skyfall_metrics.scoring import score
from skyfall_metrics.trace import trace_from_arrays

VOID = {"meta", "hr"}
HOSTILE = ['<script>alert("label")</script>', '"><img src=x onerror=alert(1)>', "</style></svg>&amp;"]


def life(seed, algorithm="learner", *, rows=300, labels="ABA", bounds=None, flat=False, **metadata):
    rng = np.random.default_rng([seed, len(algorithm)])
    climb = np.zeros(rows) if flat else np.tile(np.linspace(0, 1, rows // len(labels)), len(labels))
    named = [label for label in labels for _ in range(rows // len(labels))]
    known = {"algorithm_id": algorithm, "task": "t", "seed": seed, "run_id": f"{algorithm}-{seed}"} | metadata
    noise = 0 if flat else 0.1 * rng.standard_normal(rows)
    trace = trace_from_arrays(climb + noise, named, metadata=known)
    return life_of(trace, score(trace, bounds=bounds))


def page_of(*lives, title="Runs"):
    return render_page(report_of(lives, title=title))


class Document(HTMLParser):
    """Reads a page strictly: every element is closed in order, attributes and identifiers are unique."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.tags, self.links, self.rows = [], [], [], [], []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self._note(tag, attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID or "svg" in self.open
        self._note(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text += data

    def _note(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names))
        attributes = dict(attrs)
        self.tags.append(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes[name] for name in ("href", "src") if name in attributes]
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append(attributes["data-value"])


def test_document_is_well_formed_and_refers_only_to_itself():
    document = Document(page_of(life(0), life(1), life(0, "frozen", flat=True)))
    assert len(document.ids) == len(set(document.ids))
    assert document.links
    assert all(link.startswith("#") and link[1:] in document.ids for link in document.links)
    assert not {"link", "img", "iframe", "object"} & set(document.tags)


def test_every_figure_is_an_image_with_a_name_and_a_description():
    page = page_of(life(0), life(1))
    texts = re.findall(r'<svg class="(?:wide|narrow)".*?</svg>', page, re.DOTALL)
    drawings = [ET.fromstring(text) for text in texts]  # noqa: S314 - they were just made here
    assert len(drawings) == 8
    for svg in drawings:
        assert svg.get("role") == "img"
        assert svg.find(f"title[@id='{svg.get('aria-labelledby')}']").text
        assert svg.find(f"desc[@id='{svg.get('aria-describedby')}']").text


def test_the_table_shows_the_scorecards_numbers():
    lives = [life(seed, bounds={"A": 1, "B": 1}) for seed in range(3)]
    rows = [row for row in Document(page_of(*lives)).rows if row and row[0] == "learner"]
    assert len(rows) == 3
    for row, one in zip(rows, lives, strict=True):
        assert row[1:3] == [str(one.card.run.seed), one.card.run.run_id]
        assert [float(value) for value in row[3:]] == [one.card.measures[name].value for name in HEADLINES]


def test_missing_numbers_are_dashes_with_footnotes():
    page = page_of(life(0, labels="AB"))
    document = Document(page)
    row = next(row for row in document.rows if row and row[0] == "learner")
    assert row[5] == ""
    assert row[8] == ""
    section = page[page.index('<section id="runs">') :]
    for reason, number in (("no revisit", 1), ("no bound for &#x27;A&#x27;; no bound for &#x27;B&#x27;", 2)):
        assert f'—<sup><a href="#runs-note-{number}"' in section
        assert f'<li id="runs-note-{number}">{reason}</li>' in section


def test_a_family_with_nothing_to_climb_is_remarked_upon():
    text = Document(page_of(life(0), life(0, "frozen", flat=True))).text
    assert (
        "Nothing to climb after a shift, because the reward settled no higher than it began: "
        "frozen, all 2 shifts. Such a shift counts as adapted at once (speed 1), "
        "by definition and not by skill."
    ) in text


def test_bound_below_the_settled_level_is_called_wrong():
    text = Document(page_of(life(0, bounds={"A": 0.01, "B": 5}))).text
    assert "Settled above the upper bound: learner, A. The bound is wrong, not the run." in text


def test_observed_bounds_are_called_observed():
    cards = with_observed_bounds([one.card for one in (life(0), life(1))])
    lives = [replace(life(seed), card=card) for seed, card in enumerate(cards)]
    text = Document(page_of(*lives)).text
    assert "upper bound, observed among these runs" in text
    assert "bound observed: the best settled level among these runs" in text


def test_different_schedules_and_notes_of_traces_are_told():
    text = Document(page_of(life(0), life(1, labels="AB"))).text
    assert "did not live the schedule of the other" in text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_text_from_a_trace_is_never_markup(hostile):
    bad = life(0, hostile, task=hostile, run_id=hostile, labels=[hostile, "B", hostile])
    page = page_of(bad, life(0), title=hostile)
    document = Document(page)
    assert hostile not in page
    assert hostile in document.text
    assert document.tags.count("script") == 1
    assert "img" not in document.tags


def test_text_that_no_file_can_hold_is_written_all_the_same():
    page_of(life(0, "a\x00b", run_id="\ud800")).encode()


def test_the_same_runs_give_the_same_bytes_in_any_order():
    one, two, three = life(0), life(1), life(0, "other")
    assert page_of(one, two, three) == page_of(three, two, one)


def test_six_long_runs_stay_small():
    lives = [life(seed, family, rows=90_000) for family in ("learner", "other") for seed in range(3)]
    assert len(page_of(*lives).encode()) < 500_000


def test_many_segments_stay_small():
    assert len(page_of(life(0, rows=30_000, labels="AB" * 500)).encode()) < 2_000_000


# the command

ROWS = [
    {"trace_version": 1, "run_id": "r", "algorithm_id": "a", "task": "t", "seed": 0, "step": t, "reward": r}
    | {"terminated": False, "truncated": False, "regime_id": label, "boundary": t in {4, 8}}
    for t, (r, label) in enumerate(zip([0, 1, 1, 1, 0, 0, 0.5, 1, 0.5, 1, 1, 1], "AAAABBBBAAAA", strict=True))
]


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "run" / "traces.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def run(*arguments, prelude=""):
    return subprocess.run(
        [
            sys.executable,
            "-c",
            f"{prelude}\nfrom skyfall_metrics.cli import main; main()",
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_report_writes_one_file_and_prints_its_name(trace, tmp_path):
    target = tmp_path / "out.html"
    done = run("report", trace.parent, "-o", target, "--window", 1, "--hold", 1, "--settled-fraction", 0.5)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{target}\n", "")
    row = next(row for row in Document(target.read_text()).rows if row and row[0] == "a")
    assert row[3:6] == ["0.59375", "0.5", "0.5"]


def test_unwritable_report_is_one_line_and_status_two(trace, tmp_path):
    done = run("report", trace, "-o", tmp_path / "absent" / "report.html")
    assert done.returncode == 2
    assert (
        done.stderr
        == f"error: {tmp_path / 'absent' / 'report.html'}: cannot write: No such file or directory\n"
    )


def test_report_never_overwrites_what_it_is_made_from(trace, tmp_path):
    bounds = tmp_path / "bounds.yaml"
    bounds.write_text("A: 1\n")
    for source in (trace, bounds):
        before = source.read_bytes()
        done = run("report", trace.parent, "--bounds", bounds, "-o", source)
        remedy = "the report is made from this file; name another one with --output"
        assert (done.returncode, done.stderr) == (2, f"error: {source}: {remedy}\n")
        assert source.read_bytes() == before


def test_page_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old")

    def fill_the_disk(path, content):
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", fill_the_disk)
    with pytest.raises(InputError, match=r"report\.html: cannot write: No space left on device"):
        write_page(report_of([life(0)], title="t"), target)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text() == "old"


def test_smallest_reward_there_is_can_be_drawn():
    low, high = extent([5e-324])
    assert ticks(low, high)


def test_figures_without_the_extra_say_what_to_install_before_anything_is_read(tmp_path):
    hidden = "import sys; sys.modules['matplotlib'] = None"
    done = run("report", tmp_path / "absent", "--figures", tmp_path / "figures", prelude=hidden)
    assert done.returncode == 2
    assert done.stderr == "error: --figures: drawing figures needs: pip install 'skyfall-metrics[plots]'\n"


# any run at all


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(-1e100, 1e100)),
            st.sampled_from(["A", "B", "<C & 'D'>"]),
            st.one_of(st.none(), st.floats(0, 1e9)),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_any_run_gives_a_well_formed_page_without_nan(rows):
    reward, labels, rank = zip(*rows, strict=True)
    values = [np.nan if each is None else each for each in reward]
    trace = trace_from_arrays(values, labels, effective_rank=rank)
    page = page_of(life_of(trace, score(trace)))
    Document(page)
    drawings = re.findall(r"<svg .*?</svg>", page, re.DOTALL)
    numbers = [
        value for svg in drawings for value in re.findall(r' (?:d|x|y|cx|cy|width|height)="([^"]*)"', svg)
    ]
    assert not [value for value in numbers if "nan" in value or "inf" in value or "e" in value]
