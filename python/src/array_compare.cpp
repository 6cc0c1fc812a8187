/* array_compare.cpp - whether the elements of two arrays are equal or close, on any two places,
 * piece by piece. The rules are those of umem/compare.hpp for C++. */
#include "array.h"

#include <cmath>
#include <complex>
#include <memory>
#include <variant>

namespace {

enum : int64_t { piece = 32768 }; /* elements that are in RAM at a time, of each array */

/* The elements of a piece, in the widest type of their kind. */
using Piece = std::variant<std::vector<int64_t>, std::vector<uint64_t>, std::vector<double>,
                           std::vector<std::complex<double>>>;

struct Tolerance {
  bool close; /* else the numbers must be equal */
  double relative, absolute;
  bool equal_nan;
};

umemElementType widest(umemElementType type) {
  if (umem_element_is_complex(type)) return umemComplex128;
  if (umem_element_is_floating_point(type)) return umemFloat64;
  return umem_element_code(type) == umemCodeInt ? umemInt64 : umemUInt64;
}

Piece room_for(umemElementType wide, size_t count) {
  if (wide == umemComplex128) return std::vector<std::complex<double>>(count);
  if (wide == umemFloat64) return std::vector<double>(count);
  if (wide == umemInt64) return std::vector<int64_t>(count);
  return std::vector<uint64_t>(count);
}

/* Reads count elements from number first on, counted in C order. */
void read_piece(umemArray *array, int64_t first, int64_t count, void *ram, Piece &room,
                umemStatusType *status) {
  void *data = std::visit([](auto &numbers) -> void * { return numbers.data(); }, room);
  umemArray *to = umemArray_borrow(ram, reinterpret_cast<uintptr_t>(data),
                                   widest(umemArray_type(array)), 1, &count, nullptr, status);
  umemArray_convert(to, array, 0, first, count, status);
  umemArray_release(to);
}

template <class A> std::complex<double> complex_of(A const &x) {
  if constexpr (std::is_same_v<A, std::complex<double>>)
    return x;
  else
    return {static_cast<double>(x), 0};
}

template <class A, class B> bool is_equal(A const &x, B const &y) {
  if constexpr (std::is_same_v<A, B>)
    return x == y;
  else if constexpr (std::is_integral_v<A> && std::is_integral_v<B>)
    return (x < A(0)) == (y < B(0)) && static_cast<uint64_t>(x) == static_cast<uint64_t>(y);
  else
    return complex_of(x) == complex_of(y);
}

bool is_nan(std::complex<double> const &x) { return std::isnan(x.real()) || std::isnan(x.imag()); }

template <class A, class B> bool is_same(A const &x, B const &y, Tolerance const &tolerance) {
  if (is_equal(x, y)) return true;
  std::complex<double> const one = complex_of(x), other = complex_of(y);
  if (is_nan(one) || is_nan(other)) return tolerance.equal_nan && is_nan(one) && is_nan(other);
  if (!tolerance.close) return false;
  double const distance = std::abs(one - other);
  return std::isfinite(distance) && /* else one is infinite */
         distance <= tolerance.absolute + tolerance.relative * std::abs(other);
}

bool is_same_piece(Piece const &one, Piece const &other, size_t count, Tolerance const &tolerance) {
  auto const compare = [&](auto const &a, auto const &b) {
    for (size_t i = 0; i < count; i++)
      if (!is_same(a[i], b[i], tolerance)) return false;
    return true;
  };
  return std::visit(compare, one, other);
}

/* Whether all elements of two arrays of one shape are the same. Ctrl-C ends it between two
 * pieces. */
bool compare(umemArray *one, umemArray *other, Tolerance const &tolerance) {
  int64_t const all = umemArray_elements(one);
  size_t const count = static_cast<size_t>(all < piece ? all : piece);
  Piece first = room_for(widest(umemArray_type(one)), count),
        second = room_for(widest(umemArray_type(other)), count);
  void *ram = place_of(default_host()).context->ctx;
  bool same = true;
  for (int64_t done = 0; same && done < all; done += piece) {
    int64_t const now = all - done < piece ? all - done : piece;
    array_call(false, [&](umemStatusType *status) {
      read_piece(one, done, now, ram, first, status);
      read_piece(other, done, now, ram, second, status);
      same = *status == umemOK && is_same_piece(first, second, static_cast<size_t>(now), tolerance);
    });
    if (PyErr_CheckSignals()) throw nb::python_error();
  }
  return same;
}

/* A handle of array; if it is a number, in the shape of the other one. */
umemArray *operand(Hold const &array, bool is_number, Hold const &other) {
  return is_number ? broadcast(other.get(), array.get(), array.context())
                   : umemArray_retain(array.get());
}

bool is_all_same(nb::handle one, nb::handle other, bool is_number, bool is_other_number, bool close,
                 double relative, double absolute, bool equal_nan) {
  check_numbers(array_of(one), "the comparison");
  check_numbers(array_of(other), "the comparison");
  Hold a(array_of(one)), b(array_of(other));
  std::unique_ptr<umemArray, void (*)(umemArray *)> const first(operand(a, is_number, b),
                                                                umemArray_release),
      second(operand(b, is_other_number, a), umemArray_release);
  if (!first || !second) raise_failure();
  return umemArray_is_same_shape(first.get(), second.get()) &&
         compare(first.get(), second.get(), {close, relative, absolute, equal_nan});
}

} // namespace

void bind_compare(nb::module_ &m) {
  m.def("_is_all_same", is_all_same, nb::arg("one"), nb::arg("other"), nb::arg("is_number"),
        nb::arg("is_other_number"), nb::arg("close"), nb::arg("relative"), nb::arg("absolute"),
        nb::arg("equal_nan"));
}
