"""Exports: a network's C laid out as the build systems of products expect it."""

from __future__ import annotations

import io
import os
import re
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import jinja2

from glowmcu import resources
from glowmcu.emit.report import GENERATOR
from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import OptionError

VERSION = "1.0.0"
_NEVER = (1980, 1, 1, 0, 0, 0)  # the date of files in archives: none, so that they are repeatable


@dataclass(frozen=True)
class Format:
    """A folder of templates/export: where C goes, and a template for every other file.

    sources  folder of the C files and of headers that only they include
    headers  folder of the headers that users include
    archive  name of an archive of everything, "" for none
    """

    name: str
    summary: str
    sources: str
    headers: str
    archive: str = ""


@cache
def formats() -> tuple[Format, ...]:
    """Return every format, sorted by name."""
    files = (resources.folder("templates") / "export").glob("*/export.toml")
    return tuple(
        Format(file.parent.name, **tomllib.loads(file.read_text(encoding="utf-8")))
        for file in sorted(files)
    )


def export(
    unit: CodeUnit, name: str, *, vendor: str = "glowmcu", url: str = "https://example.com"
) -> dict[str, bytes]:
    """Return the files of an export by their path; raise OptionError for an unknown format.

    vendor, url  who publishes it, for formats that want to know
    """
    chosen = {f.name: f for f in formats()}.get(name)
    if chosen is None:
        known = ", ".join(f.name for f in formats())
        raise OptionError(f"there is no format '{name}'", hint=f"one of: {known}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", vendor):
        raise OptionError(
            f"the vendor '{vendor}' cannot be used",
            why="file names have it: letters, digits, _ . -",
        )
    if not re.fullmatch(r"https?://[^\s\"'<>\\]+", url):
        raise OptionError(f"'{url}' is not the address of a web page", hint="--url https://…")
    context = _context(unit, chosen, vendor, url)
    files = {place: unit.files[PurePosixPath(place).name] for place in context["code"]}
    names = {"NAME": unit.name, "VENDOR": vendor, "VERSION": VERSION}
    root = resources.folder("templates") / "export" / name
    for template in sorted(root.rglob("*.j2")):
        relative = template.relative_to(root).as_posix()
        text = _environment().get_template(f"export/{name}/{relative}").render(context)
        files[_named(relative.removesuffix(".j2"), names)] = text
    result = {place: text.encode() for place, text in files.items()}
    if chosen.archive:
        result[_named(chosen.archive, names)] = _archive(result)
    return result


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write files into a folder, each one complete or not at all; raise OptionError if it fails."""
    try:
        for name, data in files.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
                file.write(data)
            os.chmod(file.name, 0o644)
            os.replace(file.name, place)
    except OSError as error:
        raise OptionError(f"cannot write into '{folder}'", why=str(error)) from None


def _context(unit: CodeUnit, chosen: Format, vendor: str, url: str) -> dict[str, Any]:
    facing = {f"{unit.name}.h", f"{unit.name}_self_test.h"}
    headers = [n for n in unit.files if n.endswith(".h")]
    public = [f"{chosen.headers}/{n}" for n in headers if n in facing]
    private = [f"{chosen.sources}/{n}" for n in headers if n not in facing]
    sources = [f"{chosen.sources}/{n}" for n in unit.sources]
    report = unit.report
    return {
        "name": unit.name,
        "NAME": unit.name.upper(),
        "version": VERSION,
        "vendor": vendor,
        "url": url,
        "generator": GENERATOR,
        "summary": f"It takes {report['arena_bytes']} bytes of RAM and {report['weights_bytes']}"
        f" bytes of flash for weights, compiled for {unit.target.name}.",
        "inputs": list(unit.inputs),
        "outputs": list(unit.outputs),
        "work": list(unit.work),
        "self_test": f"{unit.name}_self_test.c" in unit.files,
        "libm": any("<math.h>" in unit.files[n] for n in (*unit.sources, *headers)),
        "stack": max(2048, -(-report["stack_bytes"] // 512) * 512 + 1024),
        "processor": _processor(unit),
        "sources": sources,
        "public": public,
        "private": private,
        "code": (*sources, *public, *private),
    }


def _processor(unit: CodeUnit) -> str:
    """Return what a CMSIS-Pack requires of a device, as attributes."""
    needs = {"arm-dsp": 'Ddsp="DSP"', "arm-fpu": 'Dfpu="FPU"', "arm-mve": 'Dmve="MVE"'}
    found = [text for name, text in needs.items() if name in unit.target.capabilities]
    return " ".join(found) or 'Dname="*"'


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.folder("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def _named(text: str, names: dict[str, str]) -> str:
    for word, name in names.items():
        text = text.replace(word, name)
    return text


def _archive(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _NEVER)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name])
    return stream.getvalue()
