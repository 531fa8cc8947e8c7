"""One color, dash and marker per optimizer: the same everywhere, and never two alike."""

import pytest

from optlab.viz.explorer.export import browser_options
from optlab.viz.style import theme

FIRST = ("Adam", "Momentum", "RMSProp", "AdamW", "SGD", "Adagrad", "Adadelta", "Adamax")


def test_adam_looks_the_same_whoever_it_races_and_whatever_it_is_called():
    alone = theme.assign_styles({"Adam": "Adam"})["Adam"]
    last = theme.assign_styles({"SGD": "SGD", "mine": "Unheard", "ours": "Adam"})["ours"]
    assert alone == last


def test_the_first_are_as_the_sketch_has_them():
    styles = theme.assign_styles({name: name for name in FIRST})
    markers = [styles[name].marker for name in FIRST[:4]]
    assert markers == ["circle", "square", "triangle-up", "diamond"]
    assert styles["Adam"].dash == ()
    assert styles["SGD"].color == "#3a3f47"
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


class TestPages:
    def test_the_names_follow_the_page_and_come_back(self):
        import optlab as ol

        with ol.viz.use_style("dark") as used:
            assert theme.DARK["paper"] == theme.PAPER
            assert theme.scheme() == used.scheme == "dark"
            style = theme.assign_styles({"Adam": "Adam"})["Adam"]
            assert theme.contrast(style.color, theme.PAPER) > 4.5
            with ol.viz.use_style("light"):
                assert theme.PAPER == "#ffffff"
            assert theme.scheme() == "dark"
        assert theme.scheme() == "light"
        assert theme.LIGHT["ink"] == theme.INK
        assert theme.assign_styles({"Adam": "Adam"})["Adam"].color == theme.light(style.color)

    def test_light_and_dark_have_the_same_names_and_are_readable(self):
        assert theme.LIGHT.keys() == theme.DARK.keys()
        for page in (theme.LIGHT, theme.DARK):
            assert theme.contrast(page["ink"], page["paper"]) > 10
            assert theme.contrast(page["quiet"], page["paper"]) > 4.5

    def test_colors_of_a_light_page_have_a_dark_twin(self):
        for color in theme.colors():
            assert theme.light(theme.dark(color)) == color
            assert theme.dark(theme.dark(color)) == theme.dark(color)

    @pytest.mark.parametrize("page", ["light", "dark"])
    def test_figures_are_drawn_for_the_page(self, page):
        import io

        import numpy as np
        from PIL import Image

        import optlab as ol

        race = ol.compare("booth", {"Adam": ol.optimizer.Adam(0.1)}, steps=20)
        with ol.viz.use_style(page):
            figure = race.figure()
            image = np.asarray(Image.open(io.BytesIO(ol.viz.race_png(race))).convert("RGB"))
        paper = (theme.DARK if page == "dark" else theme.LIGHT)["paper"]
        assert figure.layout.paper_bgcolor == paper
        assert "#{:02x}{:02x}{:02x}".format(*image[0, 0]) == paper
        other = theme.LIGHT["ink"] if page == "dark" else theme.DARK["ink"]
        assert other not in figure.to_json()

    def test_own_plots_get_the_style_and_lose_it_again(self):
        import matplotlib
        from matplotlib.figure import Figure

        import optlab as ol

        before = dict(matplotlib.rcParams)
        with ol.viz.use_style("dark"):
            axes = Figure().subplots()
            lines = [axes.plot([0, 1], [n, n])[0] for n in range(8)]
            assert len({line.get_color() for line in lines}) == 8
            assert len({str(line._dash_pattern) for line in lines}) == 8
            assert axes.get_facecolor() == matplotlib.colors.to_rgba(theme.DARK["paper"])
            assert not axes.spines["top"].get_visible()
        assert dict(matplotlib.rcParams) == before

    def test_other_pages_are_refused(self):
        import optlab as ol

        with pytest.raises(ValueError, match='scheme must be "light" or "dark"; got \'sepia\''):
            ol.viz.use_style("sepia")
        assert theme.scheme() == "light"

    def test_the_explorer_sends_both_colors_on_either_page(self):
        import optlab as ol

        plain = browser_options()["styles"]
        with ol.viz.use_style("dark"):
            assert browser_options()["styles"] == plain


class TestNotebooks:
    """In a notebook with a dark theme figures are dark, without a word."""

    @pytest.fixture
    def themed(self, monkeypatch, tmp_path):
        """Return a function that sets the theme of the notebook, as JupyterLab stores it."""
        monkeypatch.setenv("JPY_SESSION_NAME", "/work/first.ipynb")
        monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(tmp_path))

        def write(text):
            folder = tmp_path / "@jupyterlab" / "apputils-extension"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "themes.jupyterlab-settings").write_text(text, encoding="utf-8")

        yield write
        theme.choose(None)

    def paper(self):
        import optlab as ol

        return ol.viz.schedule(ol.optimizer.lr.StepDecay(0.5, 3)).layout.paper_bgcolor

    def test_figures_are_of_its_page(self, themed):
        import io

        from PIL import Image

        import optlab as ol
        from optlab.viz import renderers

        assert self.paper() == theme.LIGHT["paper"]  # nothing was chosen yet
        themed('{\n    // "theme": "JupyterLab Light"\n    "theme": "JupyterLab Dark"\n}')
        assert self.paper() == theme.DARK["paper"]
        image = Image.open(io.BytesIO(ol.viz.schedule_png(ol.optimizer.lr.StepDecay(0.5, 3))))
        assert image.convert("RGB").getpixel((0, 0)) == (22, 26, 32)
        shown = renderers.schedule.mimebundle(ol.optimizer.lr.StepDecay(0.5, 3))
        layout = shown["application/vnd.plotly.v1+json"]["layout"]
        assert layout["paper_bgcolor"] == theme.DARK["paper"]
        themed('{"theme": "JupyterLab Light"}')
        assert self.paper() == theme.LIGHT["paper"]

    def test_what_is_chosen_in_a_cell_stands(self, themed):
        import optlab as ol

        themed('{"theme": "JupyterLab Dark High Contrast"}')
        with ol.viz.use_style("light"):
            assert self.paper() == theme.LIGHT["paper"]
        assert self.paper() == theme.DARK["paper"]

    @pytest.mark.parametrize(
        "text", ['{"theme": "JupyterLab Dark", "adaptive-theme": true}', "{}", "", "\x00"]
    )
    def test_what_is_not_known_is_light(self, themed, text):
        themed(text)
        assert self.paper() == theme.LIGHT["paper"]

    def test_pages_made_without_a_notebook_are_light(self, themed, monkeypatch):
        themed('{"theme": "JupyterLab Dark"}')
        monkeypatch.delenv("JPY_SESSION_NAME")
        assert self.paper() == theme.LIGHT["paper"]


def test_a_further_run_of_a_class_has_a_marker_of_its_own():
    styles = theme.assign_styles({"Momentum": "Momentum", "Adam": "Adam", "Adam 2": "Adam"})
    assert len({style.marker for style in styles.values()}) == 3
    assert len({style.color for style in styles.values()}) == 3
