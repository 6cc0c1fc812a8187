/* umem/with/python.hpp - what nanobind.hpp and pybind11.hpp have in common: arrays and places as
 * arguments of functions that Python calls. Results are in python_results.hpp.
 *
 * Uses Python's C API alone. Every function needs the GIL. */
#ifndef UMEM_WITH_PYTHON_HPP
#define UMEM_WITH_PYTHON_HPP

#include <umem/with/python_table.hpp>

#include <umem/c_array.hpp>
#include <umem/layout.hpp>

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

/* In python.cpp, which the CMake targets umem::with_nanobind and umem::with_pybind11 add: the table
 * of the package; NULL with an exception of Python. */
extern "C" __attribute__((visibility("hidden"))) umemPythonTable const *umem_python_table();

namespace umem {
namespace detail {
namespace python {

/* ---- texts that the compiler makes ---- */

template <std::size_t size> struct Text {
  char text[size + 1] = {};
};

template <std::size_t size> constexpr auto text(char const (&from)[size]) {
  Text<size - 1> result;
  for (std::size_t i = 0; i < size; i++) result.text[i] = from[i];
  return result;
}

template <std::size_t one, std::size_t other>
constexpr auto operator+(Text<one> const &left, Text<other> const &right) {
  Text<one + other> result;
  for (std::size_t i = 0; i < one; i++) result.text[i] = left.text[i];
  for (std::size_t i = 0; i < other; i++) result.text[one + i] = right.text[i];
  return result;
}

template <unsigned number> constexpr auto digits() {
  if constexpr (number < 10) {
    Text<1> result;
    result.text[0] = static_cast<char>('0' + number);
    return result;
  } else {
    return digits<number / 10>() + digits<number % 10>();
  }
}

/* The name of an element type in umem and NumPy. */
template <class Type> constexpr auto type_name() {
  constexpr umemElementType type = element_type<Type>;
  constexpr unsigned code = type & 0xff, bits = type >> 8 & 0xff;
  static_assert(type != 0, "umem: Python has no arrays of such elements");
  if constexpr (type == umemBool)
    return text("bool");
  else if constexpr (type == umemBfloat16)
    return text("bfloat16");
  else if constexpr (code == umemCodeInt)
    return text("int") + digits<bits>();
  else if constexpr (code == umemCodeUInt)
    return text("uint") + digits<bits>();
  else if constexpr (code == umemCodeComplex)
    return text("complex") + digits<bits>();
  else
    return text("float") + digits<bits>();
}

/* How the signature of a function names a layout. */
template <class Layout> constexpr auto layout_name() {
  if constexpr (Known<Layout>::is_contiguous && Known<Layout>::order == column_major)
    return text(", order='F'");
  else if constexpr (Known<Layout>::is_contiguous)
    return text(", order='C'");
  else if constexpr (!std::is_same_v<Layout, Strided>)
    return text(", strides='fixed'");
  else
    return text("");
}

/* typing.Annotated[umem.Array, dict(dtype='float64', ndim=2, order='C', writable=True)] */
template <class Type, int Rank, class Layout> constexpr auto array_name() {
  return text("typing.Annotated[umem.Array, dict(dtype='") + type_name<Type>() + text("', ndim=") +
         digits<unsigned{Rank}>() + layout_name<Layout>() + [] {
           if constexpr (std::is_const_v<Type>)
             return text(")]");
           else
             return text(", writable=True)]");
         }();
}

/* ---- exceptions ---- */

/* The exception of Python that is set, as an object. */
inline PyObject *take_exception() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return value;
}

/* Sets the exception of Python for one of C++, in a handler of it. */
inline void set_exception() noexcept {
  try {
    throw;
  } catch (umem::error const &problem) {
    if (umemPythonTable const *table = umem_python_table())
      table->set_exception(problem.status(), problem.message());
  } catch (std::bad_alloc const &problem) {
    PyErr_SetString(PyExc_MemoryError, problem.what());
  } catch (std::exception const &problem) {
    PyErr_SetString(PyExc_RuntimeError, problem.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of C++ without a message");
  }
}

/* ---- what a parameter takes ---- */

/* One for each type of parameter that the extension has. */
struct Parameter {
  char const *name; /* in signatures */
  bool writes, kept;
  bool (*takes)(umemPythonHold const &);
  Parameter const *next;

  static inline Parameter const *first = nullptr;

  Parameter(char const *name_, bool writes_, bool kept_, bool (*takes_)(umemPythonHold const &))
      : name(name_), writes(writes_), kept(kept_), takes(takes_), next(std::exchange(first, this)) {
  }
};

/* The text of a str, which it drops; otherwise where there is none, or none of Unicode. */
inline std::string text_of(PyObject *object, char const *otherwise) {
  PyObject *bytes = object ? PyUnicode_AsUTF8String(object) : nullptr;
  std::string result = bytes ? PyBytes_AsString(bytes) : otherwise;
  PyErr_Clear();
  Py_XDECREF(bytes);
  Py_XDECREF(object);
  return result;
}

/* Which arguments are of a parameter; empty if another function of the same name may take the
 * elements. Throws nothing of Python: then there is no name. */
inline std::string arguments_of(umemPythonTable const &table, Parameter const &parameter,
                                umemPythonHold const &hold) {
  std::vector<char const *> others;
  for (Parameter const *one = Parameter::first; one; one = one->next)
    if (one->takes(hold)) others.push_back(one->name);
  PyObject *text = table.explain(parameter.name, others.data(), others.size());
  if (text == Py_None) {
    Py_DECREF(text);
    return {};
  }
  std::string const result = text_of(text, "");
  return result.empty() ? "an argument" : result;
}

inline std::string numbers(int64_t const *values, int count) {
  std::string result = "(";
  for (int k = 0; k < count; k++) result += (k ? ", " : "") + std::to_string(values[k]);
  return result + (count == 1 ? ",)" : ")");
}

/* Array of float32, shape (3, 4), strides (16, 4), in Host. */
inline std::string described(PyObject *object, umemPythonHold const &hold) {
  auto *type = reinterpret_cast<PyObject *>(Py_TYPE(object));
  return text_of(PyObject_GetAttrString(type, "__name__"), "object") + " of " + name_of(hold.type) +
         ", shape " + numbers(hold.shape, hold.rank) + ", strides " +
         numbers(hold.strides, hold.rank) + ", in " +
         (hold.array ? umem_get_device_name(umemArray_context(hold.array)) : "RAM") +
         (hold.read_only ? ", read-only" : "");
}

/* ---- the argument: elements of an object of Python, or why it has none ---- */

class Argument {
public:
  Argument() = default;
  Argument(Argument const &) = delete;
  Argument &operator=(Argument const &) = delete;
  ~Argument() { reset(); }

  /* What the function raises if it is called with this argument; borrowed. NULL: it can be
   * called. */
  PyObject *error() const noexcept { return error_; }

  /* Sets error() as the exception of Python. */
  void set_error() const { PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error_)), error_); }

