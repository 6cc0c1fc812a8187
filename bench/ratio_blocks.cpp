/* ratio_blocks.cpp - an array passes through a quarter of its memory (umem/blocks.h). On the host
 * the other side is the slowest of its legs alone: a plain copy from the file, the loop over
 * memory, a plain copy to the file. On a GPU it is the plain copy. All files are in the page
 * cache. */
#include "ratio.h"

#include "place.h"
#include "sizes.h"

#include <umem.hpp>
#include <umem/block.hpp>
#include <umem/pool.hpp>
#include <umem/reduce.hpp>

#include <stdexcept>
#include <vector>

namespace bench {
namespace {

using Vector = umem::Array<double, 1>;

constexpr std::size_t part = 4; /* of the array: what the blocks may take */

/* A file of so many ones. */
Vector ones_in(TempFile const &file, umem::index_t count) {
  Vector ones({count}, umem::File(file.path(), "w+"));
  for (auto const &block : umem::blocks(ones, umem::write, umem::on_host))
    for (umem::index_t i = 0; i < block.rows(); i++) block.in()[i] = 1;
  return ones;
}

umem::BlocksOptions quarter_of(Vector const &array) {
  umem::BlocksOptions options;
  options.budget = array.nbytes() / part;
  return options;
}

/* Plain copies of the array to and from touched memory of another context. */
double copy_from_file(Vector const &array, umem::Context const &to, umem::address adr) {
  return seconds_of([&] {
    umem::copy(array.context(), array.adr(), to, adr, array.nbytes());
    if (to.can(umemOrdered)) to.synchronize();
  });
}
double copy_to_file(Vector const &array, umem::Context const &from, umem::address adr) {
  return seconds_of([&] { umem::copy(from, adr, array.context(), array.adr(), array.nbytes()); });
}

void expect(bool right) {
  if (!right) throw std::runtime_error("blocks of a file have other values than the file");
}

/* Loops over elements at the speed of the memory. */
constexpr auto threads = umem::on_host_threads();

double sum_of(Vector const &array) {
  return seconds_of(
      [&] { expect(umem::sum(threads, array) == static_cast<double>(array.size())); });
}

double sum_of_blocks(Vector const &array, umem::Context const &place) {
  return seconds_of([&] {
    double total = 0;
    for (auto const &block : umem::blocks(array, place, quarter_of(array)))
      total += umem::sum(threads, block.in().interior());
    expect(total == static_cast<double>(array.size()));
  });
}

struct One {
  void operator()(double &x) const { x = 1; }
};
struct Negate {
  void operator()(double &x) const { x = -x; }
};

double negate(Vector &array) {
  return seconds_of([&] { umem::for_each(threads, array, Negate()); });
}

double negate_blocks(Vector &array, umem::Context const &place) {
  return seconds_of([&] {
    for (auto const &block : umem::blocks(array, umem::write, place, quarter_of(array)))
      umem::for_each(threads, block.in().interior(), Negate());
  });
}

/* A leg alone, and what it is called. */
struct Leg {
  char const *name;
  Timed run;
};

/* Adds the row of whole against the leg that takes longest. */
void add_slowest(Effort const &effort, std::vector<Ratio> &rows, std::string const &operation,
                 std::size_t size, Timed const &whole, std::vector<Leg> const &legs) {
  std::vector<Timed> candidates = {whole};
  for (Leg const &leg : legs) candidates.push_back(leg.run);
  Samples samples = alternate(effort.long_rounds, candidates);
  std::size_t slowest = 1;
  for (std::size_t i = 2; i < samples.size(); i++)
    if (quantile(samples[i], 0.5) > quantile(samples[slowest], 0.5)) slowest = i;
  rows.push_back({operation + " a file by blocks, cached, " + size_text(size),
                  std::string(legs[slowest - 1].name) + " (the slowest leg)", Measure::speedup, 0.9,
                  samples[0], samples[slowest], size});
}

void measure_on_host(Effort const &effort, std::size_t size, std::vector<Ratio> &rows) {
  TempFile file;
  Vector array = ones_in(file, static_cast<umem::index_t>(size / sizeof(double)));
  umem::Pool place{umem::Host()}; /* keeps its memory from round to round: touched, too */
  Vector whole({array.size()}, umem::Host());
  umem::for_each(threads, whole, One());
  umem::address touched = whole.adr();
  Leg read = {"umem_copy_to of the file to RAM",
              [&] { return copy_from_file(array, whole.context(), touched); }};
  Leg write = {"umem_copy_to of RAM to the file",
               [&] { return copy_to_file(array, whole.context(), touched); }};
  add_slowest(effort, rows, "sum", size, [&] { return sum_of_blocks(array, place); },
              {read, {"sum of RAM", [&] { return sum_of(whole); }}});
  add_slowest(effort, rows, "negate", size, [&] { return negate_blocks(array, place); },
              {read, {"negate in RAM", [&] { return negate(whole); }}, write});
}

/* One byte of each block is set: the cheapest kernel there is, which must have run before the block
 * goes. */
double load_blocks(Vector const &array, umem::Context const &gpu) {
  return seconds_of([&] {
    for (auto const &block : umem::blocks(array, gpu, quarter_of(array)))
      gpu.set(reinterpret_cast<umem::address>(block.in().data), 1, 1);
    gpu.synchronize();
  });
}

void measure_on_gpu(Effort const &effort, std::size_t size, std::vector<Ratio> &rows) {
  TempFile file;
  Vector array = ones_in(file, static_cast<umem::index_t>(size / sizeof(double)));
  umem::CudaAsync gpu(0);
  umem::Pool pool{umem::CudaAsync(0)}; /* keeps its memory from round to round, as on the host */
  umem::Buffer whole = umem::Buffer::zeroed(gpu, size);
  Samples load =
      alternate(effort.long_rounds,
                {[&] { return load_blocks(array, gpu); }, [&] { return load_blocks(array, pool); },
                 [&] { return copy_from_file(array, gpu, whole.adr()); }});
  char const *places[] = {"", ", from a pool"};
  for (std::size_t i = 0; i < 2; i++)
    rows.push_back({"load a file to a GPU by blocks, cached, " + size_text(size) + places[i],
                    "umem_copy_to of the file to the GPU", Measure::speedup, 0.9, load[i], load[2],
                    size});
}

} // namespace

void measure_blocks(Effort const &effort, std::vector<Ratio> &rows) {
  bool gpu = why_no_gpu().empty();
  umem_thread_clear();
  measure_overlap(effort, rows);
  for (std::size_t size : effort.sizes) {
    measure_on_host(effort, size, rows);
    if (gpu) measure_on_gpu(effort, size, rows);
  }
}

} // namespace bench
