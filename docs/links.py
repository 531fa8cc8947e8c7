"""Links of the repository's documents, made into links of the site.

Pages link to files of the repository, so that the links work where the repository is read. In the
site such a link leads to the page that was made from the file.
"""

from __future__ import annotations

import posixpath
import re

#: Documents of the repository, and their pages.
DOCUMENTS = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "CHANGELOG.md": "development/changelog.md",
    "benchmarks/README.md": "reference/benchmarks.md",
    "gallery": "gallery/index.rst",
    "gallery/README.md": "gallery/index.rst",
    "gallery/ranking.md": "explanation/ranking.md",
    "gallery/recipes.md": "explanation/recipes.md",
    "gallery/recipes.py": "explanation/recipes.md",
    "notebooks": "tutorials/index.md",
    "notebooks/README.md": "tutorials/index.md",
    "notebooks/lectures": "tutorials/index.md",
    "notebooks/course": "course/index.md",
    "optlab/autograd/rules/README.md": "reference/rules.md",
}

_PICTURE = r"!\[[^\]]*\]\([^)\s]+\)"
# A picture, or a text that may have brackets of its own and a picture in it.
_LINK = re.compile(
    rf"(?P<code>```.*?```)|\[(?P<label>(?:{_PICTURE}|[^\[\]]|\[[^\]]*\])+)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL,
)


def page_of(path: str) -> str | None:
    """Return the page of a file of the repository, from the root of the site.

    Examples
    --------
    >>> page_of("gallery/first_race.py"), page_of("optlab/cli.py")
    ('gallery/first_race.rst', None)
    """
    if path in DOCUMENTS:
        return DOCUMENTS[path]
    folder, _, file = path.rpartition("/")
    if folder == "gallery" and file.endswith(".py"):
        return f"gallery/{file.removesuffix('.py')}.rst"
    if folder == "gallery" and file.endswith(".png"):
        return f"pictures/{file}"
    if folder in ("notebooks", "notebooks/lectures") and file.endswith(".ipynb"):
        return "tutorials" + path.removeprefix("notebooks")
    if folder == "notebooks/course" and file.endswith(".ipynb"):
        return f"course/{file}"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return None


def by_link(notebook: str, repository: str) -> str:
    """Return a line with the links that open a notebook in Colab and in Binder.

    Parameters
    ----------
    notebook : str
        The file, from the root of the repository.
    repository : str
        ``OWNER/NAME`` on GitHub.

    Examples
    --------
    >>> print(by_link("notebooks/01-first-race.ipynb", "ada/optlab").replace(" or ", "\\n"))
    Open it in [Colab](https://colab.research.google.com/github/ada/optlab/blob/HEAD/notebooks/01-first-race.ipynb)
    [Binder](https://mybinder.org/v2/gh/ada/optlab/HEAD?labpath=notebooks/01-first-race.ipynb).
    """
    colab = f"https://colab.research.google.com/github/{repository}/blob/HEAD/{notebook}"
    binder = f"https://mybinder.org/v2/gh/{repository}/HEAD?labpath={notebook}"
    return f"Open it in [Colab]({colab}) or [Binder]({binder})."


def relinked(text: str, source: str, page: str) -> str:
    """Return Markdown whose links to files of the repository lead to pages of the site.

    A file that has no page is named by its path, to be read in a clone.

    Parameters
    ----------
    text : str
    source : str
        The file that it stands in, from the root of the repository.
    page : str
        The page that it becomes, from the root of the site.

    Examples
    --------
    >>> relinked("[a race](gallery/first_race.py)", "README.md", "how-to/install.md")
    '[a race](../gallery/first_race.rst)'
    >>> relinked("[cli.py](optlab/cli.py)", "README.md", "how-to/install.md")
    '`optlab/cli.py`'
    """

    def there(target: str) -> str | None:
        """Return a link of the site, or None where the file has no page."""
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return target
        found = page_of(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        if found is None:
            return None
        relative = posixpath.relpath(found, posixpath.dirname(page) or ".")
        return f"{relative}#{anchor}" if anchor else relative

    def pictured(match: re.Match[str]) -> str:
        return f"![{match[1]}]({there(match[2]) or match[2]})"

    def linked(match: re.Match[str]) -> str:
        if match["code"]:
            return match[0]
        label = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", pictured, match["label"])
        target = there(match["target"])
        before = "!" if match.string[match.start() - 1 : match.start()] == "!" else ""
        if before or target is not None:
            return f"[{label}]({target or match['target']})"
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match["target"]))
        path = path.partition("#")[0]
        return f"`{path}`" if re.fullmatch(r"[`\w./-]+", label) else f"{label} (`{path}`)"

    return _LINK.sub(linked, text)
