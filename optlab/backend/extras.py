"""Packages of the extras: one sentence for each that is wanted and not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: Modules, by what they are imported as: the package to install, and the extra that has it.
EXTRAS = {
    "IPython": ("IPython", "lab"),
    "PIL": ("pillow", "lab"),
    "anywidget": ("anywidget", "lab"),
    "cloudpickle": ("cloudpickle", "course"),
    "contourpy": ("contourpy", "lab"),
    "cupy": ("CuPy", "cuda12"),
    "ipywidgets": ("ipywidgets", "lab"),
    "jupyterlab": ("JupyterLab", "lab"),
    "matplotlib": ("matplotlib", "lab"),
    "ml_dtypes": ("ml_dtypes", "formats"),
    "mpi4py": ("mpi4py", "parallel"),
    "mpiexec": ("mpiexec", "parallel"),
    "nbgrader": ("nbgrader", "course"),
    "numba": ("numba", "fast"),
    "pandas": ("pandas", "lab"),
    "plotly": ("plotly", "lab"),
    "sklearn": ("scikit-learn", "lab"),
    "threadpoolctl": ("threadpoolctl", "lab"),
    "xarray": ("xarray", "lab"),
    "zarr": ("zarr", "store"),
}


def missing(what: str, module: str) -> str:
    """Return the sentence for something that needs a module, or a command, that is not installed.

    Examples
    --------
    >>> missing("Sweep.to_xarray()", "xarray")
    "Sweep.to_xarray() needs xarray, which is not installed: pip install 'optlab[lab]'. ..."
    """
    package, extra = EXTRAS.get(module, (module, "lab"))
    return (
        f"{what} needs {package}, which is not installed: pip install 'optlab[{extra}]'. "
        f"In a clone of the repository: pip install '.[{extra}]'."
    )


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Name what is wanted, the missing package and its extra where an import fails.

    Raises
    ------
    ModuleNotFoundError
        In place of the one that Python raises inside. An error about a module of optlab's own,
        which no installation would mend, and one that has the sentence already go through.

    Examples
    --------
    >>> with needed_for("A map of the moon"):
    ...     import moon_maps
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: A map of the moon needs moon_maps, which is not installed: ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "optlab").partition(".")[0]
        if module == "optlab" or "pip install 'optlab[" in str(error):
            raise
        raise ModuleNotFoundError(missing(what, module), name=error.name) from error
