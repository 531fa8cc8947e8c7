"""``ol.doctor()``: what is installed, what is missing, how to fix it.

The package has an underscore so that ``ol.doctor`` is always the function: importing a submodule
called ``doctor`` would replace it by the module. Nothing here may fail, whatever is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from optlab._doctor import checks
from optlab._doctor.browser import find_browser
from optlab._doctor.report import NEEDED, PURPOSES, Report, Row
from optlab._doctor.requirements import install_command

__all__ = ["Report", "Row", "doctor", "find_browser", "install_command"]


def doctor() -> Report:
    """Check what is installed, what is missing, and how to fix it.

    It never raises: a check that fails becomes a row of the report.

    Returns
    -------
    Report
        ``.ok`` (nothing is broken), ``.rows``; it displays as text or as a table.

    Examples
    --------
    >>> import optlab as ol
    >>> report = ol.doctor()
    >>> [row.name for row in report.rows][:2]
    ['Python', 'numpy']
    """
    rows: list[Row] = []
    all_checks: dict[str, Callable[[], Iterable[Row]]] = {
        "Python": checks.check_python,
        "packages": checks.check_packages,
        "optlab": checks.check_optlab,
        "JupyterLab's extensions": checks.check_lab_extensions,
        "BLAS threads": checks.check_blas_threads,
        "BLAS kernels": checks.check_blas_kernels,
        "numba": checks.check_numba,
        "GPU": checks.check_gpu,
        "MPI": checks.check_mpi,
        "browser": checks.check_browser,
    }
    for name, check in all_checks.items():
        try:
            rows.extend(check())
        except Exception as error:  # noqa: BLE001 - a broken check is a finding, not the end
            rows.append(
                Row(NEEDED, name, "broken", f"could not be looked at: {checks.in_words(error)}")
            )
    order = list(PURPOSES)
    rows.sort(key=lambda row: order.index(row.part) if row.part in order else len(order))
    return Report(tuple(rows))
