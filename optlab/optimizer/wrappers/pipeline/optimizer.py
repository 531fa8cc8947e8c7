"""PipelineOptimizer: training steps whose network runs in sections, on workers of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optlab.autograd.checkpoint.layer_checks import is_layer
from optlab.autograd.tape import backward as tape
from optlab.autograd.tape.row_sparse import dense
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import events
from optlab.backend.device import device_named
from optlab.backend.random import current_stream
from optlab.optimizer.rule.hyperparameters import by_names
from optlab.optimizer.wrappers.look_ahead import whole_number
from optlab.optimizer.wrappers.pipeline.passes import (
    MicroBatches,
    Plan,
    SectionPasses,
    check_places,
)
from optlab.optimizer.wrappers.pipeline.ranks import Ranks
from optlab.optimizer.wrappers.pipeline.schedule import checked_schedule
from optlab.optimizer.wrappers.pipeline.sections import (
    Program,
    check_apart,
    cut,
    is_loss_entry,
    shared_message,
)
from optlab.optimizer.wrappers.pipeline.threads import ThreadRun
from optlab.optimizer.wrappers.pipeline.timeline import PipelineTrace
from optlab.optimizer.wrappers.state import Memory
from optlab.optimizer.wrappers.wrapper import AfterStep, Wrapper
from optlab.plan.progress import Progress


class PipelineOptimizer(Wrapper):
    r"""Run sections of the network on workers of their own, micro-batch after micro-batch.

    The batch is divided into m micro-batches. Each worker computes its section for one of them,
    hands the result on, and goes on with the next; the backward pass goes the other way. One step
    of the inner optimizer follows, with

    .. math::
        g = \sum_{i=1}^{m} \nabla \frac{1}{m} L_i

    added in the order of the micro-batches. The result is that of the same loop without sections,
    to the bit. (It is that of the whole batch up to rounding, unless layers such as `BatchNorm`
    depend on the batch.)

    Parameters
    ----------
    optimizer : Optimizer
        The inner optimizer. A template makes this a template, too.
    cut_list : list, optional
        Where to cut: after these Layers of an `ol.nn.Sequential`, as Layers or by their names, or
        at these names of Tensors, see `step`. Entries may be lists, and the last one may be the
        loss (the criterion, or ``"loss"``), as in the documents. Without cuts there is one section.
    place_list : list of str, optional
        The device of each section, as ``"gpu:0"``, or ``ol.fluid.CUDAPlace(0)``.
    concurrency_list : list of int, optional
        The number of workers of each section; they take the micro-batches in turn. One by default.
    queue_size : int
        The places of a queue between sections. A worker that finds it full waits.
    sync_steps : int
        Workers collect the gradients of so many steps; the last of these updates the parameters by
        their mean.
    start_cpu_core_id : int
        From 1 on, worker threads are pinned to cores from this one on. With 0 the system places
        them.
    num_microbatches : int
        The m above. The batch must divide by it.
    schedule : str
        "1F1B", where a section s of p, from 0, holds the saved values of p - s micro-batches at
        most, or "GPipe", where it holds those of all.
    world : communicator, optional
        Sections on ranks, in their order: ``MPI.COMM_WORLD`` of mpi4py, or what
        ``ol.parallel.LocalWorld.run`` gives. All ranks call `step` with the same arguments. By
        default sections are threads.
    timeout, longest : float
        Seconds: a section that others wait for and that neither computes (uses no processor time)
        nor answers for `timeout` ends the step, and so does any pass or wait of `longest`.

    Attributes
    ----------
    trace : PipelineTrace
        What the workers did in the last step, for ``ol.viz.pipeline``; None before.

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit.

    Notes
    -----
    ``paddle.fluid.optimizer.PipelineOptimizer`` trains asynchronously: its sections update their
    parameters while other micro-batches are on their way, so its results depend on timing. Here all
    sections wait for the update, which has the result of training without a pipeline.

    The documents have lists for 2k - 1 sections: k forward, and k - 1 backward. A forward and a
    backward pass share saved values, so here both run on the same workers: of two numbers in
    `concurrency_list` the larger one counts, and two places of one section are an error. A list
    with one entry a section is read, too.

    The bubble, the idle part of the workers' time, is (p - 1)/(m + p - 1) for p equal sections.

    With ranks each has the whole network and the whole optimizer, and computes its section;
    gradients are exchanged, and every rank takes the same update. So any rank can save the state.

    References
    ----------
    Huang et al. 2019, GPipe, arXiv 1811.06965; Narayanan et al. 2019, PipeDream,
    doi 10.1145/3341301.3359646; Narayanan et al. 2021, arXiv 2104.04473 (1F1B with synchronous
    updates).

    Examples
    --------
    >>> import optlab as ol
    >>> _ = ol.seed(0)
    >>> model = ol.nn.Sequential(ol.nn.Linear(4, 8), ol.nn.Tanh(), ol.nn.Linear(8, 1))
    >>> optimizer = ol.optimizer.PipelineOptimizer(
    ...     ol.optimizer.SGD(0.1, parameters=model.parameters()),
    ...     cut_list=[model[1]], num_microbatches=4,
    ... )
    >>> x, y = ol.ones([8, 4]), ol.zeros([8, 1])
    >>> losses = [float(optimizer.step(model, ol.nn.MSELoss(), x, y)) for _ in range(20)]
    >>> losses[-1] < losses[0]
    True
    """

    #: A captured function that uses it runs eagerly (see `optlab.capture`).
    recomputes = True
    trace: PipelineTrace | None
    _ranks: Ranks | None
    _sums: list[Any]

    @by_names
    def __init__(
        self,
        optimizer: Any,
        cut_list: Sequence[Any] | None = None,
        place_list: Sequence[Any] | None = None,
        concurrency_list: Sequence[int] | None = None,
        queue_size: int = 30,
        sync_steps: int = 1,
        start_cpu_core_id: int = 0,
        *,
        num_microbatches: int = 1,
        schedule: str = "1F1B",
        world: Any = None,
        timeout: float = 7.0,
        longest: float = 300.0,
        name: str | None = None,
    ) -> None:
        super().__init__(optimizer, name)
        self._cuts = _checked_cuts(cut_list)
        self._places = None if place_list is None else [_place(one) for one in place_list]
        self._workers = (
            None
            if concurrency_list is None
            else [whole_number("a number in concurrency_list", one) for one in concurrency_list]
        )
        self._queue_size = whole_number("queue_size", queue_size)
        self._sync_steps = whole_number("sync_steps", sync_steps)
        self._first_core = _core(start_cpu_core_id)
        self._micro_batches = whole_number("num_microbatches", num_microbatches)
        self._schedule = checked_schedule(schedule)
        self._world = world
        self._timeout = _seconds("timeout", timeout)
        self._longest = _seconds("longest", longest)
        self._check_lengths()
        self._forget()

    def _check_lengths(self) -> None:
        """Raise if lists of workers and places fit no number of sections."""
        n = len(self._cuts)
        possible = {n, 2 * n - 1} if n and is_loss_entry(self._cuts[-1]) else {n + 1, 2 * n + 1}
        if n and not is_loss_entry(self._cuts[-1]):
            possible |= {n, 2 * n - 1}  # the last entry may be the criterion
        for label, given in (("place_list", self._places), ("concurrency_list", self._workers)):
            if given is not None and len(given) not in possible:
                raise ValueError(
                    f"{label} has {len(given)} entries, but cut_list has {n}: one for each of p "
                    "sections, or 2p - 1 (forward, loss, backward), where p is the number of cuts "
                    "with the loss among them."
                )

    @property
    def num_microbatches(self) -> int:
        """The number of micro-batches of a step."""
        return self._micro_batches

    @property
    def schedule_name(self) -> str:
        """The schedule of the passes: "1F1B" or "GPipe"."""
        return self._schedule

    @property
    def own_settings(self) -> dict[str, Any]:
        """What was set of the wrapper itself."""
        return {
            "sections": len(self._cuts) + 1 if not self._ends_with_loss() else len(self._cuts),
            "queue_size": self._queue_size,
            "sync_steps": self._sync_steps,
            "num_microbatches": self._micro_batches,
            "schedule": self._schedule,
        }

    def _ends_with_loss(self) -> bool:
        return bool(self._cuts) and is_loss_entry(self._cuts[-1])

    # The step -----------------------------------------------------------------------------------

    def step(self, network: Any, criterion: Any, x: Any, y: Any) -> Tensor:  # type: ignore[override]
        """Take one pipelined step, and clear the gradients.

        Parameters
        ----------
        network : Layer or callable
            An `ol.nn.Sequential` is cut after some of its Layers (those of a Sequential inside it
            too). A generator function is cut where it names Tensors::

                def network(x):
                    h = (yield {"h": first(x)})["h"]  # goes on in the next section
                    return second(h)

            Any Layer or function, where nothing is cut.
        criterion : callable
            ``criterion(output, labels)`` returns the mean loss of a micro-batch.
        x, y : array or Tensor, or a container of them
            A batch, whose first axis is that of the examples.

        Returns
        -------
        Tensor
            The mean loss before the step, the sum of the losses divided by their number.

        Raises
        ------
        ValueError
            If the batch does not divide by the number of micro-batches, a parameter is used in two
            sections, or something else does not fit.
        RuntimeError
            If a section raises, dies or stalls; the message names it, ``__cause__`` is its error.

        Notes
        -----
        After an exception gradients are cleared, too, and parameters, state and buffers of Layers
        are as before. Gradients from before the step are cleared and do not count.

        Random Layers draw from keys of (seed, step, micro-batch, Layer), so that sections change
        nothing: the same step with an empty `cut_list` is equal to the bit.
        """
        self._require_parameters()
        self.unfinished.finish()
        with self._step_hooks(network, criterion, x, y):
            try:
                return self._pipelined(network, criterion, x, y)
            finally:
                self.clear_grad()

    def _pipelined(self, network: Any, criterion: Any, x: Any, y: Any) -> Tensor:
        if not callable(criterion) or isinstance(criterion, type):
            raise TypeError(
                f"step takes a criterion, such as ol.nn.MSELoss(), a function of the output and "
                f"the labels; got {criterion!r}."
            )
        program = cut(network, self._cuts, criterion)
        check_apart(program, criterion)
        batches = MicroBatches(x, y, self._micro_batches)
        places = self._places_of(program.count)
        workers = self._workers_of(program)
        key = current_stream().key.fold("pipeline", self._steps)
        plan = Plan(program, criterion, batches, key, places)
        own = [p for group in self.groups for p in group.parameters]
        sections = []
        for s in range(program.count):
            known = program.parameters(s)
            check_places(known or (), places[s], s)
            sections.append(SectionPasses(plan, s, own if known is None else known))
        if any(p.grad is not None for p in own):
            self.clear_grad()
        buffers = [(b, b.data.copy()) for s in range(program.count) for b in program.buffers(s)]
        try:
            loss, totals, trace = self._run(plan, sections, workers, own)
            self._update(totals, own, loss)
        except BaseException:
            for buffer, before in buffers:
                buffer.set_value(before)
            raise
        self.trace = trace
        self._steps += 1
        return Tensor(loss)

    def _run(
        self, plan: Plan, sections: list[SectionPasses], workers: list[int], own: list[Any]
    ) -> tuple[Any, dict[Any, Any], PipelineTrace]:
        """Run all passes; return the mean loss, the gradients by leaf, and the timeline."""
        if self._world is None:
            run = ThreadRun(
                plan, sections, self._schedule, workers, self._queue_size, self._timeout,
                self._longest, self._first_core,
            )  # fmt: skip
            trace = run.run()
            by_section = [section.sums.totals for section in sections]
            losses = sections[-1].losses
        else:
            losses, by_section, trace = self._run_on_ranks(plan, sections, workers, own)
        totals: dict[Any, Any] = {}
        found_in: dict[Any, int] = {}
        for s, found in enumerate(by_section):
            for leaf, g in found.items():
                if leaf in totals:
                    p = next((p for p in own if p.node is leaf), leaf)
                    titles = plan.program.titles
                    raise ValueError(shared_message(p, found_in[leaf], s, titles))
                totals[leaf], found_in[leaf] = g, s
        return mean_loss(losses), totals, trace

    def _run_on_ranks(
        self, plan: Plan, sections: list[SectionPasses], workers: list[int], own: list[Any]
    ) -> tuple[dict[int, Any], list[dict[Any, Any]], PipelineTrace]:
        if self._ranks is None:
            self._ranks = Ranks(self._world, self._timeout, self._longest)
        described = (self._steps, self._micro_batches, self._schedule, self._queue_size, workers)
        self._ranks.agree(plan, workers, own, described)
        return self._ranks.run(plan, sections, workers, own, self._schedule, self._queue_size)

    def _update(self, totals: dict[Any, Any], own: list[Any], loss: Any) -> None:
        """Take the step of the inner optimizer, unless more steps are collected before."""
        due, collected = True, self._sums
        if self._sync_steps > 1:
            due, totals = self._collected(totals, own)
        if due:
            if events.backward_starts.listeners:
                events.backward_starts.publish()
            leaves = {p.node: p for p in own if p.node is not None}
            for leaf, g in totals.items():
                if leaf in leaves:
                    leaf.grad = g
                else:
                    tape.collect(leaf, g, False)
            if events.backward_finished.listeners:
                events.backward_finished.publish(loss, list(totals))
            before = [flat.t[i] for flat, i in self.places]
            try:
                self._step_around(self.inner_optimizer.step)
            except BaseException:
                if not any(self._which_updated(before)):  # the step can be taken again
                    self._sums = collected
                raise

    def _collected(self, totals: dict[Any, Any], own: list[Any]) -> tuple[bool, dict[Any, Any]]:
        """Collect gradients over steps; return whether the update is due, and their means."""
        places = [flat.parameters[i] for flat, i in self.places]
        sums = self._sums or [None] * len(places)
        sums = [
            g if p.node not in totals
            else dense(totals[p.node]) if g is None
            else g + dense(totals[p.node])
            for p, g in zip(places, sums, strict=True)
        ]  # fmt: skip
        due = (self._steps + 1) % self._sync_steps == 0
        self._sums = [] if due else sums
        means = {
            p.node: g / self._sync_steps for p, g in zip(places, sums, strict=True) if g is not None
        }
        return due, means

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        """Run the backward pass of a loss, unless that was done already, and take a step.

        The forward pass is over when there is a loss, so nothing is left to overlap: the numbers
        are those of the inner optimizer, and `step` runs a pipeline.

        Raises
        ------
        ValueError
            If `cut_list` has Tensors, as in the documents, and does not end with the loss.
        """
        loss = args[0] if args else kwargs.get("loss")
        last = self._cuts[-1] if self._cuts else None
        last = last[0] if isinstance(last, (list, tuple)) else last
        if isinstance(last, Tensor) and last is not loss:
            raise ValueError(
                "a cut_list of Tensors ends with the loss that is minimized: "
                "cut_list=[[hidden], [loss]]."
            )
        return super().minimize(*args, **kwargs)

    # Workers and places -------------------------------------------------------------------------

    def _workers_of(self, program: Program) -> list[int]:
        p = program.count
        given = self._workers
        if given is None:
            return [1] * p
        workers = [max(pair) for pair in _both_ways("concurrency_list", given, p)]
        for s, count in enumerate(workers):
            if count > 1 and program.buffers(s):
                raise ValueError(
                    f"section {s} ({program.titles[s]}) has buffers that its Layers update in "
                    "training, in the order of the micro-batches: several workers would write to "
                    "them at once. Give it one worker in concurrency_list."
                )
        return workers

    def _places_of(self, p: int) -> list[str | None]:
        if self._places is None:
            return [None] * p
        places: list[str | None] = []
        for s, pair in enumerate(_both_ways("place_list", self._places, p)):
            if len(set(pair)) > 1:
                raise ValueError(
                    f"place_list puts the forward passes of section {s} on {pair[0]} and its "
                    f"backward passes on {pair[1]}: they share saved values, and run on one device."
                )
            places.append(pair[0])
        return places

    # State --------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed run needs to be equal to the bit.

        Returns
        -------
        dict
            The state of the inner optimizer as ``"inner_optimizer"``, the number of steps, from
            which random keys are made, as ``"pipeline_steps"``, and collected gradients.
        """
        return {**super().state_dict(), "pipeline_steps": self._steps}

    def checked_state(self, state_dict: Mapping[str, Any]) -> Callable[[], None]:
        """Check a state with that of the inner optimizer, and return a function that writes it."""
        given = dict(state_dict)
        steps = given.pop("pipeline_steps", None)
        write_rest = super().checked_state(given)
        if isinstance(steps, bool) or not hasattr(steps, "__index__") or int(steps) < 0:
            raise ValueError(
                "the state of a PipelineOptimizer has pipeline_steps, a number of at least 0; got "
                f"{steps!r}."
            )

        def write() -> None:
            write_rest()
            self._steps = int(steps)

        return write

    def _forget(self) -> None:
        self.trace = None
        self._ranks = None
        self._steps = 0
        self._sums = []

    def _after(self, updated: list[bool], progress: Progress) -> None:
        """Do nothing after a step of the inner optimizer."""

    def _add_to_row(self, row: Any, acted: Any) -> Any:
        return row

    def _memories(self) -> list[Memory]:
        if self._sync_steps == 1:
            return [{} for _ in self.places]
        sums = self._sums or [None] * len(self.places)
        return [
            {
                "collected": flat.parameters[i].data * 0 if g is None else g,
                "collected_any": int(g is not None),
            }
            for (flat, i), g in zip(self.places, sums, strict=True)
        ]

    def _set_memories(self, memories: list[Memory]) -> None:
        sums = [m["collected"] if m.get("collected_any") else None for m in memories]
        self._sums = sums if any(g is not None for g in sums) else []

    def _functional_start(self, leaves: Any, values: list[Any], named: Any) -> dict[str, Any]:
        return self.inner_optimizer._functional_start(leaves, values, named)

    def _functional_take(
        self, leaves: Any, values: list[Any], gradients: list[Any], state: Any, named: Any
    ) -> tuple[list[Any], dict[str, Any], list[bool]]:
        return self.inner_optimizer._functional_take(leaves, values, gradients, state, named)

    def _captured(self, own: Mapping[str, Any]) -> None:
        """Return None: the rule is that of the inner optimizer."""

    def member_memory(self, start: Any) -> Memory:
        """Return the memory of members that start at these points: none."""
        return {}

    def member_after(self, memory: Memory, p: Any) -> tuple[Any, Memory]:
        """Return the weights after a step of the inner optimizer has moved them to `p`."""
        return p, memory

    def over_rows(self, start: Any) -> AfterStep:
        """Return a function that changes nothing."""
        return lambda fast: (fast, {}, {})


