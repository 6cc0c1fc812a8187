/* kernels_functors.hpp - what loops of the tests compute, on host and GPU. */
#pragma once

#include <umem/config.hpp>
#include <umem/view.hpp>

struct AddIndex {
  template <class T, class... I> UMEM_FUNCTION void operator()(T &x, I... i) const {
    x = static_cast<T>(x + static_cast<T>((umem::index_t(i) + ... + umem::index_t(0))));
  }
};
struct Increment {
  template <class T> UMEM_FUNCTION void operator()(T &x) const { x = static_cast<T>(x + 1); }
};
struct Square {
  template <class T> UMEM_FUNCTION T operator()(T const &x) const { return static_cast<T>(x * x); }
};
/* sum = x + y, and x and y exchange their values. */
struct SumAndSwap {
  template <class S, class T, class U> UMEM_FUNCTION void operator()(S &sum, T &x, U &y) const {
    T const old = x;
    sum = static_cast<S>(x + y);
    x = static_cast<T>(y);
    y = static_cast<U>(old);
  }
};
/* Reduces with a sum modulo 101, which each type holds. */
struct RestAndSwap {
  template <class S, class T, class U> UMEM_FUNCTION void operator()(S &rest, T &x, U &y) const {
    SumAndSwap()(rest, x, y);
    rest = static_cast<S>(static_cast<long>(x + y) % 101);
  }
};
struct AddIndexTo {
  template <class T, class A, class... I>
  UMEM_FUNCTION void operator()(T &to, A const &x, I... i) const {
    to = static_cast<T>(x + static_cast<T>((i + ...)));
  }
};
struct Remainder {
  template <class T> UMEM_FUNCTION long operator()(T const &x) const {
    return static_cast<long>(x) % 101;
  }
};
struct Add {
  template <class A, class B> UMEM_FUNCTION auto operator()(A const &a, B const &b) const {
    return a + b;
  }
};
struct Product {
  template <class A, class B> UMEM_FUNCTION double operator()(A const &a, B const &b) const {
    return static_cast<double>(a) * static_cast<double>(b);
  }
};
struct HalfOf {
  template <class T> UMEM_FUNCTION double operator()(T const &x) const {
    return 0.5 * static_cast<double>(x);
  }
};
template <class T, int N> struct SetByIndex {
  umem::View<T, N> to;
  template <class... I> UMEM_FUNCTION void operator()(I... i) const {
    umem::index_t n = 1;
    ((n = n * 31 + i), ...);
    to(i...) = static_cast<T>(n % 100);
  }
};
struct IndexSum {
  template <class... I> UMEM_FUNCTION umem::index_t operator()(I... i) const { return (i + ...); }
};
struct Jacobi {
  umem::View<double const, 2> u;
  UMEM_FUNCTION double operator()(double &value, umem::index_t i, umem::index_t j) const {
    value = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
    double change = value - u(i, j);
    return change < 0 ? -change : change;
  }
};
