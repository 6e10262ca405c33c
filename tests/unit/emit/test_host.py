"""The host library: the same bits as numpy, a cache, guards, traces, sanitizers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dense_networks as networks
import numpy as np
import pytest
from test_emitter import unit_of

from glowmcu.core.types import Array
from glowmcu.emit.unit import CodeUnit, Files
from glowmcu.errors import InvalidModelError, ToolMissingError, VerificationError
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.verify import host
from glowmcu.verify.host import HostLibrary, build_library
from glowmcu.verify.sanitize import run_sanitized

pytestmark = pytest.mark.cc


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "glowmcu"


@pytest.fixture
def function() -> Function:
    return networks.dense_chain((10, 20, 7, 5), True)


def feeds_of(function: Function, count: int = 3) -> list[dict[str, Array]]:
    rng = np.random.default_rng(1)
    return [{b.name: networks.stored(b.type, rng) for b in function.inputs} for _ in range(count)]


@pytest.mark.parametrize("quantized", [True, False])
def test_the_host_computes_what_numpy_computes(cc: str, quantized: bool) -> None:
    function = networks.dense_chain((10, 20, 7, 5), quantized)
    library = HostLibrary(unit_of(function), compiler=cc)
    for feeds in feeds_of(function):
        expected, got = evaluate(function, feeds)["scores"], library.run(feeds)["scores"]
        assert got.dtype == expected.dtype
        if quantized:
            np.testing.assert_array_equal(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


def test_large_weights_are_handed_over(
    function: Function, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = unit_of(function)
    changed = replace(unit, constants=tuple((n, np.flip(d)) for n, d in unit.constants))
    (feeds,) = feeds_of(function, 1)
    want = HostLibrary(unit).run(feeds)["scores"]
    monkeypatch.setattr(host, "_LARGE", 0)
    compiled = len(list(cache.iterdir()))
    libraries = [HostLibrary(u) for u in (unit, changed)]
    assert len(list(cache.iterdir())) == compiled + 2
    found = [library.run(feeds)["scores"] for library in libraries]
    np.testing.assert_array_equal(found[0], want)
    assert (found[1] != want).any()


def test_files_are_written_when_they_are_asked_for() -> None:
    made = []

    def text() -> str:
        made.append(1)
        return "b"

    files = Files({"a": "x", "b": text})
    assert list(files) == ["a", "b"] and len(files) == 2 and not made
    assert {**files} == {"a": "x", "b": "b"}
    assert files["b"] == "b" and len(made) == 1


def test_a_network_is_built_once(function: Function, cache: Path) -> None:
    unit = unit_of(function)
    first = build_library([unit])
    inode = first.stat().st_ino
    assert build_library([unit]) == first
    assert first.stat().st_ino == inode
    assert build_library([unit_of(function, specialize="none")]) != first
    assert sorted(p.suffix for p in cache.iterdir()) == [".so", ".so"]


def test_the_cache_does_not_grow_for_ever(function: Function, cache: Path) -> None:
    cache.mkdir()
    for number in range(300):
        (cache / f"old{number}.so").touch()
    new = build_library([unit_of(function)])
    assert new.exists()
    assert len(list(cache.glob("*.so"))) <= 257


def test_several_networks_share_a_library(function: Function) -> None:
    units = [unit_of(function, name=f"net{i}", specialize="none") for i in range(2)]
    library = build_library(units)
    (feeds,) = feeds_of(function, 1)
    results = [HostLibrary(u, library=library).run(feeds)["scores"] for u in units]
    np.testing.assert_array_equal(*results)


def test_every_layer_can_be_watched(function: Function) -> None:
    library = HostLibrary(unit_of(function), trace=True)
    (feeds,) = feeds_of(function, 1)
    layers: list[Array] = []
    expected = evaluate(
        function,
        feeds,
        watch=lambda _i, instruction, memory: layers.append(
            memory[instruction.outputs()[0]].copy()
        ),
    )
    outputs, traced = library.run_traced(feeds)
    np.testing.assert_array_equal(outputs["scores"], expected["scores"])
    assert len(traced) == len(layers) == 3
    for (got,), want in zip(traced, layers, strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(library.run(feeds)["scores"], expected["scores"])


def test_sanitizers_agree(function: Function) -> None:
    unit = unit_of(function)
    samples = feeds_of(function)
    library = HostLibrary(unit)
    for found, feeds in zip(run_sanitized(unit, samples), samples, strict=True):
        np.testing.assert_array_equal(found["scores"], library.run(feeds)["scores"])


def broken(unit: CodeUnit, old: str, new: str) -> CodeUnit:
    assert old in unit.files["net.c"]
    return replace(unit, files={**unit.files, "net.c": unit.files["net.c"].replace(old, new)})


def test_a_write_outside_the_arena_is_found(function: Function) -> None:
    unit = unit_of(function)
    bad = broken(unit, "return NET_OK;", "arena->bytes[NET_ARENA_SIZE + (size_t)1] = 1; return 0;")
    (feeds,) = feeds_of(function, 1)
    with pytest.raises(VerificationError, match="outside its arena"):
        HostLibrary(bad, flags=("-O0", "-w")).run(feeds)
    with pytest.raises(VerificationError, match="sanitizers"):
        run_sanitized(bad, [feeds])


def test_code_that_does_not_compile_is_reported(function: Function, cache: Path) -> None:
    with pytest.raises(VerificationError, match="does not compile"):
        HostLibrary(broken(unit_of(function), "return NET_OK;", "return oops;"))
    assert list(cache.iterdir()) == []


def test_a_missing_compiler_is_a_sentence(function: Function) -> None:
    with pytest.raises(ToolMissingError, match="no-such-cc"):
        HostLibrary(unit_of(function), compiler="no-such-cc")


def test_data_that_do_not_fit_are_refused(function: Function) -> None:
    library = HostLibrary(unit_of(function))
    with pytest.raises(InvalidModelError, match="no data for the input 'input'"):
        library.run({})
    with pytest.raises(InvalidModelError, match="do not fit"):
        library.run({"input": np.zeros((2, 9), np.int8)})
    with pytest.raises(InvalidModelError, match="do not fit"):
        library.run({"input": np.zeros((2, 10), np.float32)})
