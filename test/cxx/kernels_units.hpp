/* kernels_units.hpp - what the two units of test kernels_units have in common. */
#pragma once

#include <umem/array.hpp>
#include <umem/convert.hpp>
#include <umem/fill.hpp>
#include <umem/for_each.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>
#include <umem/transform.hpp>

#include <cstring>
#include <string>
#include <vector>

/* ---- functors, the same types in both units ---- */

struct AddOne {
  UMEM_FUNCTION void operator()(int &x) const { x++; }
};
struct AddIndex {
  UMEM_FUNCTION void operator()(int &x, umem::index_t i) const { x += static_cast<int>(i); }
};
struct SetTenfold {
  umem::View<int, 1> to;
  UMEM_FUNCTION void operator()(umem::index_t i) const { to(i) = 10 * static_cast<int>(i); }
};
struct Twice {
  UMEM_FUNCTION int operator()(int x) const { return 2 * x; }
};
struct Product {
  UMEM_FUNCTION int operator()(int x, int y) const { return x * y; }
};
struct IndexItself {
  UMEM_FUNCTION int operator()(umem::index_t i) const { return static_cast<int>(i); }
};
struct Negative {
  UMEM_FUNCTION int operator()(int &value, umem::index_t i) const {
    value = -static_cast<int>(i);
    return value;
  }
};

/* ---- calls ---- */

/* What calls work on: 4 elements each, and 2 rows of 4. */
struct Numbers {
  int first[4] = {1, 2, 3, 4}, second[4] = {}, rows[8] = {1, 2, 3, 4, 5, 6, 7, 8}, sums[2] = {};
  double real[4] = {};
};

/* What calls have said: for each its name and the exception, "" for none; and their results. */
struct Outcome {
  std::vector<std::string> said;
  std::vector<int> results;
};

/* What the exception of a call is; "" where there is none. */
template <class F> std::string exception_of(F const &call) {
  try {
    call();
    return "";
  } catch (umem::error const &error) { /* without a driver, CUDA is not supported either */
    return std::strstr(error.message(), "needs kernels") ? "not supported" : "from CUDA";
  }
}

/* Every algorithm once, in both units. Static, since its body is not the same in both. */
static inline Outcome call_all(umem::Place const &place, Numbers &numbers) {
  using Line = umem::View<int, 1>;
  Line x(numbers.first, {4}), y(numbers.second, {4});
  Line sums(numbers.sums, {2});
  umem::View<double, 1> real(numbers.real, {4});
  umem::View<int, 2> rows(numbers.rows, {2, 4});
  Outcome outcome;
  auto call = [&](char const *name, auto const &f) {
    outcome.said.push_back(std::string(name) + ": " + exception_of(f));
  };
  auto keep = [&](auto result) { outcome.results.push_back(static_cast<int>(result)); };

  call("for_each", [&] { umem::for_each(place, x, AddOne()); });
  call("for_each_indexed", [&] { umem::for_each_indexed(place, x, AddIndex()); });
  call("for_each in a range", [&] { umem::for_each(place, x, umem::interior(x), AddOne()); });
  call("for_each_indexed in a range",
       [&] { umem::for_each_indexed(place, x, umem::interior(x), AddIndex()); });
  call("fill", [&] { umem::fill(place, y, 7); });
  call("iota", [&] { umem::iota(place, y, 3, 2); });
  call("transform", [&] { umem::transform(place, x, x, Twice()); });
  call("transform of two", [&] { umem::transform(place, x, y, x, Product()); });
  call("convert", [&] { umem::convert(place, x, real); });

  call("reduce", [&] { keep(umem::reduce(place, x, 0, umem::plus())); });
  call("sum", [&] { keep(umem::sum(place, real)); });
  call("min", [&] { keep(umem::min(place, x)); });
  call("max", [&] { keep(umem::max(place, x)); });
  call("transform_reduce",
       [&] { keep(umem::transform_reduce(place, y, 0, umem::plus(), Twice())); });
  call("transform_reduce of two",
       [&] { keep(umem::transform_reduce(place, y, y, 0, umem::plus(), Product())); });
  call("for_each_index_reduce", [&] {
    umem::Range<1> all(x.extents);
    keep(umem::for_each_index_reduce(place, all, 0, umem::plus(), IndexItself()));
  });

  call("reduce_along", [&] { umem::reduce_along(place, rows, 0, y, 1, umem::multiplies()); });
  call("sum_along", [&] { umem::sum_along(place, rows, 0, x); });
  call("transform_reduce_along",
       [&] { umem::transform_reduce_along(place, rows, 1, sums, 0, umem::plus(), Twice()); });
  call("transform_reduce_along of two", [&] {
    umem::transform_reduce_along(place, rows, rows, 0, real, 0.0, umem::plus(), Product());
  });
  call("sweep",
       [&] { keep(umem::sweep(place, x, umem::interior(x), 0, umem::minimum(), Negative())); });
  call("for_each_index", [&] { umem::for_each_index(place, y.extents, SetTenfold{y}); });
  return outcome;
}

Outcome call_from_cpp(umem::Place const &place, Numbers &numbers);
Outcome call_from_cu(umem::Place const &place, Numbers &numbers);

/* Runs it where an array lives. */
static inline std::vector<int> call_at_home() {
  umem::Array<int, 1> x({4}, umem::Host()), y({4}, umem::Host());
  umem::fill(x, 1);
  umem::iota(y, 0);
  umem::for_each(x, AddOne());
  umem::for_each_indexed(x, AddIndex());
  umem::transform(x, y, x, Product());
  umem::transform(x, x, Twice());
  return {static_cast<int>(umem::sum(x)), umem::min(x), umem::max(x)};
}
std::vector<int> call_at_home_from_cpp();
std::vector<int> call_at_home_from_cu();

/* Calls on arrays of a GPU none of whose kernels can be launched. Each is to leave its output as it
 * was, current on the host. What went wrong, in words; "" for nothing. */
std::string outputs_of_failed_launches();
