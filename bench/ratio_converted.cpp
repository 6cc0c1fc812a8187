/* ratio_converted.cpp - umemArray_convert for parts of arrays in all orders, beside the loop that a
 * program writes, compiled with -O2. One thread, and 4 to 8 MiB on either side. The same below an
 * adaptor, and small arrays. */
#include "ratio.h"

#include "converted_loops.h"
#include "place.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr std::int64_t n = 1024, all = n * n, plane = 128 * 128;

Pattern const patterns[] = {
    {"without gaps", 2, {n, n}, {n, 1}, {n, 1}, 0, 0},
    {"from reversed rows", 2, {n, n}, {n, -1}, {n, 1}, n - 1, 0},
    {"to reversed rows", 2, {n, n}, {n, 1}, {n, -1}, 0, n - 1},
    {"both reversed", 2, {n, n}, {n, -1}, {n, -1}, n - 1, n - 1},
    {"rows upside down", 2, {n, n}, {-n, 1}, {n, 1}, n *(n - 1), 0},
    {"from every second", 2, {n, n / 2}, {n, 2}, {n / 2, 1}, 0, 0},
    {"to every second", 2, {n, n / 2}, {n / 2, 1}, {n, 2}, 0, 0},
    {"both every second", 2, {n, n / 2}, {n, 2}, {n, 2}, 0, 0},
    {"from every fourth", 2, {n, n / 4}, {n, 4}, {n / 4, 1}, 0, 0},
    {"from a transpose", 2, {n, n}, {1, n}, {n, 1}, 0, 0},
    {"to a transpose", 2, {n, n}, {n, 1}, {1, n}, 0, 0},
    {"both transposed", 2, {n, n}, {1, n}, {1, n}, 0, 0},
    {"from a column", 1, {n}, {n}, {1}, 0, 0},
    {"rows of 3", 2, {all / 4, 3}, {4, 1}, {3, 1}, 0, 0},
    {"rows of 8", 2, {all / 16, 8}, {16, 1}, {16, 1}, 0, 0},
    {"rows of 24", 2, {all / 32, 24}, {32, 1}, {24, 1}, 0, 0},
    {"rows of 100", 2, {all / 128, 100}, {128, 1}, {100, 1}, 0, 0},
    {"colours to planes", 2, {3, all / 4}, {1, 3}, {all / 4, 1}, 0, 0},
    {"planes to colours", 2, {all / 4, 3}, {1, all / 4}, {3, 1}, 0, 0},
    {"one row for all", 2, {n, n}, {0, 1}, {n, 1}, 0, 0},
    {"permuted 0 2 1", 3, {64, 128, 128}, {plane, 1, 128}, {plane, 128, 1}, 0, 0},
    {"permuted 1 0 2", 3, {128, 64, 128}, {128, plane, 1}, {64 * 128, 128, 1}, 0, 0},
    {"permuted 2 1 0", 3, {128, 128, 64}, {1, 128, plane}, {128 * 64, 64, 1}, 0, 0},
};
/* Beside a loop over 64 numbers the call itself is what takes time: no promise. */
Pattern const small = {"8 x 8 reversed", 2, {8, 8}, {8, -1}, {8, 1}, 7, 0};

struct Types {
  char const *name;
  umemElementType src, dst;
  ConvertLoop *loop;
};
Types const types[] = {
    {"float32 to float64", umemFloat32, umemFloat64, loop_f32_f64},
    {"float64 to float32", umemFloat64, umemFloat32, loop_f64_f32},
    {"int32 to float32", umemInt32, umemFloat32, loop_i32_f32},
    {"uint8 to float32", umemUInt8, umemFloat32, loop_u8_f32},
    {"int64 to float64", umemInt64, umemFloat64, loop_i64_f64},
};

struct Release {
  void operator()(umemArray *array) const { umemArray_release(array); }
};
using Handle = std::unique_ptr<umemArray, Release>;

Handle part_of(void *context, std::vector<double> &memory, umemElementType type,
               Pattern const &pattern, std::int64_t const *strides, std::int64_t first) {
  auto const size = static_cast<std::int64_t>(umem_element_size(type));
  std::int64_t bytes[3];
  for (int k = 0; k < pattern.rank; k++) bytes[k] = strides[k] * size;
  umemStatusType status = umemOK;
  Handle made(umemArray_borrow(context,
                               reinterpret_cast<std::uintptr_t>(memory.data()) +
                                   static_cast<std::uintptr_t>(first * size),
                               type, pattern.rank, pattern.shape, bytes, &status));
  if (status != umemOK) throw std::runtime_error(umem_thread_message());
  return made;
}

class Converted {
public:
  Converted(Effort const &effort, std::vector<Ratio> &ratios, void *context, std::string suffix)
      : effort_(effort), ratios_(ratios), context_(context), suffix_(std::move(suffix)) {}

  void add(Pattern const &pattern, Types const &pair, std::optional<double> target) {
    Handle src = part_of(context_, src_, pair.src, pattern, pattern.src_strides, pattern.src_first);
    Handle dst = part_of(context_, dst_, pair.dst, pattern, pattern.dst_strides, pattern.dst_first);
    std::int64_t const count = umemArray_elements(src.get());
    std::int64_t const times = std::max<std::int64_t>(1, 100'000 / count);
    auto repeated = [=](auto work) {
      return Timed([=] {
        return seconds_of([=] {
                 for (std::int64_t i = 0; i < times; i++) work();
               }) /
               static_cast<double>(times);
      });
    };
    Samples samples = alternate(
        effort_.short_rounds,
        {repeated([from = src.get(), to = dst.get(), count] {
           umemArray_convert(to, from, 0, 0, count, nullptr);
         }),
         repeated([this, &pattern, &pair] { pair.loop(pattern, src_.data(), dst_.data()); })});
    ratios_.push_back(
        {std::string("umemArray_convert, ") + pair.name + ", " + pattern.name + suffix_, "a loop",
         Measure::slowdown, target, samples[0], samples[1]});
  }

private:
  Effort const &effort_;
  std::vector<Ratio> &ratios_;
  void *context_;
  std::string suffix_;
  std::vector<double> src_ = std::vector<double>(all, 0), dst_ = std::vector<double>(all, 0);
};

} // namespace

void measure_converted(Effort const &effort, std::vector<Ratio> &rows) {
  Place host(row_named("host"));
  umemStats stats;
  if (umemStats_ctor(&stats, host.context()) != umemOK)
    throw std::runtime_error(umem_thread_message());
  std::unique_ptr<umemStats, void (*)(umemStats *)> const end(
      &stats, [](umemStats *context) { umem_dtor(context); });
  unsigned const threads = umem_get_threads();
  umem_set_threads(1);
  Converted here(effort, rows, host.context(), ""),
      below(effort, rows, &stats, ", below an adaptor");
  for (Pattern const &pattern : patterns)
    for (Types const &pair : types) here.add(pattern, pair, 1.25);
  for (Pattern const &pattern : {patterns[0], patterns[1], patterns[9]})
    below.add(pattern, types[0], 1.25);
  here.add(small, types[0], std::nullopt);
  umem_set_threads(threads);
}

} // namespace bench
