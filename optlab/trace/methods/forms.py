"""A trace in other forms: xarray, pandas, a selection, a file, a figure, a page for notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from optlab.backend.display import renderer
from optlab.trace import pages, selections, store, tables
from optlab.trace.methods.quantities import Quantities


class Forms(Quantities):
    """``trace.to_xarray()``, ``trace.sel(...)``, ``trace.save(path)`` and the like."""

    def to_xarray(self) -> Any:
        """Return the trace as xarray's Dataset or DataTree, for labelled selection and plotting.

        Variables are named ``loss``, ``learning_rate``, ``parameter/w``, ``gradient/w``,
        ``moment1/w`` and so on. They share the coordinate ``step``; parameters have their values
        after each step, and their start is ``start/w``. What was recorded at other steps, or by
        other probes, is a node of a DataTree, with its own ``step``. `from_xarray` leads back.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed (it comes with the extra ``lab``).
        """
        return tables.to_xarray(self)

    @classmethod
    def from_xarray(cls, data: Any) -> Self:
        """Return the trace of what `to_xarray` gave.

        Raises
        ------
        TypeError, ValueError
            If `data` is no Dataset or DataTree of a trace.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> ol.trace.Trace.from_xarray(trace.to_xarray()).parameters["w"].tolist()
        [[3.0], [1.5]]
        """
        return tables.from_xarray(cls, data)  # type: ignore[no-any-return]

    def to_dataframe(self) -> Any:
        """Return what has one number a step as a pandas DataFrame, by step.

        Columns are loss, rate, time, every norm (``norm of gradient/w``), parameters of one
        element, and what probes and `log` have recorded of single numbers; NaN at steps at which
        something was not recorded.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed (it comes with the extra ``lab``).

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> trace.to_dataframe()[["loss", "norm of gradient/w"]]
              loss  norm of gradient/w
        step
        1      9.0                 6.0
        """
        return tables.to_dataframe(self)

    def sel(self, step: Any = None, parameter: Any = None) -> Self:
        """Return the trace of some steps and some parameters.

        Parameters
        ----------
        step : int, slice or list of int, optional
            Step numbers; a slice has both ends, as xarray's has.
        parameter : str or list of str, optional
            Names of parameters.

        Raises
        ------
        KeyError
            If a step was not recorded, or there is no parameter of a name.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.Adam(0.1, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     for _ in range(5):
        ...         (w * w).sum().backward()
        ...         optimizer.step()
        ...         optimizer.clear_grad()
        >>> trace.sel(step=slice(2, 4)).step, trace.sel(step=5)["moment1"]["w"].shape
        (array([2, 3, 4]), (1, 1))
        """
        return selections.select(self, step, parameter)  # type: ignore[no-any-return]

    def save(self, path: str | Path) -> Path:
        """Write the trace to a Zarr store, which `load_trace` opens.

        A trace that is there already is replaced when the new one is complete.

        Parameters
        ----------
        path : str or Path
            The folder of the store, such as ``"run.zarr"``.

        Returns
        -------
        Path

        Raises
        ------
        ModuleNotFoundError
            If zarr is not installed (it comes with the extra ``store``).
        FileExistsError
            If something that is no trace is there.
        OSError
            If the file system refuses; what was there is unchanged then.

        Examples
        --------
        >>> import tempfile
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ol.load_trace(trace.save(f"{folder}/run.zarr")).loss
        array([9.])
        """
        target = Path(path)
        self.complete()
        store.save(self, target)
        return target

    def figure(self, **options: Any) -> Any:
        """Draw the trace as a plotly figure: the loss, norms, marks.

        Raises
        ------
        ModuleNotFoundError
            If no renderer is installed (it comes with the extra ``lab``).
        """
        return renderer("trace").figure(self, **options)

    def _repr_html_(self) -> str:
        return pages.to_html(self)
