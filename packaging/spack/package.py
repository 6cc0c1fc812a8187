"""Recipe of Spack, for a repository of your own: a checkout of the sources is named by spack develop."""
from spack.package import *


class Umem(CMakePackage, CudaPackage):
    """One set of calls for arrays in RAM, files, GPUs and other processes."""

    license("BSD-3-Clause")

    version("0.2.0")

    variant("shared", default=True, description="Build the shared library")
    variant("tools", default=False, description="Build the program umem")
    variant("formats", default=False, description="Build the component for files of named arrays")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("cuda@12.2:", when="+cuda")
    depends_on("cli11@2.1:", when="+tools")
    depends_on("nlohmann-json@3.10:", when="+tools")
    depends_on("nlohmann-json@3.10:", when="+formats")
    depends_on("zlib-api", when="+formats")
    conflicts("platform=darwin")
    conflicts("platform=windows")

    def cmake_args(self):
        return [
            self.define("UMEM_CUDA", "ON" if self.spec.satisfies("+cuda") else "DRIVER"),
            self.define_from_variant("UMEM_SHARED", "shared"),
            self.define("UMEM_BUILD_EXAMPLES", False),
            self.define_from_variant("UMEM_BUILD_TOOLS", "tools"),
            self.define_from_variant("UMEM_FORMATS", "formats"),
        ]
