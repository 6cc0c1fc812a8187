/* ratio_gpu_strided.cpp - the faces and the inside of a three-dimensional array of floats, copied
 * to an array without gaps: from the host to the device and within the device. */
#include "ratio_gpu.h"

#include "by_hand_cuda.h"
#include "place.h"
#include "sizes.h"

namespace bench {
namespace {

constexpr std::size_t item = sizeof(float);

/* Of a cube of so many items on each edge, those from (from, from, from) on, x being the
 * slowest. */
struct Part {
  char const *name;
  std::size_t edge, from, nx, ny, nz;

  std::size_t row() const { return edge * item; }
  std::size_t plane() const { return edge * row(); }
  std::size_t first() const { return from * (plane() + row() + item); }
  std::size_t bytes() const { return nx * ny * nz * item; }
};

void copy_by_umem(Place const &from, std::uintptr_t src, Place const &to, std::uintptr_t dst,
                  Part const &part) {
  std::size_t const extents[] = {part.nx, part.ny, part.nz};
  std::ptrdiff_t const strides[] = {static_cast<std::ptrdiff_t>(part.plane()),
                                    static_cast<std::ptrdiff_t>(part.row()), item};
  umemLayout layout = {sizeof layout, item, 3, extents, strides, nullptr};
  check(umem_copy_strided(from.context(), src + part.first(), to.context(), dst, &layout));
}

/* cudaMemcpy3D does not wait for copies within a device; umem's calls finish before they return. */
void copy_by_hand(std::uintptr_t src, std::uintptr_t dst, Part const &part, cudaMemcpyKind kind) {
  cudaMemcpy3DParms box = {};
  std::size_t width = part.nz * item;
  box.srcPtr = {reinterpret_cast<void *>(src + part.first()), part.row(), part.row(), part.edge};
  box.dstPtr = {reinterpret_cast<void *>(dst), width, width, part.ny};
  box.extent = {width, part.ny, part.nx};
  box.kind = kind;
  by_hand::check_cuda(cudaMemcpy3D(&box), "cudaMemcpy3D");
  if (kind == cudaMemcpyDeviceToDevice) by_hand::finish();
}

} // namespace

void measure_gpu_strided(Effort const &effort, std::vector<Ratio> &rows) {
  std::size_t edge = wanted(effort, {512 * mebibyte}).empty() ? 128 : 512;
  std::size_t inside = edge - 2;
  Part const parts[] = {{"face x", edge, 0, 1, edge, edge},
                        {"face y", edge, 0, edge, 1, edge},
                        {"face z", edge, 0, edge, edge, 1},
                        {"inside", edge, 1, inside, inside, inside}};
  Place device(row_named("cuda"));
  Block target(device.context(), edge * edge * edge * item);
  for (char const *name : {"cuda-host", "host", "cuda"}) {
    Place source(row_named(name));
    Block array(source.context(), edge * edge * edge * item);
    bool within = source.context()->type == device.context()->type;
    cudaMemcpyKind kind = within ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    std::string side = within ? "device" : name == std::string("host") ? "pageable" : "pinned";
    for (Part const &part : parts)
      add_row(
          effort, rows,
          {std::string(part.name) + " of " + std::to_string(edge) + "^3 floats, " + side +
               " to device",
           "cudaMemcpy3D",
           Measure::speedup,
           0.95,
           {},
           {},
           part.bytes()},
          [&] { copy_by_umem(source, array, device, target, part); },
          [&] { copy_by_hand(array, target, part, kind); });
  }
}

} // namespace bench
