/* gpu.cpp - asks NVIDIA's driver, if there is one, what umemInfo does not have. */
#include "place.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <dlfcn.h>

namespace umem::tool {

/* Functions of the driver, as its manual declares them. CUresult and CUdevice are ints. */
namespace {
struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*version)(int *version) = nullptr;
  int (*name)(char *text, int size, int device) = nullptr;
  int (*bus_id)(char *text, int size, int device) = nullptr;
  int (*attribute)(int *value, int attribute, int device) = nullptr;
};
constexpr int supports_rdma = 116; /* CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED */
} // namespace

template <class Function> static void find(void *library, char const *name, Function *&function) {
  function = reinterpret_cast<Function *>(dlsym(library, name));
}

/* Opened once, and kept: umem has it open, too. Devices have the same numbers as in umem. */
static Driver const &driver() {
  static Driver const found = [] {
    Driver one;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return one;
    find(library, "cuInit", one.init);
    if (!one.init || one.init(0) != 0) return Driver();
    find(library, "cuDriverGetVersion", one.version);
    find(library, "cuDeviceGetName", one.name);
    find(library, "cuDeviceGetPCIBusId", one.bus_id);
    find(library, "cuDeviceGetAttribute", one.attribute);
    return one;
  }();
  return found;
}

/* The node of a device of the bus; -1 where the kernel knows none. */
static int node_of(std::string pci) {
  std::transform(pci.begin(), pci.end(), pci.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string const node = first_line("/sys/bus/pci/devices/" + pci + "/numa_node");
  return node.empty() ? -1 : std::atoi(node.c_str());
}

Gpu gpu(int ordinal) {
  Gpu result;
  Driver const &cuda = driver();
  std::array<char, 256> text = {};
  auto const size = static_cast<int>(text.size());
  if (cuda.name && cuda.name(text.data(), size, ordinal) == 0) result.name = text.data();
  if (cuda.bus_id && cuda.bus_id(text.data(), size, ordinal) == 0) result.pci = text.data();
  if (!result.pci.empty()) result.node = node_of(result.pci);
  int value = 0;
  if (cuda.attribute && cuda.attribute(&value, supports_rdma, ordinal) == 0) result.rdma = value;
  if (cuda.version && cuda.version(&value) == 0) result.driver_version = value;
  return result;
}

} // namespace umem::tool
