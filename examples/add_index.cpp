/* add_index.cpp - the kernel of "A Memory Array Between C++, CUDA and Python" in one line: it adds
 * the sum of its indices to each element. For four types in one to three dimensions the program
 * checks the result, and compares the speed with that of a copy of the array, which moves as many
 * bytes.
 *
 *     add_index [MIB]
 *
 * MIB: the size of each array, by default 64. Compiled by nvcc (add_index.cu) it also runs on the
 * GPU, with arrays of 1024 MiB.
 *
 * Exit code: 0; 1 when a number is wrong or a call failed. */
#include <umem.hpp>
#include <umem/for_each.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct AddIndex {
  template <class T, class... I> UMEM_FUNCTION void operator()(T &element, I... i) const {
    element += static_cast<T>((i + ...));
  }
};

template <class F> static double seconds_of(F const &f) {
  auto start = std::chrono::steady_clock::now();
  f();
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return seconds.count();
}

/* Adds some times to zeros, in turn with copies. Returns whether the last elements are right. */
template <class T, int N>
static bool run(char const *type, umem::Context const &context, umem::Extents<N> const &extents) {
  auto array = umem::Array<T, N>::zeros(extents, context);
  umem::Array<T, N> other(extents, context);
  constexpr int times = 5;
  double add = 1e300, copy = 1e300;
  for (int time = 0; time < times; time++) {
    copy = std::min(copy, seconds_of([&] {
                      umem::copy(context, array.adr(), context, other.adr(), array.nbytes());
                    }));
    add = std::min(add, seconds_of([&] { umem::for_each_indexed(array, AddIndex()); }));
  }

  umem::Extents<N> last;
  umem::index_t sum = 0;
  for (int k = 0; k < N; k++) sum += last[k] = extents[k] - 1;
  T expected = 0;
  for (int time = 0; time < times; time++) expected += static_cast<T>(sum);
  bool right = array.get(last) == expected && array.get(umem::Extents<N>()) == 0;
  std::printf("%-5s %-6s %dD %7.1f GB/s, %3.0f %% of a copy%s\n", context.name(), type, N,
              2e-9 * static_cast<double>(array.nbytes()) / add, 100 * copy / add,
              right ? "" : ", WRONG");
  return right;
}

template <class T>
static bool run_ranks(char const *type, umem::Context const &context, umem::index_t mib) {
  umem::index_t const n = mib * (1024 * 1024 / static_cast<umem::index_t>(sizeof(T)));
  bool right = run<T>(type, context, umem::Extents<1>{n});
  right &= run<T>(type, context, umem::Extents<2>{n / 4096, 4096});
  return right & run<T>(type, context, umem::Extents<3>{n / (256 * 256), 256, 256});
}

static bool run_types(umem::Context const &context, umem::index_t mib) {
  bool right = run_ranks<std::int32_t>("int32", context, mib);
  right &= run_ranks<std::int64_t>("int64", context, mib);
  right &= run_ranks<float>("float", context, mib);
  return right & run_ranks<double>("double", context, mib);
}

int main(int argc, char **argv) {
  umem::index_t const mib = argc > 1 ? std::atol(argv[1]) : 0;
  try {
    bool right = run_types(umem::Host(), mib > 0 ? mib : 64);
#if defined(__CUDACC__)
    try {
      right &= run_types(umem::Cuda(), mib > 0 ? mib : 1024);
    } catch (umem::not_supported_error const &error) {
      std::printf("not on a GPU: %s\n", error.message());
    }
#endif
    return right ? 0 : 1;
  } catch (umem::error const &error) {
    std::fprintf(stderr, "add_index: %s\n", error.message());
    return 1;
  }
}
