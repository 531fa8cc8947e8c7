"""One color, dash and marker per optimizer: the same everywhere, and never two alike."""

import pytest

from optlab.viz.style import theme

FIRST = ("SGD", "Momentum", "RMSProp", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax")


def test_adam_looks_the_same_whoever_it_races_and_whatever_it_is_called():
    alone = theme.assign_styles({"Adam": "Adam"})["Adam"]
    last = theme.assign_styles({"SGD": "SGD", "mine": "Unheard", "ours": "Adam"})["ours"]
    assert alone == last


def test_the_first_four_are_as_the_sketch_has_them():
    styles = theme.assign_styles({name: name for name in FIRST})
    markers = [styles[name].marker for name in FIRST[:4]]
    assert markers == ["circle", "square", "triangle-up", "diamond"]
    assert styles["SGD"].dash == ()
    dashes = {styles[name].dash for name in FIRST[:4]}
    assert len(dashes) == 4


def test_the_common_optimizers_differ_in_colour_and_in_marker():
    styles = theme.assign_styles({name: name for name in FIRST}).values()
    assert len({style.color for style in styles}) == len(FIRST)
    assert len({style.marker for style in styles}) == len(FIRST)


@pytest.mark.parametrize("count", [2, 9, 40, 300])
def test_no_two_traces_of_one_figure_look_alike(count):
    styles = theme.assign_styles({f"run {n}": "Adam" for n in range(count)})
    assert len(set(styles.values())) == count


def test_a_stranger_does_not_take_the_style_of_an_optimizer_that_comes_later():
    styles = theme.assign_styles({"mine": "Unheard", "SGD": "SGD", "AdamW": "AdamW"})
    assert styles["SGD"] == theme.assign_styles({"SGD": "SGD"})["SGD"]
    assert styles["AdamW"] == theme.assign_styles({"AdamW": "AdamW"})["AdamW"]


def test_lines_stand_out_on_every_colour_of_the_map_and_text_on_paper():
    for style in theme.assign_styles({name: name for name in FIRST}).values():
        for land in theme.surface_colors(40):
            assert theme.contrast(style.color, land) >= 3
        assert theme.contrast(style.color, theme.PAPER) >= 4.5
    assert theme.contrast(theme.QUIET, theme.PAPER) >= 4.5


def test_contrast_is_the_web_guidelines_one():
    assert theme.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_the_surface_gets_lighter_with_height_so_that_it_reads_in_grey():
    light = [theme.contrast(color, "#000000") for color in theme.surface_colors(12)]
    assert light == sorted(light)
