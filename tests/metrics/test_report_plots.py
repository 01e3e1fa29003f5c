"""Figures as files: drawn by matplotlib from the descriptions that the page is drawn from."""

from xml.etree import ElementTree as ET

import pytest

from skyfall_metrics.errors import InputError
from skyfall_metrics.parameters import Parameters
from skyfall_metrics.report.contents import report_of
from skyfall_metrics.report.curves import reward_figure
from skyfall_metrics.report.files import write_figures
from skyfall_metrics.report.formats import FigureFormat
from skyfall_metrics.report.lives import life_of
from skyfall_metrics.scoring import score
from skyfall_metrics.trace import trace_from_arrays

pytest.importorskip("matplotlib", reason="matplotlib (extra plots) is not installed")
from skyfall_metrics.report.plots import save_figures

LABEL = "$A_1$ <b> & \\frac"


@pytest.fixture(scope="module")
def report():
    rewards = [0, 1, 1, 1, 0, 0, 0.5, 1, 0.5, 1, 1, 1]
    labels = [LABEL if k < 4 or k > 7 else "B" for k in range(12)]
    trace = trace_from_arrays(rewards, labels, effective_rank=range(12), metadata={"algorithm_id": "learner"})
    card = score(trace, Parameters(window=1, hold=1, settled_fraction=0.5), bounds={"B": 1})
    return report_of([life_of(trace, card)], title="t")


@pytest.fixture(scope="module")
def drawings(report, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures") / "made" / "on demand"
    return write_figures(report, folder, FigureFormat.SVG)


@pytest.mark.parametrize("form", FigureFormat)
def test_label_in_any_script_is_drawn_without_a_warning(tmp_path, form):
    trace = trace_from_arrays([0, 1, 1, 0], ["漢字", "漢字", "B", "B"])
    report = report_of([life_of(trace, score(trace))], title="t")
    paths = write_figures(report, tmp_path, form)
    if form is FigureFormat.SVG:
        assert any("漢字" in path.read_text(encoding="utf-8") for path in paths)


def test_every_figure_becomes_a_file(drawings):
    names = [path.name for path in drawings]
    assert names == [
        "reward.svg",
        "configurations.svg",
        "metrics.svg",
        "forgetting.svg",
        "effective-rank.svg",
    ]


def test_labels_are_text_and_no_formulas(drawings):
    root = ET.parse(drawings[0]).getroot()  # noqa: S314 - it was just made here
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert LABEL in texts
    assert "learner (1 run)" in texts


def test_the_same_figure_gives_the_same_bytes(report, drawings, tmp_path):
    again = save_figures([reward_figure(report.families)], tmp_path, FigureFormat.SVG)
    assert again[0].read_bytes() == drawings[0].read_bytes()


def test_png_is_written_too(report, tmp_path):
    (path,) = save_figures([reward_figure(report.families)], tmp_path, FigureFormat.PNG)
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_folder_that_cannot_be_made_is_named(report, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file.*cannot write: "):
        write_figures(report, tmp_path / "file", FigureFormat.PNG)
