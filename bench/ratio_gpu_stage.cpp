/* ratio_gpu_stage.cpp - copies between files and device memory, compared with the slower of their
 * halves, and with a copy by hand. Files are in the page cache. */
#include "ratio_gpu.h"

#include "by_hand.h"
#include "by_hand_cuda.h"
#include "place.h"
#include "sizes.h"

#include <fcntl.h>
#include <unistd.h>

namespace bench {
namespace {

/* Both open the file, and both fill device memory that is there. */
void load_by_hand(char const *path, std::uintptr_t far, std::size_t size) {
  by_hand::Descriptor fd(path, O_RDONLY);
  by_hand::Memory bytes = by_hand::allocate(size);
  by_hand::read(fd, bytes.get(), size, 0);
  by_hand::copy(far, reinterpret_cast<std::uintptr_t>(bytes.get()), size, cudaMemcpyHostToDevice);
}

void load_by_umem(char const *path, Place const &device, std::uintptr_t far, std::size_t size) {
  umemFile file;
  check(umemFile_ctor(&file, path, "r"));
  std::uintptr_t near = umem_alloc(&file, size);
  check(umem_copy_to(&file, near, device.context(), far, size));
  umem_dtor(&file);
}

void store_by_hand(char const *path, std::uintptr_t far, std::size_t size) {
  by_hand::Descriptor fd(path, O_WRONLY);
  by_hand::Memory bytes = by_hand::allocate(size);
  by_hand::copy(reinterpret_cast<std::uintptr_t>(bytes.get()), far, size, cudaMemcpyDeviceToHost);
  by_hand::write(fd, bytes.get(), size, 0);
}

void store_by_umem(char const *path, Place const &device, std::uintptr_t far, std::size_t size) {
  umemFile file;
  check(umemFile_ctor(&file, path, "r+"));
  std::uintptr_t near = umem_alloc(&file, size);
  check(umem_copy_to(device.context(), far, &file, near, size));
  umem_dtor(&file);
}

void measure_files_by_hand(Effort const &effort, std::vector<Ratio> &rows, std::size_t size) {
  TempFile file;
  Place device(row_named("cuda"));
  Block far(device.context(), size);
  store_by_hand(file.path(), far, size);
  add_row(
      effort, rows,
      {"open file, copy it to device, " + size_text(size),
       "malloc, pread, cudaMemcpy",
       Measure::speedup,
       {},
       {},
       {},
       size},
      [&] { load_by_umem(file.path(), device, far, size); },
      [&] { load_by_hand(file.path(), far, size); });
  add_row(
      effort, rows,
      {"open file, copy device to it, " + size_text(size),
       "malloc, cudaMemcpy, pwrite",
       Measure::speedup,
       {},
       {},
       {},
       size},
      [&] { store_by_umem(file.path(), device, far, size); },
      [&] { store_by_hand(file.path(), far, size); });
}

} // namespace

void measure_gpu_stage(Effort const &effort, std::vector<Ratio> &rows) {
  constexpr int rounds = 7; /* of three copies each, the largest of which take a second together */
  for (std::size_t size : wanted(effort, {64 * mebibyte, 1024 * mebibyte})) {
    for (char const *place : {"file", "mmap"}) {
      rows.push_back(staged_ratio(place, "cuda", size, rounds));
      rows.push_back(staged_ratio("cuda", place, size, rounds));
    }
    measure_files_by_hand(effort, rows, size);
  }
}

} // namespace bench
