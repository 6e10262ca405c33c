"""Profiles: what calibration saw of a network, as a file to quantize from later."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import glowmcu
from glowmcu.core.types import Array
from glowmcu.errors import InvalidModelError, OptionError
from glowmcu.graph.graph import Graph, Value
from glowmcu.quantize.calibrate import (
    Observed,
    Progress,
    Sample,
    calibrate,
    check_samples,
    is_activation,
)
from glowmcu.quantize.equalize import apply_factors, find_factors
from glowmcu.quantize.histogram import Histogram
from glowmcu.quantize.settings import Settings

_FORMAT = 1


@dataclass(frozen=True)
class Profile:
    """What a network's values are like on samples.

    tool      the version of glowmcu that made it
    graph     hash of the float network
    samples   how many samples were seen
    factors   by which the channels of equalized layers are divided, by the outputs' names
    observed  what the values of the equalized network are like, by their names
    """

    tool: str
    graph: str
    samples: int
    factors: Mapping[str, Array]
    observed: Mapping[str, Observed]

    def equalized(self, graph: Graph) -> Graph:
        """Return the float network with its channels equalized: the one that was observed."""
        return apply_factors(graph, self.factors)

    def of(self, graph: Graph) -> dict[Value, Observed]:
        """Return what is known of the values of the equalized network."""
        known = ((v, self.observed.get(key)) for v, key in keys(graph).items())
        return {v: found for v, found in known if found is not None}


def measure(
    graph: Graph,
    samples: Sequence[Sample],
    settings: Settings,
    progress: Progress | None = None,
) -> Profile:
    """Run a float network on samples; equalize it first if the settings say so."""
    factors: dict[str, Array] = {}
    check_samples(graph, samples)
    if "equalization" in settings.tools:
        wide = settings.precision == "int16"
        factors = find_factors(graph, samples, 65535 if wide else 255)
    changed = apply_factors(graph, factors)
    observed = calibrate(changed, samples, progress)
    names = keys(changed)
    seen = {names[v]: found for v, found in observed.items()}
    return Profile(glowmcu.__version__, graph_hash(graph), len(samples), factors, seen)


def keys(graph: Graph) -> dict[Value, str]:
    """Return a name for every activation; where two have one name, later ones get a number."""
    taken: set[str] = set()
    found = {}
    for value in graph.values():
        if not is_activation(value):
            continue
        key, number = value.name, 1
        while key in taken:
            number += 1
            key = f"{value.name}#{number}"
        taken.add(key)
        found[value] = key
    return found


def graph_hash(graph: Graph) -> str:
    """Return a hash of everything that the network computes with, not of names."""
    number: dict[Value, int] = {}
    digest = hashlib.sha256()
    for value in graph.inputs:
        number[value] = len(number)
        digest.update(f"input {value.type}\n".encode())
    for node in graph.nodes():
        for operand in node.inputs:
            if operand is not None and operand.data is not None and operand not in number:
                number[operand] = len(number)
                digest.update(f"constant {operand.type}\n".encode())
                digest.update(np.ascontiguousarray(operand.data).tobytes())
        operands = [None if v is None else number[v] for v in node.inputs]
        digest.update(f"{node.op!r} {operands}\n".encode())
        number.update((v, len(number) + i) for i, v in enumerate(node.outputs))
    digest.update(repr([number.get(v) for v in graph.outputs]).encode())
    return digest.hexdigest()


def save_profile(profile: Profile, path: Path) -> None:
    """Write a profile as a JSON file with one line per value."""
    head = {
        "format": _FORMAT,
        "tool": f"glowmcu {profile.tool}",
        "graph": profile.graph,
        "samples": profile.samples,
        "equalization": {n: [float(f) for f in a] for n, a in profile.factors.items()},
    }
    lines = [f"  {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items()]
    values = [f"    {json.dumps(_record(n, o))}" for n, o in profile.observed.items()]
    text = "{\n" + "".join(lines) + '  "values": [\n' + ",\n".join(values) + "\n  ]\n}\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write the profile '{path}'", why=str(error)) from None


def _record(name: str, observed: Observed) -> dict[str, Any]:
    seen = observed.histogram
    record: dict[str, Any] = {
        "name": name,
        "min": seen.low,
        "max": seen.high,
        "bin_width": seen.width,
        "first_bin": seen.first,
        "histogram": seen.counts.tolist(),
    }
    if observed.channels is not None:
        record["channel_max"] = [float(c) for c in observed.channels]
    return record


def load_profile(path: Path, graph: Graph) -> Profile:
    """Read the profile of a network; refuse a damaged file and that of another network."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        profile = _from_content(content)
    except OSError as error:
        raise OptionError(f"cannot read the profile '{path}'", why=str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidModelError(
            f"'{path}' is not a profile of glowmcu",
            why=f"{type(error).__name__}: {error}",
            hint="make one with glowmcu quantize MODEL --calibration X.npz --save-profile FILE",
        ) from None
    if profile.graph != graph_hash(graph):
        version = (
            ""
            if profile.tool == glowmcu.__version__
            else (f", or glowmcu: {profile.tool} made the profile, this is {glowmcu.__version__}")
        )
        raise InvalidModelError(
            f"the profile '{path}' is of another network",
            why=f"the model has changed since, or its --shape or --fix-input{version}",
            hint="make a new one with --calibration and --save-profile",
        )
    missing = set(keys(profile.equalized(graph)).values()) - set(profile.observed)
    if missing and not profile.observed:
        raise InvalidModelError(f"the profile '{path}' is empty")
    return replace(profile)


def _from_content(content: Any) -> Profile:
    if content["format"] != _FORMAT:
        raise ValueError(f"format {content['format']}, not {_FORMAT}")
    observed = {}
    for record in content["values"]:
        counts = np.asarray(record["histogram"], np.int64)
        low, high, width = (float(record[k]) for k in ("min", "max", "bin_width"))
        if not (math.isfinite(low) and math.isfinite(high) and width > 0 and counts.size):
            raise ValueError(f"the range of '{record['name']}' is not finite")
        seen = Histogram(low, high, width, int(record["first_bin"]), counts)
        channels = record.get("channel_max")
        observed[str(record["name"])] = Observed(
            seen, None if channels is None else np.asarray(channels, np.float32)
        )
    factors = {n: np.asarray(f, np.float64) for n, f in content["equalization"].items()}
    tool = str(content["tool"]).removeprefix("glowmcu ")
    return Profile(tool, str(content["graph"]), int(content["samples"]), factors, observed)
