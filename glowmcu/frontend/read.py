"""Bytes to ModelProto: what is not a readable ONNX model of a known version is refused here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, Message

from glowmcu.errors import InvalidModelError, UnsupportedError

OLDEST_OPSET = 7
_MAX_FILE = (1 << 31) - 1
_FORMATS = (
    (4, b"TFL3", "a TensorFlow Lite model", "convert it with tf2onnx"),
    (0, b"version https://git-lfs", "a Git LFS pointer", "fetch the file with `git lfs pull`"),
    (0, b"PK\x03\x04", "a ZIP archive (a PyTorch checkpoint or an npz)", "export it to ONNX"),
    (0, b"\x89HDF", "an HDF5 file (Keras)", "convert it with tf2onnx"),
    (0, b"ORTM", "an ONNX Runtime model", "use the .onnx file that it was made of"),
)


@dataclass
class Source:
    """A model as read: the protobuf, where external data may lie, its hash so far."""

    proto: onnx.ModelProto
    folder: Path | None
    name: str
    size: int
    hash: hashlib._Hash
    notes: list[str] = field(default_factory=list)


def read(model: str | Path | bytes | onnx.ModelProto) -> Source:
    """Read and parse a model; raise InvalidModelError for whatever is not one."""
    folder: Path | None = None
    stem = where = ""
    if isinstance(model, onnx.ModelProto):
        data, proto = model.SerializeToString(deterministic=True), model
    elif isinstance(model, bytes):
        data = model
        proto = _parse(data, "the bytes given")
    else:
        path = Path(model)
        data = _read_file(path)
        folder, stem, where = path.parent, path.stem, f"file '{path}'"
        proto = _parse(data, where)
    _check_text(proto, where)
    if not proto.HasField("graph"):
        raise InvalidModelError("the model has no graph", where=where)
    name = stem or proto.graph.name or "model"
    return Source(proto, folder, name, len(data), hashlib.sha256(data))


def _read_file(path: Path) -> bytes:
    if not path.exists():
        raise InvalidModelError(f"there is no file '{path}'")
    if not path.is_file():
        raise InvalidModelError(f"'{path}' is not a file", hint="name the .onnx file itself")
    try:
        if path.stat().st_size > _MAX_FILE:
            raise InvalidModelError(f"'{path}' is larger than 2 GiB, more than ONNX allows")
        return path.read_bytes()
    except OSError as error:
        raise InvalidModelError(f"'{path}' cannot be read: {error.strerror}") from error


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    if not data:
        raise InvalidModelError("the model is empty (0 bytes)", where=where)
    for offset, magic, what, hint in _FORMATS:
        if data[offset:].startswith(magic):
            raise InvalidModelError(f"this is {what}, not an ONNX model", where=where, hint=hint)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise InvalidModelError(
            f"this is not an ONNX model, or it is truncated or damaged ({len(data)} bytes)",
            where=where,
            hint="check the download, or export the model again",
        ) from error
    return proto


def _check_text(message: Message, where: str) -> None:
    """Refuse names that are not UTF-8: protobuf hands them out as bytes."""
    for descriptor, content in message.ListFields():
        items = (content,) if isinstance(content, (str, bytes, Message)) else content
        if descriptor.type == descriptor.TYPE_MESSAGE:
            for item in items:
                _check_text(item, where)
        elif descriptor.type == descriptor.TYPE_STRING and descriptor.name != "doc_string":
            for item in items:
                if not isinstance(item, str):
                    raise InvalidModelError(
                        f"the model has a {descriptor.name} that is not UTF-8: {item!r}",
                        where=where,
                        hint="the file is damaged; export it again",
                    )


def opsets(source: Source) -> dict[str, int]:
    """Return the opset version of each domain ("" is ai.onnx); refuse what is not known."""
    found: dict[str, int] = {}
    for item in source.proto.opset_import:
        domain = domain_of(item.domain)
        if found.setdefault(domain, item.version) != item.version:
            raise InvalidModelError(f"the model imports domain '{domain}' in two versions")
    if not found:
        raise InvalidModelError(
            "the model has no opset_import, so the meaning of its operators is not known",
            hint="export it again; every ONNX exporter writes one",
        )
    if source.proto.ir_version > onnx.IR_VERSION:
        source.notes.append(
            f"the model has IR version {source.proto.ir_version}, newer than the "
            f"{onnx.IR_VERSION} that onnx {onnx.__version__} knows; going on"
        )
    newest = onnx.defs.onnx_opset_version()
    opset = found.get("", newest)
    if opset > newest:
        raise UnsupportedError(
            f"the model uses opset {opset}; onnx {onnx.__version__}, as installed, knows opsets "
            f"up to {newest}",
            hint="install a newer onnx package or export the model with an older opset",
        )
    if opset < OLDEST_OPSET:
        raise UnsupportedError(
            f"the model uses opset {opset}; glowmcu reads opsets {OLDEST_OPSET} to {newest}",
            hint="convert it with onnx.version_converter or export it with a newer opset",
        )
    return found


def domain_of(name: str) -> str:
    """Return the domain with ai.onnx spelled ""."""
    return "" if name == "ai.onnx" else name
