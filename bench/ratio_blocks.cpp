/* ratio_blocks.cpp - an array passes through a quarter of its memory (umem/blocks.h), beside a plain copy of it. All
 * files are in the page cache. */
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
Vector ones_in(TempFile const &file, umem::index count) {
  Vector ones({count}, umem::File(file.path(), "w+"));
  for (auto const &block : umem::blocks(ones, umem::write, umem::on_host))
    for (umem::index i = 0; i < block.rows(); i++) block.in()[i] = 1;
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

double sum_of_blocks(Vector const &array, umem::Context const &place) {
  return seconds_of([&] {
    double total = 0;
    for (auto const &block : umem::blocks(array, place, quarter_of(array)))
      total += umem::sum(umem::on_host, block.in().interior());
    expect(total == static_cast<double>(array.size()));
  });
}

double negate_blocks(Vector &array, umem::Context const &place) {
  return seconds_of([&] {
    for (auto const &block : umem::blocks(array, umem::write, place, quarter_of(array)))
      umem::for_each(umem::on_host, block.in().interior(), [](double &x) { x = -x; });
  });
}

void measure_on_host(Effort const &effort, std::size_t size, std::vector<Ratio> &rows) {
  TempFile file;
  Vector array = ones_in(file, static_cast<umem::index>(size / sizeof(double)));
  umem::Pool place{umem::Host()}; /* keeps its memory from round to round: touched, too */
  umem::Buffer whole = umem::Buffer::zeroed(umem::Host(), size);
  Samples read = alternate(effort.long_rounds,
                           {[&] { return sum_of_blocks(array, place); },
                            [&] { return copy_from_file(array, whole.context(), whole.adr()); }});
  rows.push_back({"sum of a file by blocks, cached, " + size_text(size),
                  "umem_copy_to of the file to RAM", Measure::speedup, 0.9, read[0], read[1],
                  size});

  Samples change = alternate(effort.long_rounds,
                             {[&] { return negate_blocks(array, place); },
                              [&] { return copy_from_file(array, whole.context(), whole.adr()); },
                              [&] { return copy_to_file(array, whole.context(), whole.adr()); }});
  bool writing = quantile(change[2], 0.5) > quantile(change[1], 0.5);
  rows.push_back({"negate a file by blocks, cached, " + size_text(size),
                  writing ? "umem_copy_to of RAM to the file" : "umem_copy_to of the file to RAM",
                  Measure::speedup, 0.9, change[0], change[writing ? 2 : 1], size});
}

/* One byte of each block is set: the cheapest kernel there is, which must have run before the block goes. */
double load_blocks(Vector const &array, umem::Context const &gpu) {
  return seconds_of([&] {
    for (auto const &block : umem::blocks(array, gpu, quarter_of(array)))
      gpu.set(reinterpret_cast<umem::address>(block.in().data), 1, 1);
    gpu.synchronize();
  });
}

void measure_on_gpu(Effort const &effort, std::size_t size, std::vector<Ratio> &rows) {
  TempFile file;
  Vector array = ones_in(file, static_cast<umem::index>(size / sizeof(double)));
  umem::CudaAsync gpu(0);
  umem::Buffer whole = umem::Buffer::zeroed(gpu, size);
  Samples load =
      alternate(effort.long_rounds, {[&] { return load_blocks(array, gpu); },
                                     [&] { return copy_from_file(array, gpu, whole.adr()); }});
  rows.push_back({"load a file to a GPU by blocks, cached, " + size_text(size),
                  "umem_copy_to of the file to the GPU", Measure::speedup, 0.9, load[0], load[1],
                  size});
}

} // namespace

void measure_blocks(Effort const &effort, std::vector<Ratio> &rows) {
  bool gpu = why_no_gpu().empty();
  umem_thread_clear();
  for (std::size_t size : effort.sizes) {
    measure_on_host(effort, size, rows);
    if (gpu) measure_on_gpu(effort, size, rows);
  }
}

} // namespace bench
