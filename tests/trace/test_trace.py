"""The trace: probes, norms, names, skipped parameters, and its interface to xarray."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH, WithNorms, give, random


def two_parameters(make=EACH["Adam"], steps=4, names=("p", "q"), **options):
    p = ol.Parameter(random(2, 3), name=names[0])
    q = ol.Parameter(random(2, seed=1), name=names[1])
    optimizer = make(parameters=[p, q], weight_decay=0.1)
    with ol.record(optimizer, **options) as trace:
        for step in range(steps):
            ((p * p).sum() * (1 + step) + (q * q * q).sum()).backward()
            optimizer.step()
            optimizer.clear_grad()
    return trace


def arrays_of(trace):
    """Return every array over steps, by a name that describes it."""
    kinds = {"parameter": {n: a[1:] for n, a in trace.parameters.items()}}
    kinds |= {"gradient": trace.gradients, **trace.slots, **trace.terms}
    return {f"{kind} of {n}": a for kind, arrays in kinds.items() for n, a in arrays.items()}


class TestProbes:
    def test_toy_is_everything(self):
        trace = two_parameters(probes="toy")
        assert set(trace.parameters) == {"p", "q"}
        assert set(trace.slots) == {"moment1", "moment2"}
        assert set(trace.terms) == {"update", "root", "used_gradient"}
        for name, array in arrays_of(trace).items():
            assert array.shape == ((4, 2, 3) if name.endswith("p") else (4, 2))

    def test_norms_alone(self):
        trace = two_parameters(probes=["norms"])
        assert not trace.parameters
        assert not trace.gradients
        assert not trace.slots
        assert not trace.terms
        assert set(trace.norms) == {
            "parameter", "gradient", "moment1", "moment2", "update", "root", "used_gradient",
        }  # fmt: skip
        assert trace.norms["gradient"]["p"].shape == (4,)
        assert len(trace.loss) == 4

    @pytest.mark.parametrize("make", [*EACH.values(), WithNorms], ids=[*EACH, "WithNorms"])
    def test_recorded_norms_equal_norms_of_values(self, make):
        values = two_parameters(make, probes=["values"])
        both = two_parameters(make, probes=["values", "norms"])
        light = two_parameters(make, probes=["norms"])
        by_hand = {
            name: np.sqrt((a.reshape(4, -1).astype(float) ** 2).sum(1))
            for name, a in arrays_of(values).items()
        }
        for trace in (values, both, light):
            found = {
                f"{kind} of {n}": a for kind, norms in trace.norms.items() for n, a in norms.items()
            }
            assert set(found) == set(by_hand)
            for name, norm in found.items():
                np.testing.assert_allclose(norm, by_hand[name], rtol=1e-12, err_msg=name)

    def test_small_problems_record_everything_large_ones_norms(self):
        for size, everything in ((1000, True), (1001, False)):
            p = ol.Parameter(np.zeros(size), name="w")
            optimizer = ol.optimizer.SGD(0.1, parameters=[p])
            with ol.record(optimizer) as trace:
                give(p, np.ones(size))
                optimizer.step()
            assert bool(trace.parameters) is everything
            assert trace.norms["gradient"]["w"][0] == pytest.approx(np.sqrt(size))

    def test_a_slot_and_a_term_of_one_name_do_not_mix(self):
        class Same(ol.optimizer.Optimizer):
            slots = {"velocity": 0.0}

            def update(self, p, g, s, h, c):
                return p - g, {"velocity": g}, {"velocity": 3 * g}

        p = ol.Parameter([1.0], name="w")
        optimizer = Same(parameters=[p])
        with ol.record(optimizer, probes=["norms"]) as trace:
            for _ in range(2):
                give(p, [1.0])
                optimizer.step()
                optimizer.clear_grad()
        for norms in trace.norms.values():
            assert norms["w"].shape == (2,)


@pytest.mark.filterwarnings("ignore:no parameter of this")
class TestSkipped:
    def run(self, who_steps, make=EACH["Adam"], mixed=False, **options):
        """Record a run in which only the parameters listed for each step have a gradient."""
        ps = [
            ol.Parameter(random(2, seed=i, dtype="float32" if mixed and i else "float64"),
                         name=f"p{i}")
            for i in range(3)
        ]  # fmt: skip
        optimizer = make(parameters=ps)
        values = [[p.numpy() for p in ps]]
        with ol.record(optimizer, **options) as trace:
            for step, who in enumerate(who_steps):
                for i in who:
                    give(ps[i], random(2, seed=10 * step + i))
                optimizer.step()
                optimizer.clear_grad(set_to_zero=False)
                values.append([p.numpy() for p in ps])
        return trace, values

    STEPS = {
        "one missing": [[0, 1, 2], [0, 2], [0, 1, 2]],
        "first step without one": [[1, 2], [0, 1, 2]],
        "one at a time": [[0], [1], [2]],
        "nobody in between": [[0, 1, 2], [], [0, 1, 2]],
        "nobody first": [[], [0, 1, 2], [0]],
        "one never": [[0, 1], [0, 1]],
        "ends early": [[0, 1, 2], [0], []],
    }

    @pytest.mark.parametrize("mixed", [False, True])
    @pytest.mark.parametrize("steps", STEPS.values(), ids=list(STEPS))
    @pytest.mark.parametrize("make", [EACH["Adam"], EACH["Momentum"], WithNorms])
    def test_gradients_and_terms_are_nan_where_a_parameter_was_left_alone(self, steps, mixed, make):
        trace, values = self.run(steps, make, mixed)
        for i in range(3):
            name = f"p{i}"
            assert np.array_equal(trace.parameters[name], [v[i] for v in values])
            left = np.array([i not in who for who in steps])
            for kind, arrays in {"gradient": trace.gradients, **trace.terms}.items():
                assert arrays[name].shape == (len(steps), 2), kind
                assert np.isnan(arrays[name][left]).all(), kind
                assert not np.isnan(arrays[name][~left]).any(), kind
            for slot, arrays in trace.slots.items():
                assert arrays[name].shape == (len(steps), 2), slot
                assert not np.isnan(arrays[name]).any(), slot
                for step in np.flatnonzero(left):
                    before = arrays[name][step - 1] if step else np.zeros(2)
                    assert np.array_equal(arrays[name][step], before), slot

    @pytest.mark.parametrize("steps", STEPS.values(), ids=list(STEPS))
    def test_norms_keep_the_steps_too(self, steps):
        trace, _ = self.run(steps, probes=["norms"])
        for kind, norms in trace.norms.items():
            for i in range(3):
                assert norms[f"p{i}"].shape == (len(steps),), kind
                left = np.array([i not in who for who in steps])
                if kind in ("gradient", "update", "root"):
                    assert np.array_equal(np.isnan(norms[f"p{i}"]), left), kind

    def test_the_used_gradient_has_a_row_for_every_step(self):
        p = ol.Parameter([1.0], name="p")
        q = ol.Parameter([2.0], name="q", regularizer=ol.regularizer.L2Decay(0.5))
        optimizer = ol.optimizer.SGD(0.0, parameters=[p, q])
        with ol.record(optimizer) as trace:
            for who in ([p], [p, q], [q]):
                for parameter in who:
                    give(parameter, [1.0])
                optimizer.step()
                optimizer.clear_grad(set_to_zero=False)
        used = trace.terms["used_gradient"]
        np.testing.assert_array_equal(used["p"], [[1.0], [1.0], [np.nan]])
        np.testing.assert_array_equal(used["q"], [[np.nan], [2.0], [2.0]])

    def test_a_term_that_is_named_now_and_then_has_nan_in_between(self):
        class Sometimes(ol.optimizer.Optimizer):
            def scalars(self, t, h):
                return {"t": t}

            def update(self, p, g, s, h, c):
                return p - g, {}, {"update": -g} if c.t % 2 else {"update": -g, "even": g}

        p = ol.Parameter([1.0], name="w")
        optimizer = Sometimes(parameters=[p])
        with ol.record(optimizer) as trace:
            for _ in range(5):
                give(p, [1.0])
                optimizer.step()
                optimizer.clear_grad()
        even = trace.terms["even"]["w"][:, 0]
        np.testing.assert_array_equal(even, [np.nan, 1.0, np.nan, 1.0, np.nan])


class TestNames:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (("w", "b"), ["w", "b"]),
            ((None, None), ["parameter 0", "parameter 1"]),
            (("w", None), ["w", "parameter 1"]),
            (("w", "w"), ["w", "w (2)"]),
        ],
    )
    def test_of_parameters(self, given, expected):
        trace = two_parameters(names=given)
        assert list(trace.parameters) == list(trace.gradients) == expected
        assert trace.parameters[expected[0]].shape == (5, 2, 3)
        assert trace.parameters[expected[1]].shape == (5, 2)

    def test_that_are_taken_already(self):
        ps = [ol.Parameter([float(i)], name=name) for i, name in enumerate(["w", "w", "w (2)"])]
        optimizer = ol.optimizer.SGD(0.1, parameters=ps)
        with ol.record(optimizer) as trace:
            pass
        assert len(trace.parameters) == 3
        assert [a[0, 0] for a in trace.parameters.values()] == [0.0, 1.0, 2.0]

    def test_of_the_places_in_a_model(self):
        model = ol.nn.Sequential(ol.nn.Linear(2, 2), ol.nn.Linear(2, 1))
        with ol.record(ol.optimizer.SGD(0.1, parameters=model.parameters())) as trace:
            pass
        assert list(trace.parameters) == ["0.weight", "0.bias", "1.weight", "1.bias"]

    def test_of_plain_tensors_and_several_dtypes(self):
        w = ol.to_tensor(np.zeros(2), requires_grad=True)
        v = ol.to_tensor([1.0], requires_grad=True)
        u = ol.to_tensor(np.ones(3), requires_grad=True)
        optimizer = ol.optimizer.SGD(0.1, parameters=[w, v, u])
        with ol.record(optimizer) as trace:
            pass
        shapes = sorted(a.shape for a in trace.parameters.values())
        assert shapes == [(1, 1), (1, 2), (1, 3)]
        assert {a.dtype for a in trace.parameters.values()} == {np.dtype("f4"), np.dtype("f8")}

    def test_of_the_trace(self):
        p = ol.Parameter([1.0])
        for name in (None, "slow"):
            optimizer = ol.optimizer.SGD(0.125, parameters=[p], name=name)
            with ol.record(optimizer) as trace:
                pass
            assert trace.name == (name or "SGD")
            assert trace.settings == {"class": "SGD", "learning_rate": 0.125}


class TestAsking:
    def test_of_one_parameter_gives_the_array(self):
        p = ol.Parameter([1.0, 2.0], name="w")
        optimizer = ol.optimizer.Adam(0.1, parameters=[p])
        with ol.record(optimizer) as trace:
            optimizer.minimize((p * p).sum())
        assert np.array_equal(trace["moment1"], trace.slots["moment1"]["w"])
        assert np.array_equal(trace["update"], trace.terms["update"]["w"])
        assert np.array_equal(trace["gradient"], trace.gradients["w"])
        assert np.array_equal(trace["parameter"], trace.parameters["w"])
        assert np.array_equal(trace["loss"], trace.loss)
        assert np.array_equal(trace["step"], [1])

    def test_of_several_gives_a_mapping(self):
        trace = two_parameters()
        assert set(trace["moment1"]) == {"p", "q"}

    @pytest.mark.parametrize("probes", ["toy", ["norms"]])
    def test_what_is_not_there_is_a_key_error_that_lists_the_names(self, probes):
        trace = two_parameters(probes=probes)
        with pytest.raises(KeyError, match="nothing named 'velocity' was recorded") as caught:
            trace["velocity"]
        for name in trace:
            assert name in str(caught.value)
        assert set(trace) >= {"loss", "learning_rate", "seconds"}
        assert ("moment1" in set(trace)) is (probes == "toy")

    def test_names_are_all_answered(self):
        trace = two_parameters()
        assert set(trace) >= {"parameter", "gradient", "moment1", "moment2", "update", "root"}
        for name in trace:
            assert trace[name] is not None

    def test_before_the_first_step(self):
        optimizer = ol.optimizer.Adam(0.1, parameters=[ol.Parameter([1.0], name="w")])
        with ol.record(optimizer) as trace:
            assert len(trace) == 0
            assert trace.parameters["w"].tolist() == [[1.0]]
            assert trace.loss.shape == trace.learning_rate.shape == trace.step.shape == (0,)
            assert "0 steps" in repr(trace)

    def test_repr(self):
        text = repr(two_parameters())
        for part in ("Adam", "4 steps", "p, q", "moment1, moment2", "update"):
            assert part in text


class TestXarray:
    def test_holds_every_array_with_its_steps(self):
        trace = two_parameters()
        data = trace.to_xarray()
        assert data["step"].values.tolist() == [1, 2, 3, 4]
        assert np.array_equal(data["loss"].values, trace.loss)
        assert np.array_equal(data["start/p"].values, trace.parameters["p"][0])
        for name, array in arrays_of(trace).items():
            kind, _, parameter = name.partition(" of ")
            variable = data[f"{kind}/{parameter}"]
            assert variable.dims[0] == "step"
            assert np.array_equal(variable.values, array)

    def test_selects_by_step(self):
        trace = two_parameters(every=2)
        chosen = trace.to_xarray().sel(step=3)
        assert float(chosen["loss"]) == trace.loss[1]
        assert np.array_equal(chosen["moment1/q"].values, trace.slots["moment1"]["q"][1])

    def test_traces_of_norms_give_them(self):
        trace = two_parameters(probes=["norms"])
        data = trace.to_xarray()
        assert np.array_equal(data["norm of gradient/p"].values, trace.norms["gradient"]["p"])
        assert data["norm of gradient/p"].dims == ("step",)

    def test_says_whose_run_it_was_and_why_it_stopped(self):
        p = ol.Parameter([1.0])
        with (
            pytest.raises(ZeroDivisionError),
            ol.record(ol.optimizer.Adam(0.25, parameters=[p])) as trace,
        ):
            raise ZeroDivisionError("by zero")
        attributes = trace.to_xarray().attrs
        assert attributes["name"] == "Adam"
        assert attributes["learning_rate"] == "0.25"
        assert "by zero" in attributes["stopped"]

    @pytest.mark.filterwarnings("ignore:no parameter of this")
    def test_a_run_that_skipped_parameters(self):
        trace, _ = TestSkipped().run([[], [0, 1, 2], [1]])
        assert trace.to_xarray()["update/p0"].shape == (3, 2)


class TestWhatIsNotThere:
    """Names that were not recorded, and probes that are none, are answered with what there is."""

    def recorded(self, **options):
        w = ol.Parameter([1.0, 2.0], name="w")
        optimizer = ol.optimizer.Adam(0.1, parameters=[w])
        with ol.record(optimizer, **options) as trace:
            for _ in range(3):
                optimizer.clear_grad()
                (w * w).sum().backward()
                optimizer.step()
        return trace

    def test_the_nearest_name_comes_first(self):
        trace = self.recorded()
        for read in (trace.__getitem__, trace.steps):
            with pytest.raises(KeyError, match=r"nothing named 'momnet1' .*; there is moment1, "):
                read("momnet1")
            with pytest.raises(KeyError) as caught:
                read("nothing like it")
            assert all(name in str(caught.value) for name in trace.names)

    def test_a_parameter_is_said_to_be_one(self):
        with pytest.raises(KeyError, match=r"'w' is a parameter: trace\['gradient'\]\['w'\]"):
            self.recorded()["w"]
        with pytest.raises(KeyError, match=r"trace\['norm of gradient'\]\['w'\]"):
            self.recorded(probes=["norms"])["w"]

    def test_a_table_is_a_dataframe(self):
        with pytest.raises(AttributeError, match=r"no table\(\): trace.to_dataframe\(\)"):
            self.recorded().table()
        with pytest.raises(AttributeError, match="'Trace' object has no attribute 'losses'"):
            _ = self.recorded().losses

    def test_what_was_left_out_stands_in_the_repr(self):
        trace = self.recorded(probes=[ol.probes.Values(elements=1), ol.probes.Norms()])
        assert trace.left_out
        assert repr(trace).endswith("; left out: 1, see .left_out>")
        assert "left out" not in repr(self.recorded())

    @pytest.mark.parametrize(
        ("probes", "hint"),
        [
            (["activations"], r"Write probes=\[ol.probes.Activations\(\)\], and model=net."),
            ("update ratio", r"Write probes=\[ol.probes.UpdateRatio\(\)\]."),
            (["values", "metric"], r"Write probes=\[ol.probes.Metric\(name, f\)\]."),
            ([ol.probes.Angle], r"Give an instance: probes=\[ol.probes.Angle\(\)\]."),
            (["light"], "A set of probes stands alone: probes='light'."),
            (["nothing like it"], r"got \['nothing like it'\].$"),
            (3, "got 3.$"),
        ],
    )
    def test_what_is_no_probe_gets_a_hint(self, probes, hint):
        with pytest.raises(ValueError, match=hint):
            self.recorded(probes=probes)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gradient", r"trace\['gradient'\] has it"), ("moment1", r"trace\['moment1'\] has it"),
        ("losses", r"did you mean trace\.loss\?"), ("plot", r"trace\.figure\(\) draws it"),
        ("dataframe", r"did you mean trace\.to_dataframe\?"), ("zzz", "no attribute 'zzz'$"),
    ],
)  # fmt: skip
def test_attributes_that_a_trace_lacks_name_what_it_has(name, hint):
    w = ol.Parameter([3.0], name="w")
    optimizer = ol.optimizer.Adam(0.1, parameters=[w])
    with ol.record(optimizer) as trace:
        (w * w).sum().backward()
        optimizer.step()
    trace.complete()
    with pytest.raises(AttributeError, match=hint):
        getattr(trace, name)
    assert not hasattr(trace, "__array_interface__")


@pytest.mark.parametrize(
    ("probes", "hint"),
    [
        ("lite", "Did you mean 'light'"), ("norms", r"Write a list: probes=\['norms'\]"),
        (ol.probes.Norms(), r"Write a list: probes=\[Norms\(terms=True\)\]"),
    ],
)  # fmt: skip
def test_probes_that_are_no_list_say_what_to_write(probes, hint):
    optimizer = ol.optimizer.SGD(0.1, parameters=[ol.Parameter([3.0])])
    with pytest.raises(ValueError, match=hint):
        ol.record(optimizer, probes)


def test_a_schedule_of_norms_has_a_name():
    with pytest.raises(TypeError, match=r"Norms\(every=10\)"):
        ol.probes.Norms(10)


def test_methods_name_the_trace_whatever_file_they_are_in():
    trace = ol.trace.Trace("mine")
    with pytest.raises(TypeError, match=r"^Trace\.fork\(.*\) needs step"):
        trace.fork()
    for method in (ol.trace.Trace.fork, ol.trace.Trace.append, ol.trace.Trace.steps):
        assert pickle.loads(pickle.dumps(method)) is method
