/* micro.h - benchmarks of single calls, each compared with what a program does by hand.
 *
 * Names are GROUP/PLACE.../METHOD[/SIZE]. METHOD is umem, and then a PLACE is a row of the table of
 * contexts; or it is a way by hand, and then a PLACE is a kind: memory, file or mapping. */
#ifndef UMEM_BENCH_MICRO_H
#define UMEM_BENCH_MICRO_H

#include "place.h"

#include <benchmark/benchmark.h>

#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace bench {

/* A row of the table, and the same by hand. */
struct MeasuredRow {
  Backend const *backend;
  Kind kind;
};

/* The rows that are not there for tests only, without those whose hardware is not here. */
std::vector<MeasuredRow> const &measured_rows();

/* The pools over some of these: what they do other than allocate and free is their upstream's. */
std::vector<MeasuredRow> const &measured_pools();

/* The kinds of memory for the ways by hand. */
constexpr Kind kinds[] = {Kind::memory, Kind::file, Kind::mapping};

/* Registers a benchmark. What it throws becomes its error. */
using Body = std::function<void(benchmark::State &)>;
benchmark::internal::Benchmark *add(std::string const &name, Body const &body);

/* Registers a benchmark that moves size bytes an iteration; /size is put behind the name. */
void add_sized(std::string const &name, std::size_t size, Body const &body);

/* Each registers a group. */
void register_alloc(std::vector<std::size_t> const &sizes);
void register_dispatch();
void register_set(std::vector<std::size_t> const &sizes);
void register_copy(std::vector<std::size_t> const &sizes);
void register_strided();

} // namespace bench

#endif
