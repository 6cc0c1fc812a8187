/* umem/with/pybind11.hpp - functions that take and return arrays and places of umem, in Python by
 * pybind11. All is as in umem/with/nanobind.hpp, with the CMake target umem::with_pybind11:
 *
 *     double mean(umem::View<double const, 1> x);
 *
 *     PYBIND11_MODULE(solver, m) { m.def("mean", &mean, pybind11::arg("x")); }
 */
#ifndef UMEM_WITH_PYBIND11_HPP
#define UMEM_WITH_PYBIND11_HPP

#include <pybind11/pybind11.h>

#include <umem/with/python_results.hpp>

namespace pybind11 {
namespace detail {

/* Failures of umem that a function throws are the exceptions of the package. */
inline void umem_translate() {
  static bool const is_registered = [] {
    register_local_exception_translator([](std::exception_ptr thrown) {
      try {
        if (thrown) std::rethrow_exception(thrown);
      } catch (umem::error const &) {
        umem::detail::python::set_exception();
      }
    });
    return true;
  }();
  static_cast<void>(is_registered);
}

/* A result; throws the exception of Python that is set if there is none. */
inline handle umem_checked(PyObject *result) {
  if (!result) throw error_already_set();
  return result;
}

/* What the casters of arguments have in common. Argument: of python.hpp, with a value. */
template <class Argument, class ValueType> struct umem_argument {
  using Value = ValueType;
  template <class Wanted> using cast_op_type = movable_cast_op_type<Wanted>;

  bool load(handle object, bool converts) {
    umem_translate();
    return argument.take(object.ptr(), converts);
  }

  operator Value *() { return &value(); }
  operator Value &() { return value(); }
  operator Value &&() && { return std::move(value()); }

  Argument argument;

private:
  Value &value() { return Argument::template value_of<error_already_set, Value>(argument); }
};

template <class Type, int Rank, class Layout>
struct type_caster<umem::View<Type, Rank, Layout>>
    : umem_argument<umem::detail::python::ViewArgument<Type, Rank, Layout>,
                    umem::View<Type, Rank, Layout>> {
  using ArgumentType = umem::detail::python::ViewArgument<Type, Rank, Layout>;
  static constexpr auto name = const_name(ArgumentType::name.text);

  /* Casters of containers end before the call: the call itself keeps the elements. */
  bool load(handle object, bool converts) {
    umem_translate();
    if (!this->argument.take(object.ptr(), converts)) return false;
    if (this->argument.error()) return true;
    object_keeper(this->argument.lend());
    return true;
  }

  static handle cast(umem::View<Type, Rank> const &view, return_value_policy policy,
                     handle parent) {
    return umem_checked(umem::detail::python::to_python(view, policy, parent.ptr()));
  }

private:
  static void object_keeper(PyObject *kept) {
    if (!kept) throw error_already_set();
    loader_life_support::add_patient(reinterpret_steal<object>(kept));
  }
};

template <class Type, int Rank>
struct type_caster<umem::Array<Type, Rank>>
    : umem_argument<umem::detail::python::ArrayArgument<Type, Rank>, umem::Array<Type, Rank>> {
  using Value = umem::Array<Type, Rank>;
  static constexpr auto name =
      const_name(umem::detail::python::ArrayArgument<Type, Rank>::name.text);

  template <class Arg> static handle cast(Arg &&array, return_value_policy policy, handle parent) {
    return umem_checked(
        umem::detail::python::to_python(std::forward<Arg>(array), policy, parent.ptr()));
  }
};

template <>
struct type_caster<umem::CArray>
    : umem_argument<umem::detail::python::CArrayArgument, umem::CArray> {
  static constexpr auto name = const_name("umem.Array");
};

/* Context, and the classes of its kinds. */
template <class Kind>
struct type_caster<Kind, std::enable_if_t<std::is_base_of_v<umem::Context, Kind>>>
    : umem_argument<umem::detail::python::PlaceArgument<Kind>, Kind> {
  static constexpr auto name = const_name("umem.Place");

  static handle cast(umem::Context const &context, return_value_policy, handle) {
    return umem_checked(umem::detail::python::to_python(context));
  }
};

/* What only results are. */
template <class ValueType> struct umem_result {
  template <class Wanted> using cast_op_type = movable_cast_op_type<Wanted>;
  static constexpr auto name = const_name("umem.Array");

  static handle cast(ValueType &&value, return_value_policy, handle) {
    return umem_checked(umem::detail::python::to_python(std::move(value)));
  }
};

template <> struct type_caster<umem::Buffer> : umem_result<umem::Buffer> {};
template <class Type> struct type_caster<umem::Vector<Type>> : umem_result<umem::Vector<Type>> {};

} // namespace detail
} // namespace pybind11

#endif
