/* trace.h - allocations and frees of large blocks, as programs on GPUs make them. */
#ifndef UMEM_BENCH_TRACE_H
#define UMEM_BENCH_TRACE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/* An allocation of block number block, with size bytes; or its free, with size 0. Numbers are used
 * again. */
struct TraceStep {
  std::uint32_t block;
  std::uint64_t size;
};

struct Trace {
  std::string name;
  std::vector<TraceStep> steps; /* at the end no block is live */
  std::uint32_t blocks = 0;     /* the largest number of live blocks */
  std::uint64_t live_peak = 0;  /* the largest sum of sizes of live blocks */
  std::uint64_t largest = 0;    /* the largest size */
};

/* The traces, the same on every machine: their sizes in full, of some ten GiB, divided by divisor.
 * count: about how many allocations each has. */
std::vector<Trace> traces(std::uint64_t divisor, std::size_t count);

} // namespace bench

#endif
