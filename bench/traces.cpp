/* traces.cpp - how much memory pools take for large blocks: most bytes reserved over most bytes live. */
#include "trace_heap.h"

#include <cstdio>
#include <cstring>

using namespace bench;
int main(int argc, char **argv) {
  std::uint64_t divisor = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  std::size_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20000;
  std::printf("%-20s %8s %9s %8s | %8s %8s %8s %8s | %8s %8s | %8s %8s\n", "trace", "steps",
              "live MiB", "blocks", "pool", "limit", "ns", "calls", "host", "limit", "best fit",
              "limit");
  for (Trace const &trace : traces(divisor, count)) {
    auto pool = run_trace(trace, *pool_of_addresses(trace, 0));
    auto limit = least_limit(trace, pool_of_addresses);
    auto fit = run_trace(trace, *best_fit(trace, 0));
    auto least = least_limit(trace, best_fit);
    auto over = pool_over("host:");
    auto host = run_trace(trace, *over(trace, 0));
    auto hlimit = least_limit(trace, over);
    std::printf("%-20s %8zu %9.0f %8u | %8.3f %8.3f %8.0f %8.3f | %8.3f %8.3f | %8.3f %8.3f\n",
                trace.name.c_str(), trace.steps.size(), double(trace.live_peak) / (1 << 20),
                trace.blocks, pool.factor, limit.value_or(0), pool.seconds * 1e9, pool.calls,
                host.factor, hlimit.value_or(0), fit.factor, least.value_or(0));
    std::fflush(stdout);
  }
}
