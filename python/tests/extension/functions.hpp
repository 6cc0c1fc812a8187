/* functions.hpp - what the extensions of the tests bind, by nanobind and by pybind11: plain
 * functions of C++, each bound by its name alone. */
#include <umem.hpp>
#include <umem/adaptors.hpp>
#include <umem/c_array.hpp>
#include <umem/for_each.hpp>

#include <optional>
#include <thread>
#include <tuple>
#include <vector>

using umem::Array;
using umem::View;

/* ---- views ---- */

inline double sum(View<double const, 1> x) {
  double result = 0;
  for (umem::index_t i = 0; i < x.size(); i++) result += x(i);
  return result;
}

inline void scale(View<double, 1> x, double factor) {
  for (umem::index_t i = 0; i < x.size(); i++) x(i) *= factor;
}

template <class Layout> double corner(View<double const, 2, Layout> x) {
  return x(x.extent(0) - 1, 0);
}

/* Two functions of one name: which is called depends on the elements. */
inline int axpy_long(double, View<std::int64_t const, 1>, View<std::int64_t, 1>) { return 8; }
inline int axpy_int(double, View<std::int32_t const, 1>, View<std::int32_t, 1>) { return 4; }

inline double sum_all(std::vector<View<double const, 1>> const &views) {
  double result = 0;
  for (auto const &view : views) result += sum(view);
  return result;
}

inline double sum_or(std::optional<View<double const, 1>> view) { return view ? sum(*view) : -1; }

/* ---- arrays ---- */

struct Raise {
  template <class T> UMEM_FUNCTION void operator()(T &element) const { element += 1; }
};

inline void increment(Array<int, 1> array) {
  auto elements = array.host(umem::write);
  umem::for_each(umem::on_host, *elements, Raise());
}

inline double first(Array<double const, 1> const &array) { return array.get(0); }

inline Array<double, 1> same(Array<double, 1> array) { return array; }

inline Array<double, 2> ones(umem::index_t rows, umem::index_t columns, umem::Context place) {
  return Array<double, 2>::full({rows, columns}, 1.0, place);
}

/* Written on the host side alone. */
inline Array<int, 1> count(umem::index_t n, umem::Context place) {
  Array<int, 1> array({n}, place);
  auto host = array.host(umem::discard);
  for (umem::index_t i = 0; i < n; i++) host(i) = static_cast<int>(i);
  return array;
}

inline Array<double const, 1> constants() {
  return Array<double const, 1>(Array<double, 1>::full({3}, 2.5));
}

inline Array<double, 1> nothing() { return {}; }

inline Array<float, 3> on_default() { return Array<float, 3>::zeros({2, 3, 4}); }

inline Array<float, 2> in_fortran_order() {
  return Array<float, 2>::zeros({2, 3}, umem::column_major);
}

/* Keeps an array beyond the call. */
class Keeper {
public:
  explicit Keeper(Array<double, 1> array) : array_(std::move(array)) {}

  Array<double, 1> &array() { return array_; }
  double get(umem::index_t i) const { return array_.get(i); }
  View<double, 1> view() { return *array_.host(umem::write); }
  void drop_in_thread() {
    std::thread([this] { Array<double, 1>().swap(array_); }).join();
  }

private:
  Array<double, 1> array_;
};

/* ---- places ---- */

inline umem::Context same_place(umem::Context context) { return context; }
inline std::string name_of_place(umem::Context const &context) { return context.name(); }
inline umem::File same_file(umem::File file) { return file; }
inline umem::Context empty_place() { return {}; }

/* One place for several results. */
inline std::tuple<Array<double, 2>, Array<double, 2>> two() {
  umem::Stats place{umem::Host()};
  return {ones(1, 2, place), ones(3, 4, place)};
}

/* ---- blocks ---- */

inline umem::Buffer zero_bytes(std::size_t n) { return umem::Buffer::zeroed(umem::Host(), n); }
inline umem::Vector<double> three(umem::Context place) {
  return umem::Vector<double>::from(place, std::vector<double>{1, 2, 3});
}

/* ---- elements of any type, for C ---- */

inline std::string describe(umem::CArray array) {
  char text[32];
  umem_element_name(umemArray_type(array.get()), text, sizeof text);
  return std::string(text) + " of rank " + std::to_string(umemArray_rank(array.get()));
}

/* ---- threads ---- */

/* The name of a place that a thread makes, for which the caller waits. */
inline std::string name_in_joined_thread() {
  std::string name;
  std::thread([&name] { name = umem::Stats(umem::Host()).name(); }).join();
  return name;
}

/* ---- failures ---- */

inline void fail(umem::Context place) { place.allocate(SIZE_MAX / 2); }
