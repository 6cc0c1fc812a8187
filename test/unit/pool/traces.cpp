/* traces.cpp - writes the traces of the benchmarks for programs in C. */
#include "traces.h"

#include "trace.h"

#include <deque>

namespace {

struct Columns {
  std::string name;
  std::vector<std::uint32_t> numbers;
  std::vector<std::uint64_t> sizes;
};

} // namespace

TestTrace const *test_traces(size_t allocations, size_t *count) {
  static std::deque<Columns> columns;
  static std::deque<std::vector<TestTrace>> all;
  std::vector<TestTrace> &traces = all.emplace_back();
  for (bench::Trace const &trace : bench::traces(1, allocations)) {
    Columns &column = columns.emplace_back();
    column.name = trace.name;
    for (bench::TraceStep const &step : trace.steps) {
      column.numbers.push_back(step.block);
      column.sizes.push_back(step.size);
    }
    traces.push_back({column.name.c_str(), trace.blocks, trace.steps.size(), column.numbers.data(),
                      column.sizes.data()});
  }
  *count = traces.size();
  return traces.data();
}
