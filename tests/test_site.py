"""The site: the check of its pages sees what is wrong, and it builds without a warning."""

import pytest

from docs import check, links

PAGE = '<!doctype html><html><head>{head}</head><body id="top">{body}</body></html>'


def site(folder, head="", body="", style=""):
    """Write a small site, and return what the check says of it."""
    (folder / "index.html").write_text(PAGE.format(head=head, body=body))
    (folder / "other.html").write_text(PAGE.format(head="", body='<h2 id="here">Here</h2>'))
    (folder / "site.css").write_text(style)
    return check.problems(folder)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ('<script src="https://cdn.example/x.js"></script>', ""),
        ('<script src="//cdn.example/x.js"></script>', ""),
        ('<link rel="stylesheet" href="https://fonts.example/css">', ""),
        ('<link rel="preconnect" href="https://fonts.example">', ""),
        ("<style>@import 'https://fonts.example/css';</style>", ""),
        ("", '<img src="http://pictures.example/a.png">'),
        ("", '<img srcset="other.html 1x, https://pictures.example/a.png 2x">'),
        ("", '<iframe src="https://pages.example"></iframe>'),
        ("", '<p style="background: url(https://pictures.example/a.png)">'),
        ("", '<script type="module">import x from "https://cdn.example/x.js";</script>'),
        ("", '<script>const x = await import("https://cdn.example/x.js")</script>'),
        ("", '<script>fetch("https://numbers.example/data.json")</script>'),
    ],
)
def test_a_page_that_asks_another_host_is_found(head, body, tmp_path):
    [said] = site(tmp_path, head, body)
    assert said.startswith("index.html asks another host: ")
    assert ".example" in said


def test_a_style_sheet_that_asks_another_host_is_found(tmp_path):
    [said] = site(tmp_path, style="@font-face { src: url('https://fonts.example/a.woff2'); }")
    assert said == "site.css asks another host: https://fonts.example/a.woff2"


def test_links_that_lead_nowhere_are_found(tmp_path):
    body = '<a href="gone.html">x</a> <a href="other.html#there">x</a> <img src="gone.png">'
    assert site(tmp_path, body=body) == [
        "index.html links to gone.html, which is not there",
        "index.html links to gone.png, which is not there",
        "index.html links to other.html#there, but that page has no such place",
    ]


def test_a_reader_may_follow_a_link_to_another_host(tmp_path):
    body = (
        '<a href="https://papers.example/adam">x</a> <a href="other.html#here">x</a>'
        '<a href="#top">x</a> <a href="mailto:me@example.org">x</a> <img src="data:image/png,A">'
    )
    assert site(tmp_path, body=body) == []


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("[x](../../gallery/first_race.py)", "[x](../gallery/first_race.rst)"),
        ("[x](../../CONTRIBUTING.md#the-house)", "[x](../development/contributing.md#the-house)"),
        ("[x](https://example.org)", "[x](https://example.org)"),
        ("[x](#here)", "[x](#here)"),
        ("[`a.py`](../../optlab/a.py)", "`optlab/a.py`"),
        ("[the rule](../../optlab/a.py)", "the rule (`optlab/a.py`)"),
        ("![x](../../gallery/a.png)", "![x](../pictures/a.png)"),
        (
            "[![x](../../gallery/a.png)](../../gallery/a.py)",
            "[![x](../pictures/a.png)](../gallery/a.rst)",
        ),
        ("```python\nx[a](b)\n```", "```python\nx[a](b)\n```"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(text, there):
    assert links.relinked(text, "docs/how-to/a.md", "how-to/a.md") == there


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_asks_no_other_host(tmp_path, capfd):
    """Minutes; where the extra `docs` is installed. ``.ci/run --site`` runs the notebooks, too."""
    for name in ("numpydoc", "pydata_sphinx_theme", "myst_nb", "sphinx_gallery", "sphinx_design"):
        pytest.importorskip(name)
    from docs.__main__ import main

    assert main(["--no-notebooks", "--out", str(tmp_path / "html")]) == 0, capfd.readouterr()
    assert (tmp_path / "html" / "explorer.html").stat().st_size > 100_000
