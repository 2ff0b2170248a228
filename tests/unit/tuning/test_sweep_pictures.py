"""Pictures of sweeps: every trial has a place in any space, and nothing is outside of the picture."""

import math
import re
import sys
import xml.etree.ElementTree as xml
from dataclasses import replace

import pytest
from tests.made_sweeps import sweep_of

from trainmaster.job.errors import RunEnvironmentException, UserErrorException
from trainmaster.sdk.sweeps.pictures import KINDS, picture
from trainmaster.sdk.sweeps.pictures.axes import metric_axis, parameter_axes
from trainmaster.sdk.sweeps.pictures.colours import BEST, CUT
from trainmaster.sdk.sweeps.pictures.shapes import Box, Curve, Dot, Label, Line
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.parameter_expressions import choice, lognormal, loguniform, normal, quniform, randint, uniform

SGD = {"--optimizer": "sgd", "--momentum": uniform(0.5, 0.99)}
SPACES = {
    "one": {"--lr": loguniform(-9, -1)},
    "branches": {"--lr": uniform(0, 1), "rest": choice(SGD, {"--optimizer": "adam"})},
    "text": {
        "name": choice("a" * 300, "<b>&", "c\x1b[31m"),
        "flag": choice(True, False),
        "list": choice([[1, 2], [3]]),
    },
    "numbers": {"n": choice(list(range(100))), "r": randint(5), "q": quniform(0, 100, 10), "x": normal(0, 1)},
    "constant": {"c": choice(3), "l": lognormal(0, 0)},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("count", [0, 1, 3, 60])
def test_everything_is_inside(kind, name, count):
    drawing = picture(sweep_of(count, space=SPACES[name], going=count // 10), kind)
    for x, y in (point for shape in drawing.shapes for point in points(shape)):
        assert 0 <= x <= drawing.width and 0 <= y <= drawing.height
    root = xml.fromstring(drawing.svg())
    assert root.tag.endswith("svg")


def points(shape):
    if isinstance(shape, Line | Curve):
        return shape.points
    if isinstance(shape, Box):
        return [(shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height)]
    return [(shape.x, shape.y)]


@pytest.mark.parametrize("parameters", [1, 3, 8])
def test_parallel_has_a_line_for_each_trial_and_the_best_on_top(parameters):
    view = sweep_of(40, parameters)
    curves = [shape for shape in picture(view).shapes if isinstance(shape, Curve)]
    drawn = [trial for trial in view.trials if len(trial.parameters) > 1 or trial.best is not None]
    # The best has three: its own, the halo and the highlight.
    assert len(curves) == len(drawn) + 2
    assert curves[-1].colour == BEST
    assert curves[-1].points[0] in [curve.points[0] for curve in curves[:-2]]
    dim = [trial for trial in drawn if trial.cut_interval is not None or trial.error]
    assert sum(curve.colour == CUT for curve in curves) == len(dim)


def test_no_label_of_parallel_coordinates_is_covered_by_a_line():
    shapes = picture(sweep_of(40, 4)).shapes
    last_line = max(n for n, shape in enumerate(shapes) if isinstance(shape, Curve))
    labels = [(n, shape) for n, shape in enumerate(shapes) if isinstance(shape, Label) and shape.halo]
    assert len(labels) > 10 and all(n > last_line for n, _ in labels)
    # What the best trial has stands over the axes.
    assert shapes[-1] == labels[-1][1] or isinstance(shapes[-1], Dot)
    assert max(n for n, shape in enumerate(shapes) if isinstance(shape, Line)) < labels[-1][0]


def test_a_trial_goes_faintly_past_parameters_that_it_does_not_have():
    view = sweep_of(30, space=SPACES["branches"])
    assert [axis.name for axis in parameter_axes(view)] == ["--lr", "--optimizer", "--momentum"]
    adam = [
        trial for trial in view.trials if trial.parameters["rest"] == {"--optimizer": "adam"} and trial.best is not None
    ]
    curves = [shape for shape in picture(view).shapes if isinstance(shape, Curve)]
    gap = min(curve.points[1][0] - curve.points[0][0] for curve in curves)
    bridges = [curve for curve in curves if curve.points[1][0] - curve.points[0][0] > 1.5 * gap]
    assert all(curve.opacity < 0.5 for curve in bridges)
    assert 0 < len(adam) <= len(bridges) <= len(adam) + 1
    # And there is no dot of theirs in the panel of that parameter.
    panels = picture(view, "scatter")
    dots = [
        shape for shape in panels.shapes if isinstance(shape, Dot) and shape.x > 2 / 3 * panels.width and shape.y > 60
    ]
    with_momentum = [
        trial for trial in view.trials if "--momentum" in trial.parameters["rest"] and trial.best is not None
    ]
    assert len(with_momentum) <= len(dots) <= len(with_momentum) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_best_is_marked(kind):
    best = [shape for shape in picture(sweep_of(25, 1), kind).shapes if isinstance(shape, Dot) and shape.colour == BEST]
    assert len([dot for dot in best if dot.ring]) == {"parallel": 2, "scatter": 1}[kind]


def test_axes_are_as_the_space():
    view = sweep_of(50, space={**SPACES["numbers"], "lr": loguniform(-9, -1), "c": choice(16, 32, 128)})
    n, r, q, x, lr, c = parameter_axes(view)
    assert (n.low, n.high, n.categories) == (0, 99, ())
    assert (r.low, r.high) == (0, 4) and (q.low, q.high) == (0, 100)
    assert x.low < 0 < x.high and not x.logarithmic
    assert lr.logarithmic and (lr.low, lr.high) == pytest.approx((math.exp(-9), math.exp(-1)))
    assert lr.place(math.exp(-5)) == pytest.approx(0.5)
    assert c.categories == ("16", "32", "128") and [c.place(value) for value in (16, 32, 128)] == [0, 0.5, 1]
    assert [text for _, text in lr.ticks()] == ["0.001", "0.01", "0.1"]


def test_a_metric_over_powers_of_ten_has_a_logarithmic_axis():
    view = sweep_of(3, 1)
    assert not metric_axis(view).logarithmic
    wide = replace(view, trials=tuple(replace(trial, best=10.0**n) for n, trial in enumerate(view.trials, 1)))
    assert not metric_axis(wide).logarithmic
    wider = replace(view, trials=(*wide.trials, replace(view.trials[0], number=9, best=1e9)))
    assert metric_axis(wider).logarithmic
    bests = [1, -1, math.inf]
    odd = replace(view, trials=tuple(replace(trial, best=best) for trial, best in zip(view.trials, bests, strict=True)))
    assert (metric_axis(odd).low, metric_axis(odd).high) == (-1, 1)


def test_the_better_the_darker():
    for goal in PrimaryMetricGoal:
        view = replace(sweep_of(5, 1), goal=goal)
        curves = [each for each in picture(view).shapes if isinstance(each, Curve)][:-2]
        lightness = [sum(int(curve.colour[n : n + 2], 16) for n in (1, 3, 5)) for curve in curves]
        assert lightness == sorted(lightness, reverse=True) and len(set(lightness)) == len(lightness)


def test_words_are_text_and_are_cut():
    text = picture(sweep_of(20, space=SPACES["text"])).svg()
    assert "&lt;b&gt;&amp;" in text and "<b>" not in text and "\x1b" not in text
    labels = [shape.text for shape in picture(sweep_of(20, space=SPACES["text"])).shapes if isinstance(shape, Label)]
    assert max(map(len, labels)) < 60


def test_svg_needs_nothing_from_outside():
    text = picture(sweep_of(20, 8)).svg()
    assert re.findall(r"(?:href|src|url)[^\s]*", text) == []
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]


def test_files(tmp_path):
    drawing = picture(sweep_of(5, 2))
    drawing.save(str(tmp_path / "a.svg"))
    drawing.save(str(tmp_path / "b.PNG"))
    assert (tmp_path / "a.svg").read_text() == drawing.svg() == drawing._repr_svg_()
    assert (tmp_path / "b.PNG").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UserErrorException, match=r"neither an \.svg nor a \.png"):
        drawing.save(str(tmp_path / "c.jpg"))
    with pytest.raises(UserErrorException, match="cannot be written: No such file"):
        drawing.save(str(tmp_path / "gone" / "c.svg"))


def test_png_is_the_same_picture(tmp_path):
    """White where the SVG is white, and the best trial's colour where its dot is."""
    import io

    from matplotlib.image import imread

    view = sweep_of(5, 2)
    drawing = picture(view)
    pixels = imread(io.BytesIO(drawing.png()))
    assert pixels.shape[:2] == (2 * drawing.height, 2 * drawing.width)
    dot = next(shape for shape in drawing.shapes if isinstance(shape, Dot) and shape.ring)
    found = [round(255 * part) for part in pixels[round(2 * dot.y), round(2 * dot.x)][:3]]
    assert found == [int(BEST[n : n + 2], 16) for n in (1, 3, 5)]
    assert list(pixels[4, 4][:3]) == [1, 1, 1]


def test_without_matplotlib_a_png_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    drawing = picture(sweep_of(5, 2))
    with pytest.raises(RunEnvironmentException, match=r"needs matplotlib") as caught:
        drawing.png()
    assert "trainmaster[plot]" in str(caught.value)
    assert drawing.svg()


def test_no_other_kind():
    with pytest.raises(UserErrorException, match="unknown kind of picture: 'pie'"):
        picture(sweep_of(1), "pie")
