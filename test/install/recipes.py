#!/usr/bin/env python3
"""The recipes of packages, without the programs that read them: each runs here with stand-ins for what these provide.

Usage: recipes.py FOLDER

Checks that CMake takes the options that each recipe gives, with only the files that the recipe has; that all name the same
version, license and dependencies; and that none names a mail address that nobody reads. Works in FOLDER.
"""
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/style"))
from report import Report  # noqa: E402

CONFIG = (ROOT / "c/include/umem/config.h").read_text(encoding="utf-8")
VERSION = re.search(r'UMEM_VERSION "(.+)"', CONFIG)[1]
CMAKE = re.search(r"cmake_minimum_required\(VERSION (.+)\)", (ROOT / "CMakeLists.txt").read_text())[1]
PROGRAMS = {"umem", "umem-trace"}


def load(path):
    spec = importlib.util.spec_from_file_location(path.parent.name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cache_value(value):
    return {True: "ON", False: "OFF"}.get(value, str(value))


# ---- Spack ----

class SpackPackage:
    """What a recipe of Spack sees of its class; chosen are its variants."""

    def __init__(self, chosen):
        self.chosen = chosen
        self.spec = types.SimpleNamespace(satisfies=lambda text: chosen.get(text.lstrip("+"), False))

    def define(self, name, value):
        return f"-D{name}={cache_value(value)}"

    def define_from_variant(self, name, variant):
        return self.define(name, self.chosen[variant])


def read_spack():
    """The recipe's class, and what it has told Spack: {directive: [(arguments, options)]}."""
    told = {}

    def directive(name):
        return lambda *words, **options: told.setdefault(name, []).append((words, options))

    package = types.ModuleType("spack.package")
    package.CMakePackage, package.CudaPackage = SpackPackage, type("CudaPackage", (), {})
    for name in ("license", "version", "variant", "depends_on", "conflicts"):
        setattr(package, name, directive(name))
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": package})
    return load(ROOT / "packaging/spack/package.py").Umem, told


def spack():
    recipe, told = read_spack()
    variants = {words[0]: options["default"] for words, options in told["variant"]}
    needs = {words[0].split("@")[0]: words[0].partition("@")[2].rstrip(":") for words, _ in told["depends_on"]}
    facts = {"version": told["version"][0][0][0], "license": told["license"][0][0][0], "cmake": needs["cmake"],
             "cli11": needs["cli11"], "nlohmann-json": needs["nlohmann-json"]}
    builds = [recipe({**variants, "cuda": False, "tools": tools, "formats": tools}).cmake_args() for tools in (False, True)]
    return facts, builds, None


# ---- Conan ----

def conan_modules(recipe, asked):
    """The modules of Conan that a recipe imports."""
    class ConanFile:
        pass

    class CMakeToolchain:
        def __init__(self, _):
            self.cache_variables = {}

        def generate(self):
            asked.append([f"-D{name}={cache_value(value)}" for name, value in self.cache_variables.items()])

    def copy(_, pattern, source, target):
        for path in source.glob(pattern.replace("/*", "/**/*")):
            if path.is_file():
                (Path(target) / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, Path(target) / path.relative_to(source))

    names = {
        "conan": {"ConanFile": ConanFile},
        "conan.tools": {},
        "conan.tools.cmake": {"CMake": None, "CMakeDeps": lambda _: types.SimpleNamespace(generate=lambda: None),
                              "CMakeToolchain": CMakeToolchain, "cmake_layout": None},
        "conan.tools.files": {"copy": copy, "load": lambda _, path: Path(path).read_text(encoding="utf-8")},
    }
    for name, members in names.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
    return load(recipe)


def conan(folder):
    asked, needs = [], {}
    path = ROOT / "packaging/conan/conanfile.py"
    recipe = conan_modules(path, asked).Umem()
    recipe.recipe_folder, recipe.export_sources_folder = str(path.parent), str(folder / "conan")
    recipe.requires = lambda text, **_: needs.update({text.split("/")[0]: re.search(r">=([\d.]+)", text)[1]})
    recipe.set_version()
    recipe.export_sources()
    for tools in (False, True):
        recipe.options = types.SimpleNamespace(**{**recipe.default_options, "tools": tools, "formats": tools})
        recipe.requirements()
        recipe.generate()
    facts = {"version": recipe.version, "license": recipe.license, "cli11": needs["cli11"], "nlohmann-json": needs["nlohmann_json"]}
    return facts, asked, folder / "conan"


# ---- vcpkg ----

VCPKG = """
cmake_minimum_required(VERSION 3.22)
set(VCPKG_LIBRARY_LINKAGE dynamic)
function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 it "" OUT_FEATURE_OPTIONS FEATURES)
  set(options "")
  while(it_FEATURES)
    list(POP_FRONT it_FEATURES feature option)
    set(value OFF)
    if(feature IN_LIST FEATURES)
      set(value ON)
    endif()
    set(${option} ${value} PARENT_SCOPE)
    list(APPEND options -D${option}=${value})
  endwhile()
  set(${it_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 it "" SOURCE_PATH OPTIONS)
  message("source ${it_SOURCE_PATH}")
  message("options ${it_OPTIONS}")
endfunction()
function(vcpkg_copy_tools)
  cmake_parse_arguments(PARSE_ARGV 0 it AUTO_CLEAN "" TOOL_NAMES)
  message("tools ${it_TOOL_NAMES}")
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 it "" "" FILE_LIST)
  message("copyright ${it_FILE_LIST}")
endfunction()
function(vcpkg_cmake_install)
endfunction()
function(vcpkg_cmake_config_fixup)
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
"""


def read_port(folder, features):
    """What the port's file tells vcpkg: {word: [arguments]}."""
    script = folder / "vcpkg.cmake"
    script.write_text(f'{VCPKG}\nset(FEATURES "{features}")\nset(CURRENT_PACKAGES_DIR "{folder}/none")\n'
                      f'include("{ROOT}/packaging/vcpkg/portfile.cmake")\n')
    done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
    return {line.split(" ", 1)[0]: line.split(" ", 1)[1].split(";") for line in done.stderr.splitlines() if " " in line}


def vcpkg(folder):
    manifest = json.loads((ROOT / "packaging/vcpkg/vcpkg.json").read_text(encoding="utf-8"))
    ports = [read_port(folder, features) for features in ("core", "core;tools;formats")]
    facts = {"version": manifest["version"], "license": manifest["license"]}
    problems = [f"the manifest has no feature {name}" for name in ["tools", "formats"] if name not in manifest["features"]]
    if set(ports[1].get("tools", [])) != PROGRAMS or "tools" in ports[0]:
        problems.append(f"the programs are {ports[1].get('tools')}")
    for port in ports:
        problems += [f"{path} does not exist" for path in port["source"] + port["copyright"] if not Path(path).exists()]
    return facts, [port["options"] for port in ports], None, problems


# ---- Debian ----

def debian():
    folder = ROOT / "packaging/debian"
    rules = (folder / "rules").read_text()
    control = (folder / "control").read_text()
    facts = {"version": re.search(r"^umem \((.*)\)", (folder / "changelog").read_text())[1],
             "license": re.search(r"^License: (.*)$", (folder / "copyright").read_text(), re.M)[1],
             "cmake": re.search(r"cmake \(>= ([\d.]+)\)", control)[1]}
    return facts, [re.findall(r"-D\S+", rules)], None


# ---- all ----

def configure(source, build, options):
    """Why CMake does not configure the sources with these options; nothing if it does."""
    done = subprocess.run(["cmake", "-S", source, "-B", build, *options], capture_output=True, text=True, check=False)
    problems = [] if done.returncode == 0 else [done.stderr[-2000:]]
    if "not used by the project" in done.stderr:
        problems.append(f"umem has no such option: {done.stderr}")
    cache = (build / "CMakeCache.txt").read_text() if not problems else ""
    for option in options if not problems else []:
        name, value = option[2:].split("=")
        if not re.search(rf"^{re.escape(name)}:\w+={re.escape(value)}$", cache, re.M):
            problems.append(f"CMake has another value of {option}")
    return problems


def addresses():
    """Files that name a mail address, which no one would read."""
    found = subprocess.run(["git", "-C", ROOT, "grep", "-lE", r"[a-z]@[a-z0-9-]+\.(org|com|net)\b", "--", ":!test", ":!*.svg"],
                           capture_output=True, text=True, check=False).stdout.split()
    return [f"{name} names a mail address" for name in found if name not in ("packaging/debian/control", "packaging/debian/changelog")]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report, known = Report(), {}
    for name, read in [("Debian", debian), ("Spack", spack), ("Conan", lambda: conan(folder)), ("vcpkg", lambda: vcpkg(folder))]:
        facts, builds, source, *more = read()
        problems = sum(more, [])
        for key, value in {"version": VERSION, "license": "BSD-3-Clause", "cmake": CMAKE, **known}.items():
            if facts.get(key, value) != value:
                problems.append(f"{key} is {facts[key]}, elsewhere {value}")
        known = {**facts, **known}
        for number, options in enumerate(builds):
            problems += configure(source or ROOT, folder / f"{name}-{number}", options)
        report.check(f"the recipe of {name} has the version, the options and the files of umem", problems)
    report.check("no file names a mail address that nobody reads", addresses())
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
