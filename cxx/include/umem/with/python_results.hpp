/* umem/with/python_results.hpp - what nanobind.hpp and pybind11.hpp have in common: arrays and
 * places as results of functions that Python calls.
 *
 * All functions return new references, or NULL with an exception of Python. */
#ifndef UMEM_WITH_PYTHON_RESULTS_HPP
#define UMEM_WITH_PYTHON_RESULTS_HPP

#include <umem/with/python.hpp>

#include <umem/vector.hpp>

namespace umem {
namespace detail {
namespace python {

/* What keeps a context, as the table takes it. */
struct ContextOwner {
  void (*release)(void *) = nullptr;
  void *owner = nullptr;

  explicit ContextOwner(Context const &context) {
    std::shared_ptr<void> kept = Keeper::of(context);
    if (!kept.use_count()) return; /* borrowed, for the life of the process */
    owner = new std::shared_ptr<void>(std::move(kept));
    release = [](void *of) { delete static_cast<std::shared_ptr<void> *>(of); };
  }

private:
  struct Keeper : Context {
    static std::shared_ptr<void> of(Context const &context) { return Context::owner(context); }
  };
};

/* Calls function, and sets the exception of Python for one of C++. */
template <class Function> PyObject *result_of(Function &&function) noexcept {
  try {
    umemPythonTable const *table = umem_python_table();
    return table ? function(*table) : nullptr;
  } catch (...) {
    set_exception();
    return nullptr;
  }
}

inline PyObject *wrap_array(CArray array, Context const &context) {
  return result_of([&](umemPythonTable const &table) {
    ContextOwner const owner(context);
    return table.wrap_array(array.release(), owner.release, owner.owner);
  });
}

inline PyObject *to_python(Context const &context) {
  return result_of([&](umemPythonTable const &table) {
    if (!context) throw value_error("an empty umem::Context is no place");
    ContextOwner const owner(context);
    return table.wrap_place(context.c_context(), owner.release, owner.owner);
  });
}

/* The elements of an array in a file, which has no pointers for a guard. */
template <class Type, int Rank> CArray offsets_of(Array<Type, Rank> &array) {
  array.sync_to_device();
  ByteLayout<Type, Rank> const layout(array.extents(), array.strides());
  index_t const begin = distance(array.ghosts().below, array.strides());
  auto const offset = static_cast<address>(begin * static_cast<index_t>(sizeof(Type)));
  return CArray(status_call(umemArray_borrow, array.context().c_context(), array.adr() + offset,
                            element_type<Type>, Rank, layout.shape, layout.strides));
}

/* A guard of the side where the memory of an array is, for Python. The transfer to it may take
 * long. */
template <class Type, int Rank> CArray elements_of(Array<Type, Rank> &array) {
  bool const may_wait = !array.context().can(umemCpuReadable);
  struct Unlocked {
    PyThreadState *state;
    ~Unlocked() {
      if (state) PyEval_RestoreThread(state);
    }
  } const unlocked{may_wait ? PyEval_SaveThread() : nullptr};
  if (array.context().can(umemOffsets)) return offsets_of(array);
  if constexpr (std::is_const_v<Type>)
    return c_array(array, read);
  else
    return c_array(array, write);
}

/* A reference to an object of Python, which ends in any thread. */
class Parent {
public:
  Parent() = default;
  Parent(Parent const &) = delete;
  Parent &operator=(Parent const &) = delete;
  ~Parent() {
    if (!object_ || !Py_IsInitialized()) return;
    PyGILState_STATE const state = PyGILState_Ensure();
    Py_DECREF(object_);
    PyGILState_Release(state);
  }
  void set(PyObject *object) {
    Py_XINCREF(object);
    object_ = object;
  }

private:
  PyObject *object_ = nullptr;
};

/* What an array of Python owns of one of C++: its elements with a guard, and the array itself or
 * what keeps it. */
template <class Kept> struct ArrayOwner {
  Kept kept;
  CArray elements; /* ends before it */
};
template <class Type, class Kept>
PyObject *wrap_owner(std::unique_ptr<ArrayOwner<Kept>> owner, Context const &context) {
  umemArray *elements = owner->elements.get();
  return wrap_array(owned_array(std::move(owner), context.c_context(), umemArray_address(elements),
                                element_type<Type>, umemArray_rank(elements),
                                umemArray_shape(elements), umemArray_strides(elements),
                                std::is_const_v<Type>),
                    context);
}

/* Moves an array to Python: its memory, its place, the newer of its two sides. */
template <class Type, int Rank> PyObject *to_python(Array<Type, Rank> &&array) {
  return result_of([&](umemPythonTable const &) {
    if (!array) throw value_error("an empty umem::Array has no place: it cannot go to Python");
    auto owner = std::make_unique<ArrayOwner<Array<Type, Rank>>>();
    owner->kept = std::move(array);
    owner->elements = elements_of(owner->kept);
    Context const context = owner->kept.context();
    return wrap_owner<Type>(std::move(owner), context);
  });
}

/* Moves the one range of memory of a Buffer or a Vector, as elements Type. */
template <class Type, class Owner> PyObject *moved_range(Owner &&range, char const *name) {
  return result_of([&](umemPythonTable const &) {
    if (!range)
      throw value_error(std::string("an empty umem::") + name +
                        " has no place: it cannot go to Python");
    auto owner = std::make_unique<Owner>(std::move(range));
    Context const context = owner->context();
    address const adr = owner->adr();
    std::int64_t const count = static_cast<std::int64_t>(owner->size());
    return wrap_array(owned_array(std::move(owner), context.c_context(), adr, element_type<Type>, 1,
                                  &count, nullptr),
                      context);
  });
}
inline PyObject *to_python(Buffer &&bytes) {
  return moved_range<std::uint8_t>(std::move(bytes), "Buffer");
}
template <class Type> PyObject *to_python(Vector<Type> &&vector) {
  return moved_range<Type>(std::move(vector), "Vector");
}

/* The elements of a view of the CPU: over its memory, which parent keeps (NULL: the program does),
 * or as a copy in RAM. */
template <class Type, int Rank>
PyObject *to_python(View<Type, Rank> const &view, bool copies, PyObject *parent) {
  return result_of([&](umemPythonTable const &) -> PyObject * {
    ByteLayout<Type, Rank> const layout(view.extents, view.strides);
    auto owner = std::make_unique<Parent>();
    owner->set(parent);
    CArray shared =
        owned_array(std::move(owner), pointers().c_context(), reinterpret_cast<address>(view.data),
                    element_type<Type>, Rank, layout.shape, layout.strides, std::is_const_v<Type>);
    if (!copies) return wrap_array(std::move(shared), pointers());
    return wrap_array(
        CArray(status_call(umemArray_copy, shared.get(), pointers().c_context(), umemOrderC)),
        pointers());
  });
}

/* An array of Python over an array of C++, which parent keeps alive. Until it ends, other guards of
 * the array throw umem::locked_error. */
template <class Type, int Rank> PyObject *refer(Array<Type, Rank> &array, PyObject *parent) {
  return result_of([&](umemPythonTable const &) {
    auto owner = std::make_unique<ArrayOwner<Parent>>();
    owner->elements = elements_of(array);
    owner->kept.set(parent);
    return wrap_owner<Type>(std::move(owner), array.context());
  });
}

/* ---- by the policy of a binding library: both name the same ones ---- */

/* parent: the object whose function is called, if there is one. */
template <class Type, int Rank, class Policy>
PyObject *to_python(View<Type, Rank> const &view, Policy policy, PyObject *parent) {
  bool const is_internal = policy == Policy::reference_internal;
  return to_python(view, !is_internal && policy != Policy::reference,
                   is_internal ? parent : nullptr);
}

template <class Type, int Rank, class Policy>
PyObject *to_python(Array<Type, Rank> &&array, Policy, PyObject *) {
  return to_python(std::move(array));
}
template <class Type, int Rank, class Policy>
PyObject *to_python(Array<Type, Rank> &array, Policy policy, PyObject *parent) {
  if (policy == Policy::move) return to_python(std::move(array));
  if (policy == Policy::reference || policy == Policy::reference_internal)
    return refer(array, policy == Policy::reference ? nullptr : parent);
  return result_of(
      [&](umemPythonTable const &) { return to_python(Array<Type, Rank>(std::as_const(array))); });
}
template <class Type, int Rank, class Policy>
PyObject *to_python(Array<Type, Rank> const &array, Policy policy, PyObject *parent) {
  return to_python(const_cast<Array<Type, Rank> &>(array),
                   policy == Policy::move ? Policy::copy : policy, parent);
}
template <class Type, int Rank, class Policy>
PyObject *to_python(Array<Type, Rank> *array, Policy policy, PyObject *parent) {
  if (!array) Py_RETURN_NONE;
  if (policy != Policy::take_ownership) return to_python(*array, policy, parent);
  std::unique_ptr<Array<Type, Rank>> const owner(array);
  return to_python(std::move(*owner));
}

} // namespace python
} // namespace detail
} // namespace umem

#endif
