"""Deep gradient compression: ranks exchange the largest entries of what has gathered."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from optlab.autograd.tape.row_sparse import RowSparse
from optlab.backend import events
from optlab.backend.arrays import as_float, constants_beside, on_host, readonly, zeros_beside
from optlab.backend.call_recorder import effect
from optlab.backend.ensemble import EnsembleArray
from optlab.backend.exchange import Exchange, added, check_apart, default_world
from optlab.nn.clip import ClipGradByNorm
from optlab.optimizer.optimizer import Optimizer, no_closure
from optlab.optimizer.params.flat import FlatParameters, Span
from optlab.optimizer.params.groups import Group
from optlab.optimizer.params.labels import label_of
from optlab.optimizer.params.usage_warnings import warn_of_no_gradient
from optlab.optimizer.regularizer import with_decay
from optlab.optimizer.rule.hyperparameters import REQUIRED
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step.apply_rule import apply_rule
from optlab.optimizer.step.not_finite import gradients_are_finite, results_are_finite
from optlab.optimizer.step.roll_forward import roll_forward
from optlab.optimizer.step.step import Update, write_results

#: Parameters with fewer elements, or of another dtype, are exchanged whole.
SMALLEST = 16_384
#: From so many on the largest are looked for among those that a sample of every so many suggests.
_LARGE, _EVERY = 100_000, 61


def largest_entries(v: Any, count: int) -> Any:
    """Return the indices of the `count` entries of largest magnitude, in ascending order.

    Of entries of one magnitude those with the lower index are taken; NaN counts as the largest.

    Examples
    --------
    >>> import numpy as np
    >>> largest_entries(np.array([1.0, -3.0, 3.0, 0.0, -3.0]), 2)
    array([1, 2])
    """
    size = np.abs(v)
    if count >= size.size:
        return np.arange(size.size)
    if size.size >= _LARGE and count <= size.size // 32:
        # A sample gives a bound that few reach; the largest are among these, if they are enough.
        sample = size[::_EVERY]
        few = min(sample.size, 2 * count // _EVERY + 64)
        bound = np.partition(sample, sample.size - few)[sample.size - few]
        reached = np.flatnonzero(~(size < bound))  # NaN, too
        if count <= reached.size < size.size // 4:
            return reached[largest_entries(size[reached], count)]
    size = np.where(np.isnan(size), np.inf, size)
    limit = np.partition(size, size.size - count)[size.size - count]
    above = np.flatnonzero(size > limit)
    equal = np.flatnonzero(size == limit)[: count - above.size]
    return np.sort(np.concatenate([above, equal]))


class _Part(NamedTuple):
    """One parameter in a step: its place, its settings, and what this rank has for the others."""

    group: Group
    params: FlatParameters
    span: Span
    gradient: Any
    sparsity: float | None
    #: The compressed exchange: new u, new v, indices and values; None if it is exchanged whole.
    sent: tuple[Any, Any, Any, Any, Any] | None

    @property
    def place(self) -> slice:
        """Its elements in the flat arrays."""
        return slice(self.params.bounds[self.span.first], self.params.bounds[self.span.last])

    @property
    def pieces(self) -> list[Any]:
        """The arrays that this rank puts into the exchange."""
        if self.sent is None:
            return [self.gradient]
        _, _, _, indices, values = self.sent
        return [indices.astype(np.int32), values]


class DGCMomentum(Optimizer):
    r"""Momentum for several trainers that exchange few entries of their gradients.

    Each of the N ranks has its own batch, and calls ``step()`` at the same time. Before
    `rampup_begin_step` the ranks average their gradients, and the rule is Momentum. From then on,
    with a share s of entries that are kept back, every rank computes

    .. math::
        g &= \mathrm{clip}(\nabla / N) + \mathrm{decay}(p) / N \\
        u &\leftarrow \mu u + g, \qquad v \leftarrow v + u \\
        \text{(Nesterov: } u &\leftarrow \mu (u + g), \qquad v \leftarrow v + u + g)

    and sends the :math:`k = \max(1, \lfloor n (1 - s) \rfloor)` entries of v with the largest
    magnitude (of equal ones the first), as indices and values. Those are cleared from v and, with
    `masking`, from u; the rest stays, and is sent when it has grown. The parameter moves by the sum
    over the ranks of what was sent,

    .. math:: p \leftarrow p - \eta \sum_{ranks} \mathrm{sent}

    Parameters of fewer than 16,384 elements, or of another dtype than float32, are exchanged whole,
    and updated by Momentum.

    Parameters
    ----------
    learning_rate : float
        The rate :math:`\eta`.
    momentum : float
        Decay rate of the velocity, :math:`\mu` in [0, 1].
    rampup_begin_step : int
        The first step, from 0, that is compressed.
    rampup_step : int
        The number of steps over which the sparsities of the warm-up are spread: at step i after
        the first it is ``sparsity[min(i * len(sparsity) // rampup_step, len(sparsity) - 1)]``.
    sparsity : list of float
        Shares of entries that are kept back, each in [0, 1).
    parameters : sequence of Tensor or of dict
        As for every optimizer. Each rank has its own, with equal values at the beginning
        (`optlab.parallel.broadcast`).
    use_nesterov : bool
        Nesterov momentum.
    num_trainers : int, optional
        The number of ranks, if it is to be checked.
    weight_decay : float or Regularizer, optional
        Added to the gradient unclipped, and once.
    grad_clip : ClipGradByNorm, optional
        A large parameter is clipped by each rank at ``clip_norm / sqrt(N)``, from
        `rampup_begin_step` on; a small one at ``clip_norm``, on the mean gradient.
    world : communicator, optional
        That of ``LocalWorld.run``, or mpi4py's ``MPI.COMM_WORLD``; either is the default inside
        such a run.
    masking : bool
        Momentum factor masking: u is cleared where an entry was sent.

    Raises
    ------
    ValueError
        With one trainer only, which has nobody to exchange with; if `num_trainers` is not the
        number of ranks; if the ranks' parameters differ in structure or at the first step in
        value, or two ranks share one.
    TypeError
        For another clip.

    Attributes
    ----------
    bytes_sent : int
        The bytes that this rank put into the last step, flags and small parameters included.

    Notes
    -----
    Source: Lin, Han, Mao, Wang and Dally 2018, "Deep gradient compression: reducing the
    communication bandwidth for distributed training", arXiv 1712.01887, algorithm 4. At
    `rampup_begin_step` u begins with the velocity divided by N, so that with a sparsity of 0 and
    without masking the steps are those of Momentum throughout (Paddle, whose Nesterov form lacks a
    factor :math:`\mu`, begins with zeros). u and v are a rank's own: save the state of every rank.

    A recorded trace has the term ``sent``, and of every parameter, whatever its size, one number a
    step: ``bytes_sent``, ``residual_norm`` (of v, what is held back), ``sparsity`` and others of
    `optlab.probes.Compression`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> def train(comm):
    ...     w = ol.Parameter(np.zeros(20_000, np.float32), name="w")
    ...     dgc = ol.optimizer.DGCMomentum(0.5, 0.9, 0, sparsity=[0.999], parameters=[w])
    ...     gradient = np.zeros(20_000, np.float32)
    ...     gradient[comm.rank] = 1.0 + comm.rank  # the largest entry of each rank is another
    ...     dgc.apply_gradients([(w, gradient)])
    ...     return w.numpy()[:3], dgc.bytes_sent
    >>> ol.parallel.LocalWorld(2).run(train)[0]
    (array([-0.25, -0.5 ,  0.  ], dtype=float32), 170)
    """

    #: Terms that are one number for each parameter.
    scalar_terms: ClassVar[tuple[str, ...]] = ("bytes_sent", "residual_norm", "sparsity")

    hyperparameters: ClassVar[dict[str, Any]] = {
        "learning_rate": REQUIRED,
        "momentum": REQUIRED,
        "rampup_begin_step": REQUIRED,
        "rampup_step": 1,
        "sparsity": [0.999],
        "use_nesterov": False,
        "num_trainers": None,
        "world": None,
        "masking": True,
    }
    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate", "momentum", "rampup_begin_step", "rampup_step", "sparsity", "parameters",
        "use_nesterov", "num_trainers", "weight_decay", "grad_clip",
    )  # fmt: skip
    slots: ClassVar[dict[str, float]] = {"u": 0.0, "v": 0.0, "velocity": 0.0}
    kind: ClassVar[str] = "tensor"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "rampup_begin_step": (0.0, math.inf),
        "rampup_step": (1, math.inf),
    }

    def __init__(self, *values: Any, **named: Any) -> None:
        self._exchange: Exchange | None = None
        self.bytes_sent = 0
        super().__init__(*values, **named)

    def check(self, h: Any) -> None:
        """Validate steps, sparsities, the number of trainers and the clip."""
        if h.rampup_begin_step != int(h.rampup_begin_step):
            raise ValueError(
                f"rampup_begin_step must be a whole number; got {h.rampup_begin_step!r}."
            )
        if not isinstance(h.sparsity, (list, tuple)) or not h.sparsity:
            raise ValueError(
                f"sparsity must be a list of shares, such as [0.75, 0.9375, 0.999]; got "
                f"{h.sparsity!r}."
            )
        for one in h.sparsity:
            if not 0 <= as_float(one, "an entry of sparsity") < 1:
                raise ValueError(
                    f"an entry of sparsity is a share of elements in [0, 1); got {one!r}."
                )
        trainers = h.num_trainers
        if trainers is not None and (
            isinstance(trainers, bool) or not isinstance(trainers, (int, np.integer))
        ):
            raise TypeError(f"num_trainers must be a whole number, or None; got {trainers!r}.")
        for name in ("world", "num_trainers"):
            if getattr(h, name) is not self.settings[name]:
                raise ValueError(f"{name} is one for all groups.")
        clips = [self._common["grad_clip"], *(group.grad_clip for group in self.groups)]
        for clip in clips:
            _check_clip(clip)

    def for_parameter(self, parameter: Any, h: Any) -> dict[str, Any]:
        """Raise TypeError for ensembles."""
        if isinstance(parameter.data, EnsembleArray):
            raise TypeError(
                "DGCMomentum exchanges the gradients of one run; ensembles are many. Use Momentum."
            )
        return {}

    def _bind(self, parameters: Any) -> None:
        self._exchange = None
        self._world()
        super()._bind(parameters)
        for group in self.groups:
            _check_clip(group.grad_clip)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_exchange": None}

    def _world(self) -> Any:
        """Return the world, which has several ranks."""
        world = self.settings["world"]
        world = default_world() if world is None else world
        size = 1 if world is None else world.Get_size()
        trainers = self.settings["num_trainers"]
        if size == 1:
            raise ValueError(
                f"{type(self).__name__} exchanges gradients among several trainers, and there is "
                "one; with one it is Momentum(learning_rate, momentum, use_nesterov=...). Run it "
                "on simulated ranks, ol.parallel.LocalWorld(4).run(train), or on those of MPI: "
                "mpiexec -n 4 python -m mpi4py train.py."
            )
        if trainers is not None and trainers != size:
            raise ValueError(
                f"num_trainers={trainers}, but the world has {size} ranks; leave it out."
            )
        return world

    def _joined(self) -> Exchange:
        """Return the exchange; before the first one check that the ranks fit together."""
        if self._exchange is None:
            exchange = Exchange(self._world(), type(self).__name__)
            check_apart(exchange, self.parameters, label_of)
            _check_equal(exchange, self.parameters)
            self._exchange = exchange
        return self._exchange

    # The rule -----------------------------------------------------------------------------------

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        """Apply Momentum to the mean gradient: of small parameters, and before the ramp-up."""
        velocity = h.momentum * s.velocity + g
        if h.use_nesterov:
            step = h.learning_rate * (g + h.momentum * velocity)
        else:
            step = h.learning_rate * velocity
        return p - step, {"u": s.u, "v": s.v, "velocity": velocity}, {"update": -step}

    def sparsity_at(self, step: int, h: Any = None) -> float | None:
        """Return the share that is kept back at a step, from 0; None before the ramp-up.

        Examples
        --------
        >>> import optlab as ol
        >>> dgc = ol.optimizer.DGCMomentum(0.1, 0.9, 10, 100, [0.75, 0.9375, 0.984375, 0.996])
        >>> [dgc.sparsity_at(step) for step in (9, 10, 34, 35, 60, 85, 999)]
        [None, 0.75, 0.75, 0.9375, 0.984375, 0.996, 0.996]
        """
        begin, over, shares = (
            self.settings[name] if h is None else getattr(h, name)
            for name in ("rampup_begin_step", "rampup_step", "sparsity")
        )
        if step < begin:
            return None
        number = int((step - begin) * len(shares) // over)
        return float(shares[min(number, len(shares) - 1)])

    def gathered(
        self, g: Any, u: Any, v: Any, velocity: Any, h: Any, first: bool, ranks: int
    ) -> tuple[Any, Any]:
        """Return new u and v of a rank, before it sends; `first` at `rampup_begin_step`."""
        if first:
            u = velocity / ranks * (h.momentum if h.use_nesterov else 1.0)
            v = np.zeros_like(v)
        if h.use_nesterov:
            u = h.momentum * (u + g)
            return u, v + (u + g)
        u = h.momentum * u + g
        return u, v + u

    # The step -----------------------------------------------------------------------------------

    @effect
    def step(self, closure: None = None) -> None:
        """Exchange gradients and update every parameter; all ranks call it at the same time.

        A parameter without a gradient on this rank, but with one on another, counts as one with a
        gradient of zeros.
        """
        if closure is not None:
            raise TypeError(no_closure(type(self).__name__, closure))
        self._require_parameters()
        with self._step_hooks():
            self._take(None)
        if events.step_finished.listeners:
            events.step_finished.publish(self)

    @effect
    def apply_gradients(self, params_grads: Any) -> list[Any]:
        """Take a step with these gradients in place of those that the parameters hold."""
        self._require_parameters()
        given = self._gradients_by_id(params_grads)
        with self._step_hooks(params_grads):
            self._take(given)
        if events.step_finished.listeners:
            self.given_gradients = given
            try:
                events.step_finished.publish(self)
            finally:
                self.given_gradients = None
        return []

    def _take(self, given: dict[int, Any] | None) -> None:
        rule = cast("UpdateRule", self)
        self.unfinished.finish()
        exchange = self._joined()
        has_listeners = bool(events.step_taken.audience_of(self))
        rate = self.get_lr()
        parts, present = self._parts(given, exchange.size)
        looks = self.not_finite != "pass"
        finite, refusal = True, None
        if looks:
            pairs = [(p.params.parameters[p.span.first], p.gradient) for p in parts]
            try:
                finite = gradients_are_finite(rule, iter(pairs))
            except FloatingPointError as error:
                finite, refusal = False, error
        flags = np.array([finite, *present], np.uint8)
        pieces = [flags, *(one for part in parts for one in part.pieces)]
        steps = [part.span.t for part in parts]
        found = self._exchanged(exchange, pieces, steps)
        if not self._all_finite(exchange, [bool(x[0][0]) for x in found], refusal):
            return
        union = np.bitwise_or.reduce([x[0] for x in found])[1:]
        updates, place = [], 1
        for part, any_rank in zip(parts, union, strict=True):
            width = len(part.pieces)
            if any_rank:
                theirs = [x[place : place + width] for x in found]
                updates.append(self._updated(part, theirs, rate, exchange.size, has_listeners))
            place += width
        if looks:
            refusal, finite = None, True
            try:
                finite = results_are_finite(rule, updates, None, [])
            except FloatingPointError as error:
                finite, refusal = False, error
            votes = exchange.gather(np.array([finite], np.uint8))
            if not self._all_finite(exchange, [bool(x[0]) for x in votes], refusal):
                return
        try:
            write_results(rule, updates, None, [], has_listeners)
        except BaseException as error:
            again = partial(write_results, rule, updates, None, [], has_listeners)
            roll_forward(self.unfinished, again, error)
            raise
        if has_listeners:
            events.step_taken.publish(self, updates)
        if given is None and not updates:
            warn_of_no_gradient(rule)

    def _all_finite(
        self, exchange: Exchange, votes: list[bool], own: FloatingPointError | None
    ) -> bool:
        """Return whether all ranks go on; a step is left out, or refused, by all of them."""
        if all(votes):
            return True
        if self.not_finite == "skip":
            self.skipped += 1
            return False
        if own is not None:
            raise own
        who = exchange.name(votes.index(False))
        raise FloatingPointError(f"{who} has numbers that are not finite. Nothing was changed.")

    def _parts(self, given: Any, ranks: int) -> tuple[list[_Part], list[bool]]:
        """Return every parameter with what this rank sends of it, and whether it has a gradient."""
        parts, present = [], []
        for group, params, i, g in self._gradients(given):
            [span] = [
                one
                for one in params.spans([0] * len(params.parameters), group.regularizer, False)
                if one.first == i
            ]
            p = params.parameters[i]
            present.append(g is not None)
            if isinstance(g, RowSparse):
                g = g.dense()
            flat = params.values[params.bounds[i] : params.bounds[i + 1]]
            g = np.zeros_like(flat) if g is None else g.reshape(-1).astype(flat.dtype, copy=False)
            large = p.size >= SMALLEST and p.data.dtype == np.float32
            share = self.sparsity_at(span.t - 1, span.h) if large else None
            part = _Part(group, params, span, g, share, None)
            if share is not None:
                part = part._replace(sent=self._compressed(part, ranks))
            parts.append(part)
        return parts, present

    def _gradients(self, given: Any) -> Iterator[tuple[Group, FlatParameters, int, Any]]:
        for group in self.groups:
            for params in group.arenas:
                params.make_ready()
                for i, g in enumerate(params.gradients(given)):
                    yield group, params, i, g

    def _compressed(self, part: _Part, ranks: int) -> tuple[Any, Any, Any, Any, Any]:
        """Return local gradient, new u and v before they are cleared, indices and values sent."""
        group, params, span, raw_gradient, share, _ = part
        p = params.values[part.place]
        g = raw_gradient / ranks
        if group.grad_clip is not None:
            local = type(group.grad_clip)(group.grad_clip.clip_norm / math.sqrt(ranks))
            [(_, g)] = local([(params.parameters[span.first], g)])
        if span.regularizer is not None:
            decay, _ = with_decay(span.regularizer, np.zeros_like(p), p)
            g = g + decay / ranks
        slots = {name: array[part.place] for name, array in params.slots.items()}
        first = span.t - 1 == int(span.h.rampup_begin_step)
        u, v = self.gathered(g, **slots, h=span.h, first=first, ranks=ranks)
        assert share is not None
        count = max(1, math.floor(round(v.size * (1 - share), 6)))
        indices = largest_entries(v, count)
        return g, u, v, indices, v[indices]

    def _exchanged(
        self, exchange: Exchange, pieces: list[Any], steps: list[int]
    ) -> list[list[Any]]:
        """Return the pieces of all ranks, in the order of the ranks."""
        count = np.array([sum(steps), len(pieces)], np.int32)  # that all are at the same step
        stays = [exchange.moves(one) for one in pieces]
        pairs = zip(pieces, stays, strict=True)
        payload = [count, *(on_host(one) for one, here in pairs if not here)]
        own = np.concatenate([one.reshape(-1).view(np.uint8) for one in payload])
        self.bytes_sent = own.nbytes
        found = []
        for rank, theirs in enumerate(exchange.gather(own)):
            there, place = [], 0
            for one in payload:
                there.append(theirs[place : place + one.nbytes].view(one.dtype))
                place += one.nbytes
            if (there[0] != count).any():
                raise RuntimeError(
                    f"{exchange.name(exchange.rank)} is at another step than "
                    f"{exchange.name(rank)}: the parameters have been updated {count[0]} and "
                    f"{there[0][0]} times. Give every rank the state of the same step."
                )
            found.append(there[1:])
        for i, (piece, here) in enumerate(zip(pieces, stays, strict=True)):
            if here:
                self.bytes_sent += piece.nbytes
                arrived = exchange.gather(piece.reshape(-1))
            else:
                arrived = [constants_beside(piece, theirs[i]) for theirs in found]
            for theirs, one in zip(found, arrived, strict=True):
                theirs[i : i + (not here)] = [one]
        return found

    def _updated(
        self, part: _Part, theirs: list[list[Any]], base_rate: Any, ranks: int, has_listeners: bool
    ) -> Update:
        """Return the update of one parameter, from what all ranks sent."""
        group, params, span, raw_gradient, share, sent = part
        h, place = span.h, part.place
        p = params.read_only[place]
        rate = base_rate * group.multiplier * span.multiplier
        whole = len(params.parameters) == 1
        h.__dict__["learning_rate"] = rate
        slots = {name: readonly(array[place]) for name, array in params.slots.items()}
        nbytes = sum(one.nbytes for one in part.pieces)
        if sent is None:
            g = (added([one for [one] in theirs]) / ranks).astype(p.dtype, copy=False)
            if group.grad_clip is not None and not self._is_large(params, span):
                [(_, g)] = group.grad_clip([(params.parameters[span.first], g)])
            g, _ = with_decay(span.regularizer, g, p)
            g = readonly(g)
            new, made, terms = apply_rule(
                cast("UpdateRule", self), p, g, slots, h, span.t, None, (params, span.first),
                has_listeners,
            )  # fmt: skip
            terms = {**terms, **_report(raw_gradient, nbytes, 0.0, 0.0)} if has_listeners else terms
        else:
            g, u, v, indices, values = sent
            total = zeros_beside(p, p.shape)
            for there, what in theirs:
                total[there] += what  # no index is twice in one rank's
            held = v  # this step's own array, as u is
            held[indices] = 0.0
            if h.masking:
                u[indices] = 0.0
            new = p.copy()
            for there, _ in theirs:
                new[there] = p[there] - rate * total[there]
            made = {"u": u, "v": held, "velocity": zeros_beside(p, p.shape)}
            made = {name: readonly(array) for name, array in made.items()}
            terms = {}
            if has_listeners:
                whole_sent = np.zeros_like(p)
                whole_sent[indices] = values
                norm = float(np.sqrt(np.sum(np.square(held, dtype=np.float64))))
                terms = {"update": -rate * total, **_report(whole_sent, nbytes, norm, share)}
        return Update(
            params, span.first, span.last, span.t, rate, readonly(raw_gradient), g, new, made,
            terms, whole,
        )  # fmt: skip

    def _is_large(self, params: FlatParameters, span: Span) -> bool:
        p = params.parameters[span.first]
        return bool(p.size >= SMALLEST and p.data.dtype == np.float32)

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state of this rank; see `Optimizer.set_state_dict`."""
        super().set_state_dict(state_dict)
        self._exchange = None  # whether the ranks fit together is checked again


def _report(sent: Any, nbytes: int, norm: float, share: float | None) -> dict[str, Any]:
    """Return the terms of the exchange of one parameter."""
    return {
        "sent": sent,
        "bytes_sent": float(nbytes),
        "residual_norm": norm,
        "sparsity": share,
    }


def _check_clip(clip: Any) -> None:
    if clip is not None and not isinstance(clip, ClipGradByNorm):
        raise TypeError(
            "DGCMomentum takes ClipGradByNorm as grad_clip, whose limit each trainer can keep by "
            f"itself; got {clip!r}."
        )


def _check_equal(exchange: Exchange, parameters: list[Any]) -> None:
    """Raise if a parameter differs among the ranks before the first step."""
    import hashlib

    own = [
        hashlib.blake2b(np.ascontiguousarray(on_host(p.data)).data, digest_size=16).digest()
        for p in parameters
    ]
    for rank, theirs in enumerate(exchange.gather_objects(own)):
        for p, mine, other in zip(parameters, own, theirs, strict=True):
            if mine != other:
                raise ValueError(
                    f"{label_of(p)} differs between rank {exchange.rank} and rank {rank}: all "
                    "begin with the same values. Write model = ol.parallel.DataParallel(model, "
                    "comm), or ol.parallel.broadcast(model, comm), first."
                )
