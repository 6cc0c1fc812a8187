/* umem/with/python.cpp - the C functions of umem in an extension of Python: each calls the one of
 * the package umem. The CMake targets umem::with_nanobind and umem::with_pybind11 add this file to
 * a program, which links no library of umem. */

/* The extension keeps these functions to itself: other libraries of umem in the process are not
 * theirs. */
#define UMEM_VISIBILITY "hidden"
#include <umem/config.h>
#undef UMEM_PRINTF /* which would make the type of a function none that a template can have */
#define UMEM_PRINTF(text, first)

#include <umem/with/python_table.hpp>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

extern "C" __attribute__((visibility("hidden"))) umemPythonTable const *umem_python_table();

static std::atomic<umemPythonTable const *> known{nullptr};

/* The table of the package; NULL with an exception of Python. Needs the GIL. */
umemPythonTable const *umem_python_table() {
  if (auto const *table = known.load(std::memory_order_acquire)) return table;
  auto const *table =
      static_cast<umemPythonTable const *>(PyCapsule_Import(UMEM_PYTHON_CAPSULE, 0));
  if (!table && PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_SetString(PyExc_ImportError,
                    "the package umem is too old for this extension, which was "
                    "built with umem " UMEM_VERSION ": pip install --upgrade umem");
  if (table && table->abi != UMEM_PYTHON_ABI) {
    PyErr_Format(
        PyExc_ImportError,
        "this extension was built with umem %s, the package is umem %s: build it again with "
        "the headers of that version",
        UMEM_VERSION, table->version);
    table = nullptr;
  }
  if (table) known.store(table, std::memory_order_release);
  return table;
}

namespace {

/* The message of the exception that is set, which it clears. */
std::string message_of_exception() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *text = PyObject_Str(value);
  PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : nullptr;
  char const *chars = bytes ? PyBytes_AsString(bytes) : nullptr;
  std::string message = chars ? chars : "unknown";
  PyErr_Clear();
  for (PyObject *object : {type, value, trace, text, bytes}) Py_XDECREF(object);
  return message;
}

/* The table for a thread without the GIL, which only the first call of all takes. */
umemPythonTable const *table_without_gil(char const *name) {
  if (auto const *table = known.load(std::memory_order_acquire)) return table;
  PyGILState_STATE const state = PyGILState_Ensure();
  umemPythonTable const *table = umem_python_table();
  std::string const problem = table ? std::string() : message_of_exception();
  PyGILState_Release(state);
  if (!table) throw std::runtime_error(std::string(name) + ": " + problem);
  return table;
}

void (*find(char const *name))() {
  umemPythonTable const *table = table_without_gil(name);
  if (void (*function)() = table->find_function(name)) return function;
  throw std::runtime_error(std::string(name) + ": the package umem " + table->version +
                           " lacks it, this extension was built with umem " UMEM_VERSION
                           ": pip install --upgrade umem");
}

/* A function of the package, found at its first call. No lock is held meanwhile: threads that come
 * together find the same. */
template <class Function> class Forward {
  std::atomic<Function *> function_{nullptr};

public:
  Function *get(char const *name) {
    Function *function = function_.load(std::memory_order_relaxed);
    if (!function) {
      function = reinterpret_cast<Function *>(find(name));
      function_.store(function, std::memory_order_relaxed);
    }
    return function;
  }
};

} // namespace

#define UMEM_PYTHON_FUNCTION(Result, name, parameters, arguments)                                  \
  extern "C" Result(name) parameters {                                                             \
    static Forward<decltype(name)> forward;                                                        \
    return forward.get(#name) arguments;                                                           \
  }
#include <umem/with/python_functions.inc>
#undef UMEM_PYTHON_FUNCTION

extern "C" umemStatusType umemVirtual_fail(void *ctx, umemStatusType type, char const *format,
                                           ...) {
  char message[UMEM_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  static Forward<decltype(umemVirtual_fail)> forward;
  return forward.get("umemVirtual_fail")(ctx, type, "%s", message);
}