  /* The value of an argument. Throws Exception, which stands for that of Python, if it has none. */
  template <class Exception, class Value, class Own> static Value &value_of(Own &argument) {
    if (argument.error()) {
      argument.set_error();
      throw Exception();
    }
    if constexpr (std::is_same_v<decltype(argument.value), Value>)
      return argument.value;
    else
      return *argument.value;
  }

protected:
  umemPythonTable const *table_ = nullptr; /* while there is a hold */
  umemPythonHold hold_;

  /* Takes the elements of an object. Own: has the parameter, what it takes, and the reason why it
   * does not. Returns false if another function of the same name may take it. If none may, as
   * is_last says, returns true, and error() is why.
   *
   * Binding libraries call from places that no exception may leave. */
  template <class Own> bool take_as(PyObject *object, bool is_last) noexcept {
    reset();
    umemPythonTable const *table = umem_python_table();
    if (!table) return fail(true);
    int const found = table->hold(object, Own::parameter.writes, Own::parameter.kept, &hold_);
    if (found <= 0) return found < 0 && fail(is_last);
    table_ = table;
    return Own::takes(hold_) || refuse(object, is_last, Own::parameter, Own::reason);
  }

  void reset() noexcept {
    if (auto const *table = std::exchange(table_, nullptr)) table->end(&hold_);
    if (error_) Py_DECREF(std::exchange(error_, nullptr));
  }

  /* Ends the use of the hold, which somebody else ends now. */
  umemPythonHold release() noexcept {
    table_ = nullptr;
    return hold_;
  }

  bool fail(bool is_last) noexcept {
    if (is_last)
      error_ = take_exception();
    else
      PyErr_Clear();
    return is_last;
  }

  /* Makes the value of what was taken. What make throws is why there is none. */
  template <class Make> bool made(bool is_last, Make const &make) noexcept {
    try {
      make();
      return true;
    } catch (...) {
      set_exception();
      return fail(is_last);
    }
  }

private:
  PyObject *error_ = nullptr; /* owned */

  bool refuse(PyObject *object, bool is_last, Parameter const &parameter,
              std::string (*reason)(PyObject *, umemPythonHold const &)) noexcept {
    try {
      std::string text;
      if (is_last) text = arguments_of(*table_, parameter, hold_);
      if (!text.empty()) text += reason(object, hold_);
      reset();
      if (text.empty()) return false;
      PyErr_SetString(PyExc_TypeError, text.c_str());
      return fail(true);
    } catch (...) {
      reset();
      set_exception();
      return fail(true);
    }
  }
};