def mean_loss(losses: dict[int, Any]) -> Any:
    """Return the sum of the scaled losses of the micro-batches, in their order."""
    total: Any = None
    for i in sorted(losses):
        total = losses[i] if total is None else total + losses[i]
    return total


def _checked_cuts(cut_list: Any) -> list[Any]:
    if cut_list is None:
        return []
    if isinstance(cut_list, (str, Tensor)) or is_layer(cut_list):
        raise TypeError(f"cut_list is a list of cuts: cut_list=[{_named(cut_list)}].")
    if not isinstance(cut_list, (list, tuple)):
        raise TypeError(
            "cut_list is a list of Layers, of names, or of lists of them; got "
            f"{type(cut_list).__name__}."
        )
    for entry in cut_list:
        for item in entry if isinstance(entry, (list, tuple)) else [entry]:
            if not isinstance(item, (str, Tensor)) and not callable(item):
                raise TypeError(
                    f"cut_list has Layers of the network, such as model[1], or names; got {item!r}."
                )
    return list(cut_list)


def _named(item: Any) -> str:
    return repr(item) if isinstance(item, str) else f"the {type(item).__name__}"


def _both_ways(label: str, given: Sequence[Any], p: int) -> list[tuple[Any, ...]]:
    """Return the entries of each section, forward and backward."""
    if len(given) == p:
        return [(one,) for one in given]
    if len(given) != 2 * p - 1:
        raise ValueError(
            f"{label} has {len(given)} entries; {p} sections need {p}, or {2 * p - 1} (forward, "
            "loss, backward)."
        )
    backward = list(reversed(given[p:]))
    return [(given[s], backward[s]) for s in range(p - 1)] + [(given[p - 1],)]


def _place(place: Any) -> str:
    if not isinstance(place, str):
        raise TypeError(
            f"place_list has names of devices, such as 'cpu' or 'gpu:0'; got {place!r}."
        )
    return device_named(str(place)).name


def _core(number: Any) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__") or number.__index__() < 0:
        raise ValueError(f"start_cpu_core_id is the number of a core from 0 on; got {number!r}.")
    return int(number.__index__())


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"{name} is a number of seconds above 0; got {value!r}.")
    return float(value)
