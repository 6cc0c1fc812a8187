"""Recipe of Conan 2, in a checkout of the sources: conan create packaging/conan"""
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
import re


class Umem(ConanFile):
    name = "umem"
    description = "One set of calls for arrays in RAM, files, GPUs and other processes"
    license = "BSD-3-Clause"
    topics = ("memory", "arrays", "cuda", "allocator")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "cuda": ["OFF", "DRIVER", "ON"], "tools": [True, False],
               "formats": [True, False]}
    default_options = {"shared": True, "cuda": "DRIVER", "tools": False, "formats": False}

    def set_version(self):
        header = load(self, str(Path(self.recipe_folder).parents[1] / "c/include/umem/config.h"))
        self.version = re.search(r'UMEM_VERSION "(.+)"', header)[1]

    def export_sources(self):
        root = Path(self.recipe_folder).parents[1]
        for pattern in ("CMakeLists.txt", "LICENSE", "c/*", "cxx/*", "cmake/*", "tool/*", "formats/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def requirements(self):
        if self.options.tools:
            self.requires("cli11/[>=2.1 <3]", visible=False)
        if self.options.tools or self.options.formats:
            self.requires("nlohmann_json/[>=3.10 <4]", visible=False)
        if self.options.formats:
            self.requires("zlib/[>=1.2.11 <2]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(UMEM_CUDA=str(self.options.cuda), UMEM_BUILD_EXAMPLES=False,
                                         UMEM_BUILD_TOOLS="ON" if self.options.tools else "OFF",
                                         UMEM_FORMATS="ON" if self.options.formats else "OFF",
                                         UMEM_SHARED=bool(self.options.shared))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # umem brings its own files
        self.cpp_info.builddirs = ["lib/cmake/umem"]
        self.cpp_info.libs = ["umem-formats", "umem"] if self.options.formats else ["umem"]
        self.cpp_info.system_libs = ["pthread", "dl"]