/* ---- views: borrowed for the call ---- */

/* A hold, which ends with this. */
class KeptHold {
public:
  KeptHold(umemPythonTable const *table, umemPythonHold const &hold) : table_(table), hold_(hold) {}
  KeptHold(KeptHold const &) = delete;
  KeptHold &operator=(KeptHold const &) = delete;
  ~KeptHold() { table_->end(&hold_); }

private:
  umemPythonTable const *table_;
  umemPythonHold hold_;
};

/* Number by number: a view that is copied right after it was made would wait for its stores. */
template <class Type, int Rank> void set_view(View<Type, Rank> &view, umemPythonHold const &hold) {
  view.data = static_cast<Type *>(hold.data);
  for (int k = 0; k < Rank; k++) {
    view.extents.at[k] = hold.shape[k];
    view.strides.at[k] = hold.strides[k] / static_cast<int64_t>(sizeof(Type));
  }
}

template <class Type, int Rank> View<Type, Rank> view_of(umemPythonHold const &hold) {
  View<Type, Rank> view(nullptr, {});
  set_view(view, hold);
  return view;
}

/* Whether the elements are at whole multiples of their size, and aligned. */
template <class Type> bool are_elements(umemPythonHold const &hold) {
  for (int k = 0; k < hold.rank; k++)
    if (hold.shape[k] > 1 && hold.strides[k] % static_cast<int64_t>(sizeof(Type)) != 0)
      return false;
  return reinterpret_cast<std::uintptr_t>(hold.data) % alignof(Type) == 0;
}

template <class Type, int Rank> bool is_same_type(umemPythonHold const &hold) {
  return hold.type == element_type<Type> && hold.rank == Rank;
}

/* The beginning of a reason: what was expected. */
template <class Type, int Rank>
std::string expected(char const *what, PyObject *object, umemPythonHold const &hold) {
  static constexpr auto type = type_name<Type>();
  return std::string(" must be ") + what + " of " + type.text + " with " + std::to_string(Rank) +
         (Rank == 1 ? " dimension" : " dimensions") + ", not " + described(object, hold) + ": ";
}

/* What to pass for elements of another type or rank; empty if both fit. */
template <class Type, int Rank> std::string other_type(umemPythonHold const &hold) {
  static constexpr auto type = type_name<Type>();
  if (hold.type != element_type<Type>) return std::string("pass array.astype('") + type.text + "')";
  if (hold.rank != Rank)
    return "pass an array of that many dimensions, such as array.reshape(...) or array[0]";
  return {};
}

/* Whether the CPU has no pointers to the elements. */
inline bool is_far(umemPythonHold const &hold) {
  std::int64_t count = !hold.data;
  for (int k = 0; k < hold.rank; k++) count *= hold.shape[k];
  return count != 0;
}

template <class Type, int Rank, class Layout = Strided> class ViewArgument : public Argument {
public:
  using Value = View<Type, Rank, Layout>;
  static constexpr auto name = array_name<Type, Rank, Layout>();

  bool take(PyObject *object, bool is_last) noexcept {
    if (!take_as<ViewArgument>(object, is_last)) return false;
    if (error()) return true;
    if constexpr (std::is_same_v<Layout, Strided>)
      set_view(value, hold_);
    else
      value = Value(view_of<Type, Rank>(hold_));
    return true;
  }

  /* An object whose end is that of the elements, instead of the end of this; NULL with an
   * exception. */
  PyObject *lend() {
    umemPythonTable const *table = this->table_;
    auto *lent = new (std::nothrow) KeptHold(table, this->release());
    if (!lent) return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(lent, nullptr, [](PyObject *ended) {
      delete static_cast<KeptHold *>(PyCapsule_GetPointer(ended, nullptr));
    });
    if (!capsule) delete lent;
    return capsule;
  }

  Value value;

private:
  friend Argument;

  /* Whether the function may write, and nobody may. */
  static bool is_refused(umemPythonHold const &hold) {
    return is_written && (hold.read_only || !(hold.capabilities & umemCpuWritable));
  }

  static bool takes(umemPythonHold const &hold) {
    if (!is_same_type<Type, Rank>(hold) || is_refused(hold) || is_far(hold) ||
        !are_elements<Type>(hold))
      return false;
    if constexpr (std::is_same_v<Layout, Strided>)
      return true;
    else
      return keeps<Layout>(view_of<Type, Rank>(hold));
  }

  static std::string reason(PyObject *object, umemPythonHold const &hold) {
    std::string const start =
        expected<Type, Rank>(is_written ? "a view to write" : "a view", object, hold);
    std::string const other = other_type<Type, Rank>(hold);
    if (!other.empty()) return start + other;
    if (is_far(hold))
      return start +
             "the CPU has no pointers to it: pass array.to(umem.host()), or take umem::Array in "
             "C++, which moves the elements";
    if (is_refused(hold))
      return start +
             "the function may write: pass array.copy(), or take a view of const elements in C++";
    if (!are_elements<Type>(hold)) return start + "its elements are not aligned: pass array.copy()";
    if (Known<Layout>::order == column_major && Known<Layout>::is_contiguous)
      return start +
             "the elements must follow one another in Fortran's order: pass array.T.copy().T";
    return start + "the layout of the parameter (" + std::string(name.text) +
           ") does not fit: pass "
           "array.copy(), whose elements follow one another in C order";
  }

  static constexpr bool is_written = !std::is_const_v<Type>;
  static inline Parameter const parameter{name.text, is_written, false, takes};
};

