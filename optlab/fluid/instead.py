"""What to write in place of names of 1.8.5 that have no equal here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optlab.backend.namespaces import missing

EAGER = "there are no static graphs here; everything runs as it is called"

#: Names of static graphs, which several modules have.
STATIC: dict[str, str] = {
    "Program": f"{EAGER}. Leave programs out: call the model, model(x).",
    "default_main_program": f"{EAGER}. Leave programs out: call the model, model(x).",
    "default_startup_program": f"{EAGER}. Leave it out: parameters have values when they are made.",
    "program_guard": f"{EAGER}. Leave it out, and its block one level less indented.",
    "Executor": (
        f"{EAGER}. In place of exe.run(feed={{'x': x}}, fetch_list=[loss]) write, in the loop, "
        "loss = loss_fn(model(ol.to_tensor(x)), y); optimizer.minimize(loss); "
        "optimizer.clear_gradients()."
    ),
    "CompiledProgram": f"{EAGER}. Leave it out.",
    "ParallelExecutor": f"{EAGER}. Leave it out; large arrays use all cores anyway.",
    "data": f"{EAGER}. In place of a variable that is fed write x = ol.to_tensor(array).",
    "DataFeeder": f"{EAGER}. Call the model with the batches of ol.io.DataLoader.",
    "DatasetFactory": f"{EAGER}. Data come from ol.io.Dataset and ol.io.DataLoader.",
    "DataLoader": "write ol.io.DataLoader(dataset, batch_size=16).",
    "gradients": "write loss.backward() and p.grad, or ol.grad(function).",
    "append_backward": "write loss.backward(), or optimizer.backward(loss) for the pairs.",
    "global_scope": f"{EAGER}. The values of a parameter are parameter.numpy().",
    "scope_guard": f"{EAGER}. Leave it out.",
    "Variable": "values are ol.Tensor.",
}


def no_such_name(
    package: str, name: str, known: Sequence[str], instead: Mapping[str, str]
) -> AttributeError:
    """Return the error for a name that a package of 1.8.5 does not have.

    Examples
    --------
    >>> print(no_such_name("optlab.fluid", "program_guard", [], STATIC))
    optlab.fluid has no 'program_guard': there are no static graphs here; everything runs as it ...
    """
    if name in instead:
        return AttributeError(f"{package} has no {name!r}: {instead[name]}", name=name, obj=None)
    return missing(package, name, known)
