"""Models of opsets before the oldest that the importers know, converted by ONNX itself."""

from __future__ import annotations

import onnx
from onnx import version_converter

from glowmcu.errors import UnsupportedError
from glowmcu.frontend.read import OLDEST_OPSET, domain_of


def upgraded(model: onnx.ModelProto, notes: list[str]) -> onnx.ModelProto:
    """Return the model in an opset that the importers know; a newer one as it is."""
    opset = next((o.version for o in model.opset_import if not domain_of(o.domain)), OLDEST_OPSET)
    if not 0 < opset < OLDEST_OPSET:
        return model
    try:
        converted = version_converter.convert_version(model, OLDEST_OPSET)
    except Exception as error:  # the converter raises anything on a malformed model
        raise UnsupportedError(
            f"the model uses opset {opset}, and ONNX cannot convert it to {OLDEST_OPSET}",
            why=str(error).splitlines()[0] if str(error) else "",
            hint="export the model with a newer opset",
        ) from error
    notes.append(f"the model was converted from opset {opset} to {OLDEST_OPSET}")
    return converted