/* ---- arrays by value: shared with Python ---- */

/* A handle of a context that keeps it by what the package has given. */
inline Context context_of(umemPythonTable const *table, umemVirtual *context, void *use) {
  return Context(std::shared_ptr<umemVirtual>(
      context, [table, use](umemVirtual *) { table->drop_place(use); }));
}

/* A umemArray of the elements of a hold, which it ends, also if it throws. */
inline CArray array_of(umemPythonTable const *table, umemPythonHold const &hold) {
  CArray array =
      owned_array(std::make_unique<KeptHold>(table, hold), umemArray_context(hold.array),
                  umemArray_address(hold.array), hold.type, hold.rank, hold.shape, hold.strides);
  status_call(umemArray_set_read_only, array.get(), hold.read_only);
  return array;
}

template <class Type, int Rank> class ArrayArgument : public Argument {
public:
  using Value = Array<Type, Rank>;
  static constexpr auto name = array_name<Type, Rank, Strided>();

  bool take(PyObject *object, bool is_last) noexcept {
    if (!take_as<ArrayArgument>(object, is_last)) return false;
    if (error()) return true;
    return made(is_last, [this] {
      umemVirtual *context = nullptr;
      umemPythonTable const *table = table_;
      void *use = table->use_place(&hold_, &context);
      Context const place = context_of(table, context, use);
      value = to_array<Type, Rank>(array_of(table, this->release()), place);
    });
  }

  Value value;

private:
  friend Argument;

  static bool takes(umemPythonHold const &hold) {
    if (!is_same_type<Type, Rank>(hold) || (is_written && hold.read_only)) return false;
    if (!are_elements<Type>(hold)) return false;
    View<Type, Rank> const layout = view_of<Type, Rank>(hold);
    return layout.is_contiguous() || layout.transpose().is_contiguous();
  }

  static std::string reason(PyObject *object, umemPythonHold const &hold) {
    std::string const start = expected<Type, Rank>("an array", object, hold);
    std::string const other = other_type<Type, Rank>(hold);
    if (!other.empty()) return start + other;
    if (is_written && hold.read_only)
      return start +
             "the function may write: pass array.copy(), or take an array of const elements in C++";
    return start + "its elements have gaps: pass array.copy()";
  }

  static constexpr bool is_written = !std::is_const_v<Type>;
  static inline Parameter const parameter{name.text, is_written, true, takes};
};

/* Any elements, for functions of C. */
class CArrayArgument : public Argument {
public:
  bool take(PyObject *object, bool is_last) noexcept {
    if (!take_as<CArrayArgument>(object, is_last)) return false;
    if (error()) return true;
    return made(is_last, [this] {
      umemPythonTable const *table = table_;
      value = array_of(table, this->release());
    });
  }

  CArray value;

private:
  friend Argument;

  static bool takes(umemPythonHold const &) { return true; }
  static std::string reason(PyObject *, umemPythonHold const &) { return {}; }
  static inline Parameter const parameter{": umem.Array", false, true, takes};
};

/* ---- places ---- */

/* Kind: Context, or the class of one kind of them. */
template <class Kind> class PlaceArgument : public Argument {
public:
  bool take(PyObject *object, bool is_last) noexcept {
    reset();
    umemPythonTable const *table = umem_python_table();
    if (!table) return fail(true);
    umemVirtual *context = nullptr;
    void *use = nullptr;
    int const found = table->find_place(object, &context, &use);
    if (found <= 0) return found < 0 && fail(is_last);
    return made(is_last, [&] {
      Context const any = context_of(table, context, use);
      if constexpr (std::is_same_v<Kind, Context>)
        value = any;
      else
        value = Kind::of(any);
    });
  }

  std::optional<Kind> value;
};

} // namespace python
} // namespace detail
} // namespace umem

#endif
