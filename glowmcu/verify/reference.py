"""ONNX Runtime as the golden reference: every tensor of a model, optimisation off."""

from __future__ import annotations

from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator

from glowmcu.core.types import Array
from glowmcu.errors import ToolMissingError, VerificationError


class Reference:
    """Runs an ONNX model in ONNX Runtime and returns all its tensors by name."""

    def __init__(self, model: onnx.ModelProto, *, intermediates: bool = True) -> None:
        """Load the model; with `intermediates` every node's outputs are returned too.

        Raises ToolMissingError without onnxruntime, VerificationError when it refuses the model.
        """
        try:
            import onnxruntime
        except ImportError:
            raise ToolMissingError(
                "verify compares with ONNX Runtime, which is not installed",
                hint="pip install 'glowmcu[verify]'",
            ) from None
        self._watched = watched = onnx.ModelProto()
        watched.CopyFrom(model)
        if intermediates:
            _expose_all(watched)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session: Any = onnxruntime.InferenceSession(
                watched.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise VerificationError(
                "ONNX Runtime does not accept the model", why=str(error).splitlines()[0]
            ) from None
        self.outputs = tuple(o.name for o in model.graph.output)

    def run(self, feeds: dict[str, Array]) -> dict[str, Array]:
        """Return every tensor by name, the feeds included.

        ONNX's own evaluator takes over where a tensor has a type that numpy does not know, which
        ONNX Runtime's Python interface does not hand over.
        """
        wanted = {i.name for i in self._session.get_inputs()}
        names = [o.name for o in self._session.get_outputs()]
        given = {name: array for name, array in feeds.items() if name in wanted}
        try:
            found = self._session.run(names, given)
        except RuntimeError as error:
            if "numpy" not in str(error).lower():
                raise
            found = ReferenceEvaluator(self._watched).run(names, given)
        return {**feeds, **dict(zip(names, found, strict=True))}


def _expose_all(model: onnx.ModelProto) -> None:
    """Make every node's output a graph output as well."""
    known = {o.name for o in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in known:
                known.add(name)
                model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
