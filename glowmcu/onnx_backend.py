"""ONNX's own backend interface: a model is compiled to C, built for this machine and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from glowmcu.core.types import Array
from glowmcu.driver import Compilation, compile_network
from glowmcu.errors import UnsupportedError
from glowmcu.options import Options
from glowmcu.verify.extent import cropped
from glowmcu.verify.host import HostLibrary, digest_of_weights

Feeds = Mapping[str, Array]
OPTIONS = Options(name="model", specialize="none", stripe=False)
FLAGS = ("-O1", "-std=c99", "-ffp-contract=off")


def inputs_of(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the names of the inputs that a caller gives: those without an initializer."""
    constants = {t.name for t in model.graph.initializer}
    return tuple(i.name for i in model.graph.input if i.name not in constants)


def compile_for(
    model: onnx.ModelProto, feeds: Feeds, options: Options = OPTIONS
) -> tuple[Compilation, Feeds]:
    """Compile a model; inputs that must be known at compile time become constants.

    The model is first compiled with all of its inputs given at run time. An input whose value the
    compiler asks for (a shape, axes, a zero point) is then fixed to its value in `feeds`.
    Returns the compilation and the feeds that remain.
    """
    fixed: dict[str, Any] = {}
    while True:
        given = {n: a for n, a in feeds.items() if isinstance(a, np.ndarray)}  # or not a tensor
        shapes = {n: a.shape for n, a in given.items() if n not in fixed}
        try:
            found = compile_network(model, replace(options, shapes=shapes, fix_inputs=fixed))
        except UnsupportedError as error:
            needed = {n for p in error.problems for n in p.needs} - fixed.keys()
            if not needed:
                raise
            fixed |= {n: feeds[n] for n in sorted(needed)}
        else:
            return found, {n: a for n, a in feeds.items() if n not in fixed}


class GlowmcuRep(BackendRep):
    """A model, compiled when it is first run and again when a fixed input has another value."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._libraries: dict[Any, HostLibrary] = {}

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run once; `inputs` in the order of the model's inputs, or a dict of them by name."""
        names = inputs_of(self._model)
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            values = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            given = dict(zip(names, values, strict=False))
        tensors = {i.name for i in self._model.graph.input if i.type.HasField("tensor_type")}
        feeds = {n: np.asarray(a) if n in tensors else a for n, a in given.items()}
        compilation, rest = compile_for(self._model, feeds)
        unit = compilation.unit
        key = (unit.files[f"{unit.name}.c"], digest_of_weights(unit))
        if key not in self._libraries:
            self._libraries[key] = HostLibrary(unit, flags=FLAGS)
        outputs = cropped(self._libraries[key].run(rest), unit.extents)
        order = [o.name for o in self._model.graph.output]
        return namedtupledict("Outputs", order)(*(outputs[n] for n in order))


class GlowmcuBackend(Backend):
    """The backend; the only device is this machine."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Tell whether the model can be tried at all."""
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> GlowmcuRep:
        """Return the model, ready to run."""
        super().prepare(model, device, **kwargs)
        return GlowmcuRep(model)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node on arrays; `opset_version` chooses its meaning."""
        super().run_node(node, inputs, device, outputs_info)
        names = [n for n in node.input if n]
        values = [inputs[n] for n in names] if isinstance(inputs, Mapping) else list(inputs)
        arrays = {n: np.asarray(a) for n, a in zip(names, values, strict=True)}
        graph = helper.make_graph(
            [node],
            "node",
            [
                helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                for n, a in arrays.items()
            ],
            [helper.make_empty_tensor_value_info(n) for n in node.output if n],
        )
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        return GlowmcuRep(model).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Tell whether the device is this machine's processor."""
        return device.split(":")[0] == "CPU"


prepare = GlowmcuBackend.prepare
run_model = GlowmcuBackend.run_model
run_node = GlowmcuBackend.run_node
supports_device = GlowmcuBackend.supports_device
is_compatible = GlowmcuBackend.is_compatible
