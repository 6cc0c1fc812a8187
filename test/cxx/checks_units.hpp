/* checks_units.hpp - what the units of test checks_units have in common. */
#pragma once

#include <umem/array.hpp>
#include <umem/dynamic_view.hpp>
#include <umem/indexer.hpp>
#include <umem/shape.hpp>
#include <umem/view.hpp>

#include <vector>

/* What only one unit finds: accesses beyond the extents, in memory that is there. */
struct Subject {
  int memory[10] = {};
  umem::Array<int, 1> array = umem::Array<int, 1>::wrap_unowned(memory, {5});
  umem::Array<int, 1> own = umem::Array<int, 1>::zeros({5});
  umem::View<int, 1> view{memory, {5}};
  umem::View<int, 2> square{memory, {2, 2}};
  umem::DynamicView<int> dynamic = square;
  umem::Extents<2> extents{1, 2};
  umem::Shape shape{1, 2, 3};
  umem::Indexer<1, std::int32_t> indexer{umem::Extents<1>{5}};
};

using Access = int (*)(Subject &);

/* One access of every kind that is checked, all of them wrong. The types are the same in all
 * units. */
std::vector<Access> wrong_with_checks();
std::vector<Access> wrong_without_checks();
std::vector<Access> wrong_optimised();
