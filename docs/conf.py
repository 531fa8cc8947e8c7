"""What Sphinx needs to know. ``python -m docs`` writes the sources that this file is read with."""

import hashlib
import os
from pathlib import Path

import optlab
from docs import sources

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

project = "optlab"
author = "The optlab authors"
copyright = "The optlab authors, Apache License 2.0"
version = release = optlab.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docs.extension",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_gallery",
    "reference/command-line-help.md",
    "jupyter_execute",
    "gallery/*.ipynb",
    "gallery/*.py",
    "**/*.zip",
]
default_role = "py:obj"
nitpicky = False
suppress_warnings: list[str] = []

# Docstrings are numpydoc; a page of the reference lists its members itself.
autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
viewcode_line_numbers = True
add_module_names = False
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"

# Markdown and notebooks.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 3
nb_execution_mode = os.environ.get("OPTLAB_SITE_NOTEBOOKS", "cache")
nb_execution_excludepatterns = ["course/*"]  # a student has still to write what would run
nb_execution_timeout = 1200  # a cell that hangs; the slowest takes some seconds
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # outputs bring their own scripts
nb_mime_priority_overrides = [
    ("html", "text/html", 0),
    ("html", "image/svg+xml", 10),
    ("html", "image/png", 20),
]


def _digest() -> str:
    """Return a fingerprint of optlab: a notebook runs again when the package has changed."""
    digest = hashlib.sha256((HERE / "kernel.py").read_bytes())
    for path in sorted((ROOT / "optlab").rglob("*")):
        if path.suffix in (".py", ".js", ".css"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


nb_execution_cache_path = str(HERE / "_build" / "notebooks" / _digest())

# The gallery: pictures stand beside the scripts, and the tests hold that the scripts make them.
sphinx_gallery_conf = {
    "examples_dirs": [str(HERE / "_build" / "source" / "_gallery")],
    "gallery_dirs": ["gallery"],
    "plot_gallery": False,
    "filename_pattern": r"(?!)",
    "backreferences_dir": "reference/used",
    "doc_module": ("optlab",),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "within_subsection_order": "docs.extension.gallery_order",
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "default_thumb_file": str(ROOT / "gallery" / "first-race.png"),
    "thumbnail_size": sources.THUMBNAIL,
    "copyfile_regex": r".*\.png",
}

# Pages.
html_theme = "pydata_sphinx_theme"
html_title = "optlab"
html_static_path = ["_static", str(HERE / "_build" / "static")]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_extra_path = [str(HERE / "_build" / "extra")]
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
html_theme_options = {
    "logo": {"text": "optlab", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "show_nav_level": 1,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "explorer": []},
    "article_header_start": ["breadcrumbs"],
}
html_sidebars = {
    "index": [],
    "explorer": [],
    "reference/api/*": ["package-names"],
    **{f"{part}/*": ["sidebar-nav-bs"] for part in ("tutorials", "how-to", "explanation")},
    **{f"{part}/*": ["sidebar-nav-bs"] for part in ("gallery", "course", "development")},
    "reference/[!a]*": ["sidebar-nav-bs"],
}
mathjax_path = (
    "mathjax.js"  # of the package django-static-mathjax: one file, without fonts to fetch
)
