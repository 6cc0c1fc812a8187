/* place.hpp - contexts that umem info and umem bw open, and what a machine has of them. */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace umem::tool {

/* The message of the last failure of this thread, without the function that has failed. */
std::string reason();

/* A context of umem_open, which ends with this object. Throws Failure with the reason. */
class Context {
public:
  explicit Context(std::string const &name);
  ~Context();
  Context(Context const &) = delete;
  Context &operator=(Context const &) = delete;

  void *get() const { return ctx_; }

private:
  void *ctx_; /* owned */
};

/* Names of all storages of umem_open without options, with each GPU, and each NUMA node if there
 * are several. Where no GPU can be used, those of GPU 0 are there, too: opening them gives the
 * reason. */
std::vector<std::string> all_places();

/* The numbers of the GPUs are 0 to this number. */
int gpu_count();

/* The nodes of RAM of this machine (NUMA); {0} if the kernel does not tell. */
std::vector<int> numa_nodes();

/* The first line of a file of the kernel; "" if there is none. */
std::string first_line(std::string const &path);

/* What the driver knows of a GPU beyond umemInfo. */
struct Gpu {
  std::string name; /* of the model; "" if unknown */
  std::string pci;  /* "0000:65:00.0"; "" if unknown */
  int node = -1;    /* of NUMA; -1 if unknown */
  int rdma = -1;    /* whether other devices of the bus reach its memory; -1 if unknown */
  int driver_version =
      0; /* of CUDA that the driver supports: 1000 * major + 10 * minor; 0: unknown */
};
Gpu gpu(int ordinal);

/* Bytes of RAM that this process can still take, by the kernel and by its control groups. */
std::uint64_t available_ram();

/* Whether the path leads to what is neither a regular file nor a folder, such as a device or a
 * pipe. */
bool is_stream(std::string const &path);

/* Whether both paths lead to one file that exists. */
bool is_same_file(std::string const &path, std::string const &other);

/* The folder in which a file without a name is, and whether files there are in RAM (tmpfs). */
std::string scratch_folder();
bool is_in_ram(std::string const &folder);

} // namespace umem::tool
