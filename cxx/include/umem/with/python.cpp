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
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#ifndef UMEM_PYTHON_GIL_SECONDS
#define UMEM_PYTHON_GIL_SECONDS 60 /* after which a first call without the GIL fails */
#endif

extern "C" __attribute__((visibility("hidden"))) umemPythonTable const *umem_python_table();

static std::atomic<umemPythonTable const *> known{nullptr};

/* Keeps a table of the package, if it is of this version. NULL with an exception of Python. */
static umemPythonTable const *keep_table(void *found) {
  auto const *table = static_cast<umemPythonTable const *>(found);
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

/* The table of the package; NULL with an exception of Python. Needs the GIL. */
umemPythonTable const *umem_python_table() {
  if (auto const *table = known.load(std::memory_order_acquire)) return table;
  void *found = PyCapsule_Import(UMEM_PYTHON_CAPSULE, 0);
  if (!found && PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_SetString(PyExc_ImportError,
                    "the package umem is too old for this extension, which was "
                    "built with umem " UMEM_VERSION ": pip install --upgrade umem");
  return keep_table(found);
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

/* Of the stable ABI in no version, but in every Python. */
bool has_gil() {
  static auto const check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return Py_IsInitialized() && check && check();
}

/* ---- when the extension is loaded ---- */

/* Imports the package. Failures wait for the first call. */
int import_package(void *) {
  if (umem_python_table()) return 0;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1; /* Ctrl-C */
  PyErr_Clear();
  return 0;
}

/* Takes the table of a package that is imported already, without running Python. */
void take_imported() {
  PyObject *name = PyUnicode_FromString("umem._core");
  PyObject *core = name ? PyImport_GetModule(name) : nullptr;
  PyObject *capsule = core ? PyObject_GetAttrString(core, "_extension") : nullptr;
  if (capsule) keep_table(PyCapsule_GetPointer(capsule, UMEM_PYTHON_CAPSULE));
  PyErr_Clear();
  for (PyObject *object : {name, core, capsule}) Py_XDECREF(object);
}

/* Python loads extensions under the GIL, so no thread has to wait for it later: one that has it may
 * wait for that thread. The lock of the loader is held now, under which nothing may wait for the
 * GIL. So it is the main thread that imports the package, before it goes on in Python. */
__attribute__((constructor)) void find_table() {
  if (!Py_IsInitialized()) return;
  if (has_gil()) take_imported();
  if (!known.load(std::memory_order_acquire)) Py_AddPendingCall(import_package, nullptr);
}

/* ---- at the first call ---- */

/* The outcome of an import in a thread of its own. */
struct Import {
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  std::string problem;

  void run() {
    PyGILState_STATE const state = PyGILState_Ensure();
    std::string text = umem_python_table() ? std::string() : message_of_exception();
    PyGILState_Release(state);
    std::lock_guard<std::mutex> const lock(mutex);
    problem = std::move(text);
    has_ended = true;
    ended.notify_all();
  }

  /* Empty: the table is known. */
  std::string wait() {
    std::unique_lock<std::mutex> lock(mutex);
    if (ended.wait_for(lock, std::chrono::seconds(UMEM_PYTHON_GIL_SECONDS),
                       [this] { return has_ended; }))
      return problem;
    return "the package umem was not imported, and another thread has kept the GIL for " +
           std::to_string(UMEM_PYTHON_GIL_SECONDS) +
           " seconds, perhaps because it waits for this one: import umem before the call";
  }
};

/* The table for any thread, with the GIL or without. */
umemPythonTable const *table_for(char const *name) {
  if (auto const *table = known.load(std::memory_order_acquire)) return table;
  std::string problem;
  if (has_gil()) {
    if (!umem_python_table()) problem = message_of_exception();
  } else {
    auto const import = std::make_shared<Import>();
    std::thread([import] { import->run(); }).detach();
    problem = import->wait();
  }
  if (!problem.empty()) throw std::runtime_error(std::string(name) + ": " + problem);
  return known.load(std::memory_order_acquire);
}

void (*find(char const *name))() {
  umemPythonTable const *table = table_for(name);
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
