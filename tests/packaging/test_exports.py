"""Exports: valid metadata, and each builds the way its tool would build it."""

from __future__ import annotations

import configparser
import io
import json
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import run

import glowmcu
from glowmcu import demo
from glowmcu.cli import main
from glowmcu.emit.export import export, formats, write
from glowmcu.emit.unit import CodeUnit
from glowmcu.errors import OptionError

ROOT = Path(__file__).resolve().parent.parent.parent
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
M4 = ["-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
CHECKED = "self-test: 0\ndigits_run: 0\n"


def compiled(target: str) -> CodeUnit:
    model = glowmcu.compile(
        demo.model_path(),
        target=target,
        quantize="int8",
        calibration=demo.calibration_path(),
        name="digits",
        self_test=True,
    )
    return model.compilation.unit


@pytest.fixture(scope="module")
def unit() -> CodeUnit:
    return compiled("host")


@pytest.fixture
def exported(unit: CodeUnit, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The network in the format that the test is named after."""
    kind = re.sub(r"^test_([a-z]+)(_idf|_pack)?.*", r"\1\2", request.node.name).replace("_", "-")
    folder = tmp_path / "digits"
    write(folder, export(unit, kind, vendor="Acme", url="https://acme.example"))
    return folder


def includes(*folders: Path) -> list[str]:
    return [f"-I{folder}" for folder in folders]


def test_an_unknown_format_is_answered_with_the_list(unit: CodeUnit) -> None:
    with pytest.raises(OptionError, match=r"no format 'bazel'[\s\S]*arduino, cmake, cmsis-pack"):
        export(unit, "bazel")


@pytest.mark.parametrize("more", [{"vendor": "A & B"}, {"vendor": "../x"}, {"url": 'ht"tp'}])
def test_metadata_that_would_break_a_file_are_refused(more: dict[str, str], unit: CodeUnit) -> None:
    with pytest.raises(OptionError, match=r"cannot be used|not the address"):
        export(unit, "platformio", **more)


@pytest.mark.parametrize("kind", [f.name for f in formats()])
def test_every_format_has_the_whole_network_and_no_place_of_this_machine(
    kind: str, unit: CodeUnit
) -> None:
    files = export(unit, kind)
    names = [Path(name).name for name in files]
    for name in unit.files:
        assert names.count(name) == name.endswith((".c", ".h")) or name == "CMakeLists.txt"
    assert files == export(unit, kind)
    for name, data in files.items():
        assert name.isascii() and not name.startswith(("/", "."))
        assert (b"{{" not in data and b"{%" not in data) or name.endswith(".pack")


def test_the_command_takes_a_folder_too(tmp_path: Path, unit: CodeUnit) -> None:
    unit.write(tmp_path / "compiled")
    for source, kind in ((tmp_path / "compiled", "make"), (demo.model_path(), "arduino")):
        arguments = ["export", str(source), "--format", kind, "-o", str(tmp_path / kind)]
        with pytest.raises(SystemExit) as stop:
            main([*arguments, "--name", "digits", "-q"])
        assert stop.value.code == 0
    assert (tmp_path / "make" / "digits.mk").is_file()
    assert (tmp_path / "arduino" / "src" / "digits.h").is_file()


@pytest.mark.cc
def test_cmake_builds_for_the_host(exported: Path, need_cmake: None, tmp_path: Path) -> None:
    build = tmp_path / "build"
    run("cmake", "-S", exported, "-B", build, cwd=tmp_path)
    run("cmake", "--build", build, cwd=tmp_path)
    assert run(build / "digits_example", cwd=tmp_path).startswith(CHECKED)


@pytest.mark.cross
def test_cmake_builds_for_a_board_from_another_project(
    exported: Path, need_cmake: None, arm_gcc: str, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app C)\nadd_subdirectory(digits)\n"
        "add_library(app STATIC digits/example/main.c)\n"
        "target_link_libraries(app PRIVATE glowmcu::digits)\n"
    )
    toolchain = ROOT / "boards" / "common" / "toolchain-arm.cmake"
    run("cmake", "-S", ".", "-B", "b", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", cwd=tmp_path)
    run("cmake", "--build", "b", cwd=tmp_path)
    assert (tmp_path / "b" / "libapp.a").is_file()


@pytest.mark.cc
def test_make_runs_the_example(
    exported: Path, need_make: None, need_cmake: None, tmp_path: Path
) -> None:
    run("make", cwd=exported)
    assert run(exported / "example" / "run", cwd=exported).startswith(CHECKED)
    (tmp_path / "Makefile").write_text(
        "C_SOURCES = main.c\nC_INCLUDES = -Iinc\ninclude digits/digits.mk\n"
        "all:\n\t@echo $(C_SOURCES) $(C_INCLUDES)\n"
    )
    listed = run("make", "-s", cwd=tmp_path).split()
    assert "digits/src/digits.c" in listed
    assert {"main.c", "-Iinc", "-Idigits/include", "-Idigits/src"} <= set(listed)


@pytest.mark.cross
def test_arduino_compiles_library_and_sketch(exported: Path, arm_gcc: str, tmp_path: Path) -> None:
    """Arduino's builder compiles src/ recursively and the sketch, as C++, with Arduino.h in it."""
    text = (exported / "library.properties").read_text()
    parser = configparser.ConfigParser()
    parser.read_string("[library]\n" + text)
    library = parser["library"]
    for key in ("name", "version", "author", "maintainer", "sentence", "paragraph", "url"):
        assert library[key], key
    assert library["category"] == "Data Processing"
    assert library["architectures"] == "*"
    assert re.fullmatch(r"\d+\.\d+\.\d+", library["version"])
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]*", library["name"])
    for line in (exported / "keywords.txt").read_text().splitlines():
        assert re.fullmatch(r"\w+\tKEYWORD[12]", line)
    core = tmp_path / "core"
    core.mkdir()
    (core / "Arduino.h").write_text(
        '#pragma once\nextern "C" { unsigned long micros(); void delay(unsigned long); }\n'
        "struct Port { void begin(long); void print(const char *); void print(long);\n"
        "void println(long); void println(unsigned long); void println(double); };\n"
        "extern Port Serial;\nvoid setup();\nvoid loop();\n"
    )
    flags = [*M4, "-Os", *WARNINGS, "-c", *includes(exported / "src", core)]
    for source in sorted((exported / "src").glob("*.c")):
        run(
            arm_gcc, "-std=gnu11", *flags, source, "-o", tmp_path / f"{source.stem}.o", cwd=exported
        )
    sketch = exported / "examples" / "Run" / "Run.ino"
    (tmp_path / "Run.ino.cpp").write_text("#include <Arduino.h>\n" + sketch.read_text())
    run("arm-none-eabi-g++", "-std=gnu++17", *flags, "Run.ino.cpp", "-o", "Run.o", cwd=tmp_path)
    objects = sorted(str(p) for p in tmp_path.glob("*.o"))
    run("arm-none-eabi-ld", "-r", *objects, "-o", "all.elf", cwd=tmp_path)
    missing = run("arm-none-eabi-nm", "-u", "all.elf", cwd=tmp_path)
    assert "digits_" not in missing and "gm_" not in missing


@pytest.mark.cross
def test_platformio_compiles_library_and_example(
    exported: Path, arm_gcc: str, tmp_path: Path
) -> None:
    """PlatformIO compiles srcDir with includeDir and srcDir in the path, users have includeDir."""
    library = json.loads((exported / "library.json").read_text())
    assert re.fullmatch(r"\d+\.\d+\.\d+", library["version"])
    assert library["name"] == "digits" and library["authors"][0]["name"] == "Acme"
    assert library["frameworks"] == library["platforms"] == "*"
    build = library["build"]
    source, public = exported / build["srcDir"], exported / build["includeDir"]
    assert (public / library["headers"]).is_file()
    flags = [*M4, "-Os", *WARNINGS, *build["flags"], "-c"]
    for file in sorted(source.glob("*.c")):
        run(
            *(arm_gcc, *flags, *includes(public, source), file),
            *("-o", tmp_path / f"{file.stem}.o"),
            cwd=exported,
        )
    (example,) = library["examples"]
    for file in example["files"]:
        run(arm_gcc, *flags, *includes(public), Path(example["base"]) / file, cwd=exported)


ZEPHYR = """\
cmake_minimum_required(VERSION 3.20)
project(zephyr C)
set(CONFIG_GLOWMCU_DIGITS y)
add_library(zephyr_interface INTERFACE)
function(zephyr_include_directories)
    foreach(folder IN LISTS ARGN)
        get_filename_component(folder ${folder} ABSOLUTE)
        target_include_directories(zephyr_interface INTERFACE ${folder})
    endforeach()
endfunction()
macro(zephyr_library_named name)
    set(ZEPHYR_CURRENT_LIBRARY ${name})
    add_library(${name} STATIC "")
    target_link_libraries(${name} PUBLIC zephyr_interface)
endmacro()
function(zephyr_library_sources)
    target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_library_include_directories)
    target_include_directories(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_library_compile_options)
    target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
add_subdirectory(digits/MODULE_CMAKE)
add_executable(app digits/samples/run/src/main.c)
target_include_directories(app PRIVATE kernel)
target_link_libraries(app PRIVATE digits)
"""


@pytest.mark.cc
def test_zephyr_module_builds_and_its_sample_runs(
    exported: Path, need_cmake: None, tmp_path: Path
) -> None:
    yaml = pytest.importorskip("yaml")
    module = yaml.safe_load((exported / "zephyr" / "module.yml").read_text())
    assert module["name"] == "digits"
    assert set(module) <= {"name", "build", "samples", "tests"}
    kconfig = (exported / module["build"]["kconfig"]).read_text()
    assert re.match(r'config GLOWMCU_DIGITS\n\tbool "[^"]+"\n\thelp\n\t  \w', kconfig)
    sample = exported / module["samples"][0] / "run"
    description = yaml.safe_load((sample / "sample.yaml").read_text())
    assert description["sample"]["name"] and description["tests"]
    options = dict(line.split("=") for line in (sample / "prj.conf").read_text().split())
    assert options["CONFIG_GLOWMCU_DIGITS"] == "y"
    text = ZEPHYR.replace("MODULE_CMAKE", module["build"]["cmake"])
    (tmp_path / "CMakeLists.txt").write_text(text)
    (tmp_path / "kernel" / "zephyr" / "sys").mkdir(parents=True)
    printk = tmp_path / "kernel" / "zephyr" / "sys" / "printk.h"
    printk.write_text("#include <stdio.h>\n#define printk printf\n")
    run("cmake", "-S", ".", "-B", "build", cwd=tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    assert run(tmp_path / "build" / "app", cwd=tmp_path).startswith(CHECKED)


ESP_IDF = """\
cmake_minimum_required(VERSION 3.16)
project(idf C)
function(idf_component_register)
    cmake_parse_arguments(ARG "" "" "SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS;REQUIRES" ${ARGN})
    if(ARG_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "unknown: ${ARG_UNPARSED_ARGUMENTS}")
    endif()
    get_filename_component(name ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    set(COMPONENT_LIB __idf_${name})
    set(COMPONENT_LIB ${COMPONENT_LIB} PARENT_SCOPE)
    add_library(${COMPONENT_LIB} STATIC ${ARG_SRCS})
    target_include_directories(${COMPONENT_LIB} PUBLIC ${ARG_INCLUDE_DIRS}
        PRIVATE ${ARG_PRIV_INCLUDE_DIRS})
    foreach(name IN LISTS ARG_REQUIRES)
        target_link_libraries(${COMPONENT_LIB} PUBLIC __idf_${name})
    endforeach()
endfunction()
add_subdirectory(digits)
add_subdirectory(digits/examples/run/main)
file(WRITE start.c "void app_main(void); int main(void) { app_main(); return 0; }")
add_executable(app start.c)
target_link_libraries(app PRIVATE __idf_main)
"""


@pytest.mark.cc
def test_esp_idf_component_builds_and_its_example_runs(
    exported: Path, need_cmake: None, tmp_path: Path
) -> None:
    yaml = pytest.importorskip("yaml")
    manifest = yaml.safe_load((exported / "idf_component.yml").read_text())
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert {"description", "url", "license"} <= set(manifest)
    assert manifest["dependencies"]["idf"].startswith(">=")
    example = exported / "examples" / "run"
    wanted = yaml.safe_load((example / "main" / "idf_component.yml").read_text())
    component = example / "main" / wanted["dependencies"]["digits"]["override_path"]
    assert component.resolve() == exported.resolve()
    assert "tools/cmake/project.cmake" in (example / "CMakeLists.txt").read_text()
    (tmp_path / "CMakeLists.txt").write_text(ESP_IDF)
    run("cmake", "-S", ".", "-B", "build", cwd=tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    assert run(tmp_path / "build" / "app", cwd=tmp_path).startswith(CHECKED)


@pytest.mark.cross
def test_cmsis_pack_lists_its_files_and_they_compile(
    exported: Path, arm_gcc: str, tmp_path: Path
) -> None:
    root = ElementTree.parse(exported / "Acme.digits.pdsc").getroot()
    assert root.tag == "package" and root.get("schemaVersion")
    # the order of the schema's sequence
    order = ["vendor", "name", "description", "url", "releases", "conditions", "components"]
    assert [child.tag for child in root] == order
    assert root.findtext("vendor") == "Acme" and root.findtext("name") == "digits"
    version = root.find("releases/release").get("version")
    (component,) = root.findall("components/component")
    assert component.get("Cclass") == "Machine Learning"
    assert component.get("Cgroup") and component.get("Csub") == "digits"
    assert component.get("Cversion") == version
    conditions = {c.get("id") for c in root.findall("conditions/condition")}
    assert component.get("condition") in conditions
    files = component.findall("files/file")
    for file in files:
        assert (exported / file.get("name")).exists(), file.get("name")
    listed = {file.get("name") for file in files if file.get("category") in ("source", "header")}
    present = {p.relative_to(exported).as_posix() for p in exported.rglob("*.[ch]")}
    assert listed == present
    folders = {exported / Path(n).parent for n in listed if n.endswith(".h")}
    for file in files:
        if file.get("category") == "source":
            command = [arm_gcc, *M4, "-Os", *WARNINGS, *includes(*folders), "-c", file.get("name")]
            run(*command, "-o", tmp_path / "object.o", cwd=exported)
    pack = (exported / f"Acme.digits.{version}.pack").read_bytes()
    with zipfile.ZipFile(io.BytesIO(pack)) as archive:
        assert {*listed, "Acme.digits.pdsc"} == set(archive.namelist())


def test_cmsis_pack_requires_what_the_code_uses() -> None:
    pdsc = export(compiled("cortex-m55"), "cmsis-pack")["glowmcu.digits.pdsc"].decode()
    assert '<require Ddsp="DSP" Dfpu="FPU" Dmve="MVE"/>' in pdsc
