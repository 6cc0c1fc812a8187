/* ratio_gpu_peer.cpp - copies from one GPU to another.
 *
 * Access, once enabled, serves every copy of the process, and the first copy of umem enables it. So
 * the copies of a program that does not enable it are timed before all others; then umem and a
 * program that does enable it take turns. */
#include "ratio_gpu.h"

#include "by_hand_cuda.h"
#include "place.h"
#include "sizes.h"

#include <cstdio>
#include <memory>

namespace bench {
namespace {

constexpr int rounds = 15;

/* Two blocks of a size, one on either GPU. */
struct Blocks {
  Block src, dst;
  std::size_t size;
  std::vector<double> without_access; /* seconds of copies by hand */

  Blocks(Place const &from, Place const &to, std::size_t nbytes)
      : src(from.context(), nbytes), dst(to.context(), nbytes), size(nbytes) {}
};

void copy_by_hand(Blocks const &blocks) {
  by_hand::check_cuda(cudaMemcpyPeer(reinterpret_cast<void *>(blocks.dst.address()), 1,
                                     reinterpret_cast<void const *>(blocks.src.address()), 0,
                                     blocks.size),
                      "cudaMemcpyPeer");
  by_hand::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

/* umem may have been first. */
void enable_access(int device, int peer) {
  by_hand::check_cuda(cudaSetDevice(device), "cudaSetDevice");
  cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    by_hand::check_cuda(error, "cudaDeviceEnablePeerAccess");
}

bool can_reach_each_other() {
  int forth = 0, back = 0;
  by_hand::check_cuda(cudaDeviceCanAccessPeer(&forth, 0, 1), "cudaDeviceCanAccessPeer");
  by_hand::check_cuda(cudaDeviceCanAccessPeer(&back, 1, 0), "cudaDeviceCanAccessPeer");
  return forth && back;
}

void measure_peers(Effort const &effort, std::vector<Ratio> &rows) {
  Place from(row_named("cuda")), to(row_named("cuda-1"));
  std::vector<std::unique_ptr<Blocks>> all;
  for (std::size_t size : wanted(effort, {256 * mebibyte, 1024 * mebibyte})) {
    all.push_back(std::make_unique<Blocks>(from, to, size));
    Blocks &blocks = *all.back();
    blocks.without_access =
        alternate(rounds, {[&] { return seconds_of([&] { copy_by_hand(blocks); }); }})[0];
  }

  auto by_umem = [&](Blocks const &blocks) {
    check(umem_copy_to(from.context(), blocks.src, to.context(), blocks.dst, blocks.size));
  };
  for (auto const &blocks : all) by_umem(*blocks);
  enable_access(1, 0);
  enable_access(0, 1); /* and this device is the current one, as before */
  for (auto const &blocks : all) {
    Samples samples =
        alternate(rounds, {[&] { return seconds_of([&] { by_umem(*blocks); }); },
                           [&] { return seconds_of([&] { copy_by_hand(*blocks); }); }});
    std::string name = "GPU to peer GPU, " + size_text(blocks->size);
    add_row(rows, {name, "cudaMemcpyPeer, no access", Measure::speedup, 10, {}, {}, blocks->size},
            samples[0], blocks->without_access);
    add_row(rows, {name, "cudaMemcpyPeer, access", Measure::speedup, 0.98, {}, {}, blocks->size},
            samples[0], samples[1]);
  }
}

} // namespace

void measure_gpu_peer(Effort const &effort, std::vector<Ratio> &rows) {
  if (by_hand::count_gpus() < 2)
    std::printf("skipped: GPU to peer GPU: needs two GPUs\n");
  else if (!can_reach_each_other())
    std::printf("skipped: GPU to peer GPU: these two cannot reach each other's memory\n");
  else
    measure_peers(effort, rows);
}

} // namespace bench
