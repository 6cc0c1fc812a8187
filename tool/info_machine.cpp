/* info_machine.cpp - the machine and the build, for umem info. */
#include "failure.hpp"
#include "info.hpp"
#include "place.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <umem.h>
#include <unistd.h>

namespace umem::tool {

static Json yes(std::string const &detail = "") {
  Json json;
  json["available"] = true;
  json["detail"] = detail;
  return json;
}

static Json no(std::string const &why) {
  Json json;
  json["available"] = false;
  json["reason"] = why;
  return json;
}

static Json cuda_json() {
  try {
    Context const first("cuda:0");
  } catch (Failure const &why) {
    return no(why.what());
  }
  Json json = yes(std::to_string(gpu_count()) + (gpu_count() == 1 ? " GPU" : " GPUs"));
  int const version = gpu(0).driver_version;
  json["driver_version"] = version ? Json(version) : Json(nullptr);
  std::string const release = first_line("/sys/module/nvidia/version");
  json["driver_release"] = release.empty() ? Json(nullptr) : Json(release);
  return json;
}

/* Whether files of the folder for files without a name can go around the page cache. */
static Json direct_json() {
  try {
    Context const file("file:?direct=on");
    return yes(scratch_folder());
  } catch (Failure const &why) {
    return no(scratch_folder() + ": " + why.what());
  }
}

static Json storage_json(bool has_gpu) {
  if (!has_gpu) return no("no GPU can be used");
  void *library = dlopen("libcufile.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (!library) return no("libcufile.so.0 is not installed");
  dlclose(library);
  if (access("/proc/driver/nvidia-fs/stats", F_OK) != 0)
    return no("the kernel module nvidia-fs is not loaded");
  return yes("libcufile.so.0, nvidia-fs");
}

/* Programs of MPI construct contexts of ranks by themselves; umem is one process. */
static Json mpi_json() {
  return no(
      "umem is one process without MPI; programs of MPI get contexts from the library umem-mpi");
}

static Json nodes_json() {
  Json nodes = Json::array();
  for (int const node : numa_nodes()) {
    std::string const folder = "/sys/devices/system/node/node" + std::to_string(node);
    Json json;
    json["node"] = node;
    json["processors"] = first_line(folder + "/cpulist");
    nodes.push_back(json);
  }
  return nodes;
}

static int processor_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); /* more than 1024 of them */
}

Json machine_json() {
  Json json;
  json["version"] = UMEM_VERSION;
  json["processors"] = processor_count();
  json["threads"] = umem_get_threads();
  json["available_ram"] = available_ram();
  json["numa"] = nodes_json();
  rlimit limit = {};
  bool const is_bounded = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  json["pinned_limit"] = is_bounded ? Json(limit.rlim_cur) : Json(nullptr);
  json["direct_io"] = direct_json();
  json["cuda"] = cuda_json();
  json["gpudirect_storage"] = storage_json(json["cuda"]["available"].is_true());
  json["mpi"] = mpi_json();
  return json;
}

} // namespace umem::tool
