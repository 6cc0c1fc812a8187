/* umem/with/nanobind.hpp - functions that take and return arrays and places of umem, in Python by
 * nanobind.
 *
 *     double mean(umem::View<double const, 1> x);
 *     umem::Array<double, 2> solve(umem::View<double const, 2> start, double limit);
 *
 *     NB_MODULE(solver, m) {
 *       m.def("mean", &mean, nb::arg("x"));
 *       m.def("solve", &solve, nb::arg("start"), nb::arg("limit"));
 *     }
 *
 * Link the CMake target umem::with_nanobind, and no library of umem: the module calls the one of
 * the package umem, with which it shares contexts, failures and defaults. It needs nanobind 2 or
 * later, not the one of the package.
 *
 *   View      borrowed for the call: elements that the CPU can use, of a umem.Array, a NumPy array,
 *             or another object with a buffer or DLPack. Type const: also those that are read-only.
 *             As a result: a copy in RAM; with rv_policy::reference_internal the memory itself.
 *   Array     shares the memory, wherever it is, also after the call. As a result: moves. A
 *             reference is copied, or shared with rv_policy::reference_internal.
 *   CArray    any elements, for functions of C; only as an argument.
 *   Context   a umem.Place or its name; Host, File, Cuda, ... take those of their kind.
 *   Buffer, Vector   only as results: they move.
 *
 * An argument that does not fit raises TypeError, which names it and says what to pass. Only where
 * another function of the same name may take it, nanobind lists what these functions take. */
#ifndef UMEM_WITH_NANOBIND_HPP
#define UMEM_WITH_NANOBIND_HPP

#include <nanobind/nanobind.h>

#include <umem/with/python_results.hpp>

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)

/* Failures of umem that a function throws are the exceptions of the package. */
inline void umem_translate() {
  static bool const is_registered = [] {
    ::nanobind::register_exception_translator([](std::exception_ptr const &thrown, void *) {
      try {
        std::rethrow_exception(thrown);
      } catch (umem::error const &) {
        umem::detail::python::set_exception();
      }
    });
    return true;
  }();
  static_cast<void>(is_registered);
}

/* The object whose function is called; NULL outside of calls. */
inline PyObject *umem_parent(cleanup_list *cleanup) noexcept {
  return cleanup ? cleanup->self() : nullptr;
}

/* What the casters of arguments have in common. Argument: of python.hpp, with a value. */
template <class Argument, class ValueType> struct umem_argument {
  using Value = ValueType;
  template <class Wanted> using Cast = movable_cast_t<Wanted>;

  bool from_python(handle object, uint32_t flags, cleanup_list *) noexcept {
    umem_translate();
    return argument.take(object.ptr(), flags & (uint32_t)cast_flags::convert);
  }

  template <class> bool can_cast() const noexcept { return !argument.error(); }

  explicit operator Value *() { return &value(); }
  explicit operator Value &() { return value(); }
  explicit operator Value &&() { return static_cast<Value &&>(value()); }

  Argument argument;

private:
  Value &value() { return Argument::template value_of<python_error, Value>(argument); }
};

template <class Type, int Rank, class Layout>
struct type_caster<umem::View<Type, Rank, Layout>>
    : umem_argument<umem::detail::python::ViewArgument<Type, Rank, Layout>,
                    umem::View<Type, Rank, Layout>> {
  using ArgumentType = umem::detail::python::ViewArgument<Type, Rank, Layout>;
  static constexpr auto Name = const_name(ArgumentType::name.text);

  bool from_python(handle object, uint32_t flags, cleanup_list *cleanup) noexcept {
    umem_translate();
    cleanup_ = cleanup;
    return this->argument.take(object.ptr(), flags & (uint32_t)cast_flags::convert);
  }

  /* Casters of containers ask this, and end before the call: the list of the call keeps the
   * elements. */
  template <class> bool can_cast() const noexcept {
    if (this->argument.error() || !cleanup_) return false;
    auto &lent = const_cast<ArgumentType &>(this->argument);
    PyObject *kept = lent.lend();
    if (!kept) PyErr_Clear();
    if (kept) cleanup_->append(kept);
    return kept;
  }

  static handle from_cpp(umem::View<Type, Rank> const &view, rv_policy policy,
                         cleanup_list *cleanup) noexcept {
    return umem::detail::python::to_python(view, policy, umem_parent(cleanup));
  }

private:
  cleanup_list *cleanup_ = nullptr;
};

template <class Type, int Rank>
struct type_caster<umem::Array<Type, Rank>>
    : umem_argument<umem::detail::python::ArrayArgument<Type, Rank>, umem::Array<Type, Rank>> {
  using Value = umem::Array<Type, Rank>;
  static constexpr auto Name =
      const_name(umem::detail::python::ArrayArgument<Type, Rank>::name.text);

  template <class Arg>
  static handle from_cpp(Arg &&array, rv_policy policy, cleanup_list *cleanup) noexcept {
    return umem::detail::python::to_python(std::forward<Arg>(array), policy, umem_parent(cleanup));
  }
};

template <>
struct type_caster<umem::CArray>
    : umem_argument<umem::detail::python::CArrayArgument, umem::CArray> {
  static constexpr auto Name = const_name("umem.Array");
};

/* Context, and the classes of its kinds. */
template <class Kind>
struct type_caster<Kind, enable_if_t<std::is_base_of_v<umem::Context, Kind>>>
    : umem_argument<umem::detail::python::PlaceArgument<Kind>, Kind> {
  static constexpr auto Name = const_name("umem.Place");

  static handle from_cpp(umem::Context const &context, rv_policy, cleanup_list *) noexcept {
    return umem::detail::python::to_python(context);
  }
};

/* What only results are. */
template <class ValueType> struct umem_result {
  using Value = ValueType;
  template <class Wanted> using Cast = movable_cast_t<Wanted>;
  static constexpr auto Name = const_name("umem.Array");

  static handle from_cpp(Value &&value, rv_policy, cleanup_list *) noexcept {
    return umem::detail::python::to_python(std::move(value));
  }
};

template <> struct type_caster<umem::Buffer> : umem_result<umem::Buffer> {};
template <class Type> struct type_caster<umem::Vector<Type>> : umem_result<umem::Vector<Type>> {};

NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)

#endif
