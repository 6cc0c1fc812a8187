/* ratio_typed.cpp - umemArray beside what a C program writes by hand: handles beside malloc,
 * contents beside copies of plain bytes. All in RAM: other places cost what their copies cost. */
#include "ratio.h"

#include "place.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace bench {
namespace {

constexpr std::size_t handles_per_round = 100'000;
constexpr std::int64_t rows = 2048, columns = 2048; /* doubles: 32 MiB */
constexpr std::size_t nbytes = static_cast<std::size_t>(rows * columns) * sizeof(double);

/* What umem keeps of an array, for the way by hand. */
struct ByHand {
  void *elements;
  std::int64_t shape[2], strides[2];
  int references, rank, type;
};

struct Release {
  void operator()(umemArray *array) const { umemArray_release(array); }
};
using Handle = std::unique_ptr<umemArray, Release>;

void check(umemStatusType status) {
  if (status != umemOK) throw std::runtime_error(umem_thread_message());
}

Handle matrix(void *context) {
  umemStatusType status = umemOK;
  std::int64_t const shape[] = {rows, columns};
  Handle made(umemArray_zeros(context, umemDouble, 2, shape, nullptr, &status));
  double half = 0.5; /* every page is written */
  umemArray_fill(made.get(), &half, &status);
  check(status);
  return made;
}

template <typename Work> Timed per_handle(Work work) {
  return [=] {
    return seconds_of([&] {
             for (std::size_t i = 0; i < handles_per_round; i++) work();
           }) /
           static_cast<double>(handles_per_round);
  };
}

/* ---- handles ---- */

void measure_handles(Effort const &effort, std::vector<Ratio> &ratios, void *host) {
  static std::int64_t const shape[] = {2, 4};
  static double elements[8];
  auto wrap = per_handle([=] {
    umemStatusType status = umemOK;
    umemArray_release(umemArray_borrow(host, reinterpret_cast<std::uintptr_t>(elements), umemDouble,
                                       2, shape, nullptr, &status));
  });
  auto create = per_handle([=] {
    umemStatusType status = umemOK;
    umemArray_release(umemArray_create(host, umemDouble, 2, shape, nullptr, &status));
  });
  auto one_block = per_handle([] {
    void *handle = std::malloc(sizeof(ByHand));
    use(handle);
    std::free(handle);
  });
  auto two_blocks = per_handle([] {
    auto *handle = static_cast<ByHand *>(std::malloc(sizeof(ByHand)));
    if (!handle || posix_memalign(&handle->elements, 64, sizeof elements) != 0) std::abort();
    use(handle);
    std::free(handle->elements);
    std::free(handle);
  });
  Samples samples = alternate(effort.short_rounds, {wrap, one_block, create, two_blocks});
  ratios.push_back({"umemArray: borrow + release", "malloc+free of the struct",
                    Measure::nanoseconds, 60, samples[0], samples[1]});
  ratios.push_back({"umemArray: create + release of 8 doubles", "malloc+free, memalign+free",
                    Measure::nanoseconds, 60, samples[2], samples[3]});

  umemStatusType status = umemOK;
  umemArray *array = umemArray_create(host, umemDouble, 2, shape, nullptr, &status);
  check(status);
  auto view = per_handle([=] {
    umemStatusType now = umemOK;
    umemArray_release(umemArray_select(array, 0, 1, &now));
  });
  samples = alternate(effort.short_rounds, {view, one_block});
  ratios.push_back({"umemArray: select + release", "malloc+free of the struct",
                    Measure::nanoseconds, 60, samples[0], samples[1]});
  umemArray_release(array);
}

/* A tensor that a consumer ends, and one that comes back as an array. */
void measure_tensors(Effort const &effort, std::vector<Ratio> &ratios, void *host) {
  static std::int64_t const shape[] = {2, 4};
  umemStatusType status = umemOK;
  Handle array(umemArray_create(host, umemDouble, 2, shape, nullptr, &status));
  check(status);
  auto out = per_handle([handle = array.get()] {
    umemStatusType now = umemOK;
    umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(handle, nullptr, &now);
    tensor->deleter(tensor);
  });
  auto out_and_in = per_handle([host, handle = array.get()] {
    umemStatusType now = umemOK;
    umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(handle, nullptr, &now);
    umemArray_release(umemArray_from_dlpack(host, tensor, &now));
  });
  auto one_struct = per_handle([] {
    void *tensor = std::malloc(sizeof(umemDLManagedTensorVersioned) + 4 * sizeof(std::int64_t));
    use(tensor);
    std::free(tensor);
  });
  auto two_structs = per_handle([] {
    void *tensor = std::malloc(sizeof(umemDLManagedTensorVersioned) + 4 * sizeof(std::int64_t));
    void *handle = std::malloc(sizeof(ByHand));
    use(tensor);
    use(handle);
    std::free(handle);
    std::free(tensor);
  });
  Samples samples = alternate(effort.short_rounds, {out, one_struct, out_and_in, two_structs});
  ratios.push_back({"umemArray: to DLPack + deleter", "malloc+free of the struct",
                    Measure::nanoseconds, 60, samples[0], samples[1]});
  ratios.push_back({"umemArray: to and from DLPack", "malloc+free of both structs",
                    Measure::nanoseconds, std::nullopt, samples[2], samples[3]});
}

/* ---- contents ---- */

/* Every second column. */
Handle odd_columns(umemArray *array) {
  umemStatusType status = umemOK;
  Handle made(umemArray_slice(array, 1, 1, columns / 2, 2, &status));
  check(status);
  return made;
}

void measure_contents(Effort const &effort, std::vector<Ratio> &ratios, void *host) {
  Handle one = matrix(host), other = matrix(host);
  Handle from = odd_columns(one.get()), to = odd_columns(other.get());
  auto *first = reinterpret_cast<double *>(umemArray_address(one.get()));
  auto *second = reinterpret_cast<double *>(umemArray_address(other.get()));
  auto timed = [](auto work) { return Timed([=] { return seconds_of(work); }); };
  auto add = [&](char const *what, char const *against, double target, Timed ours, Timed theirs,
                 std::size_t bytes) {
    Samples samples = alternate(effort.short_rounds, {std::move(ours), std::move(theirs)});
    ratios.push_back({what, against, Measure::slowdown, target, samples[0], samples[1], bytes});
  };

  double value = 1.25;
  add("umemArray_fill, 2048 x 2048 doubles", "std::fill", 1.05,
      timed([&] { umemArray_fill(one.get(), &value, nullptr); }),
      timed([=] { std::fill(first, first + rows * columns, 1.25); }), nbytes);
  add("umemArray_fill, every second column", "a loop", 1.05,
      timed([&] { umemArray_fill(from.get(), &value, nullptr); }), timed([=] {
        for (std::int64_t i = 1; i < rows * columns; i += 2) first[i] = 1.25;
      }),
      nbytes / 2);

  std::size_t const extents[] = {rows, columns / 2};
  std::ptrdiff_t const strides[] = {columns * 8, 16};
  umemLayout layout = {};
  layout.size = sizeof layout;
  layout.item_size = 8;
  layout.rank = 2;
  layout.extents = extents;
  layout.src_strides = layout.dst_strides = strides;
  auto strided = timed([=] {
    umem_copy_strided(host, reinterpret_cast<std::uintptr_t>(first + 1), host,
                      reinterpret_cast<std::uintptr_t>(second + 1), &layout);
  });
  add("umemArray_assign, every second column", "umem_copy_strided", 1.05,
      timed([&] { umemArray_assign(to.get(), from.get(), nullptr); }), strided, nbytes / 2);
  std::int64_t const all = rows * columns / 2;
  add("umemArray_copy_contents, the same, shifted by an element", "umem_copy_strided", 1.15,
      timed([&] { umemArray_copy_contents(to.get(), from.get(), 0, 1, all - 1, nullptr); }),
      strided, nbytes / 2);
  add("umemArray_copy_contents, without gaps", "umem_copy_to", 1.05, timed([&] {
        umemArray_copy_contents(other.get(), one.get(), 1, 0, rows * columns - 1, nullptr);
      }),
      timed([=] {
        umem_copy_to(host, reinterpret_cast<std::uintptr_t>(first), host,
                     reinterpret_cast<std::uintptr_t>(second), nbytes);
      }),
      nbytes);
}

/* ---- conversion ---- */

Handle filled(void *context, umemElementType type, std::int64_t count) {
  umemStatusType status = umemOK;
  unsigned char const small[8] = {1, 2, 3}; /* a number that is not special in any type */
  Handle made(umemArray_full(context, type, 1, &count, nullptr, small, &status));
  check(status);
  return made;
}

/* The larger array has 64 MiB. memcpy by umem_copy_to, so that both have the same threads. */
void measure_conversion(Effort const &effort, std::vector<Ratio> &ratios, void *host,
                        umemElementType from, umemElementType to, std::string const &what) {
  std::size_t const in = umem_element_size(from), out = umem_element_size(to);
  auto const count = static_cast<std::int64_t>((std::size_t{64} << 20) / std::max(in, out));
  std::size_t const half = static_cast<std::size_t>(count) * (in + out) / 2;
  Handle src = filled(host, from, count), dst = filled(host, to, count);
  Handle one = filled(host, umemUInt8, static_cast<std::int64_t>(half));
  Handle other = filled(host, umemUInt8, static_cast<std::int64_t>(half));
  Samples samples = alternate(
      effort.short_rounds,
      {[&] {
         return seconds_of([&] { umemArray_convert(dst.get(), src.get(), 0, 0, count, nullptr); });
       },
       [&] {
         return seconds_of([&] {
           umem_copy_to(host, umemArray_address(one.get()), host, umemArray_address(other.get()),
                        half);
         });
       }});
  ratios.push_back({"umemArray_convert, " + what, "umem_copy_to of as many bytes",
                    Measure::slowdown, 1.25, samples[0], samples[1], half});
}

void measure_conversions(Effort const &effort, std::vector<Ratio> &ratios, void *host) {
  auto add = [&](umemElementType from, umemElementType to, char const *what) {
    measure_conversion(effort, ratios, host, from, to, what);
  };
  add(umemFloat32, umemFloat64, "float32 to float64");
  add(umemFloat64, umemFloat32, "float64 to float32");
  add(umemInt32, umemFloat32, "int32 to float32");
  add(umemFloat32, umemInt16, "float32 to int16");
  add(umemFloat16, umemFloat32, "float16 to float32");
  add(umemFloat32, umemFloat16, "float32 to float16");
}

/* ---- random numbers ---- */

/* How often 1 GB/s for each thread. A second of that is what the row is compared with. */
void measure_random(Effort const &effort, std::vector<Ratio> &ratios, void *host) {
  constexpr std::int64_t count = 8 << 20;
  auto add = [&](umemElementType type, bool normal, double target, char const *what) {
    Handle array = filled(host, type, count);
    std::size_t const bytes = umemArray_nbytes(array.get());
    unsigned const threads = umem_get_threads();
    umem_set_threads(1);
    Samples samples = alternate(effort.short_rounds,
                                {[&] {
                                   return seconds_of([&] {
                                     if (normal)
                                       umemArray_random_normal(array.get(), 0, 1, 1, nullptr);
                                     else
                                       umemArray_random_uniform(array.get(), 0, 1, 1, nullptr);
                                   });
                                 },
                                 [=] { return static_cast<double>(bytes) / 1e9; }});
    umem_set_threads(threads);
    ratios.push_back(
        {what, "1 GB/s, one thread", Measure::slowdown, target, samples[0], samples[1], bytes});
  };
  add(umemFloat32, false, 1.0, "umemArray_random_uniform, float32");
  add(umemFloat64, false, 1.0, "umemArray_random_uniform, float64");
  add(umemFloat32, true, 1.0, "umemArray_random_normal, float32");
  add(umemFloat64, true, 1.0, "umemArray_random_normal, float64");
}

} // namespace

void measure_typed(Effort const &effort, std::vector<Ratio> &ratios) {
  Place host(row_named("host"));
  measure_handles(effort, ratios, host.context());
  measure_tensors(effort, ratios, host.context());
  measure_contents(effort, ratios, host.context());
  measure_conversions(effort, ratios, host.context());
  measure_converted(effort, ratios);
  measure_random(effort, ratios, host.context());
}

} // namespace bench
