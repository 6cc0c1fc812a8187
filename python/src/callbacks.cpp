#include "callbacks.h"
#include "module.h"
#include "place.h"

#include <algorithm>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

/* ---- retry ---- */

static bool ask_retry(Context *context, size_t nbytes, size_t alignment, unsigned attempt) {
  nb::object self;
  {
    TablesLock lock(tables);
    self = nb::borrow(context->self);
  }
  if (!self.is_valid()) return false; /* nobody but arrays uses the place any more */
  nb::object function = nb::getattr(self(), "_callback", nb::none());
  if (function.is_none()) return false;
  nb::object again = call_python(function, nbytes, alignment, attempt);
  int truth = PyObject_IsTrue(again.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

bool call_retry(void *user, void *, size_t nbytes, size_t alignment, unsigned attempt) {
  if (!Py_IsInitialized()) return false;
  Gil gil;
  if (has_exception()) return false;
  try {
    return ask_retry(static_cast<Context *>(user), nbytes, alignment, attempt);
  } catch (nb::python_error &error) {
    error.restore();
    keep_exception();
    return false;
  }
}

/* ---- allocators ---- */

static nb::object stream_object(uintptr_t stream) {
  return stream == UMEM_EXTERNAL_NO_STREAM ? nb::object(nb::none()) : nb::cast(stream);
}

/* The address that a function has returned; None: no memory. */
static void *address_of(nb::object const &returned) {
  if (returned.is_none()) return nullptr;
  nb::object number = nb::steal(in_python([&] { return PyNumber_Index(returned.ptr()); }));
  unsigned long long address = number.is_valid() ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
  if (PyErr_Occurred()) throw nb::python_error();
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

void *ExternalFunctions::allocate(void *user, size_t nbytes, size_t alignment, uintptr_t stream) {
  if (!Py_IsInitialized()) return nullptr;
  Gil gil;
  if (has_exception()) return nullptr;
  try {
    nb::object function = static_cast<ExternalFunctions *>(user)->allocate_;
    return address_of(call_python(function, nbytes, alignment, stream_object(stream)));
  } catch (nb::python_error &error) {
    error.restore();
    keep_exception();
    return nullptr;
  }
}

static void record_raised(nb::python_error const &error) noexcept {
  nb::object text = nb::steal(PyObject_Str(error.value().ptr()));
  char const *words = text.is_valid() ? PyUnicode_AsUTF8AndSize(text.ptr(), nullptr) : nullptr;
  char message[UMEM_MESSAGE_SIZE];
  snprintf(message, sizeof message, "deallocate has raised %s: %s",
           nb::type_name(error.type()).c_str(), words ? words : "");
  PyErr_Clear();
  umem_set_status(nullptr, umemRuntimeError, message);
}

/* May run while an exception is on its way, which ends the array of the block. */
void ExternalFunctions::deallocate(void *user, void *block, size_t nbytes, size_t alignment,
                                   uintptr_t stream) {
  if (!Py_IsInitialized()) return; /* the process ends */
  Gil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  try {
    nb::object function = static_cast<ExternalFunctions *>(user)->deallocate_;
    call_python(function, reinterpret_cast<uintptr_t>(block), nbytes, alignment,
                stream_object(stream));
  } catch (nb::python_error &error) {
    record_raised(error);
  }
  PyErr_Restore(type, value, trace);
}

void ExternalFunctions::release(void *user) {
  if (!Py_IsInitialized()) return;
  Gil gil;
  delete static_cast<ExternalFunctions *>(user);
}

void ExternalFunctions::write(umemExternalOptions &options) {
  options.allocate = allocate;
  options.deallocate = deallocate;
  options.release = release;
  options.user = this;
}

/* ---- progress ---- */

bool Progress::step(void *user, uint64_t done, uint64_t total) {
  if (!Py_IsInitialized()) return true;
  Gil gil;
  if (has_exception()) return false;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    PyObject *function = static_cast<Progress *>(user)->function;
    if (!function) return true;
    /* Functions that return nothing go on. */
    nb::object answer = call_python(function, done, total);
    return !answer.is(nb::handle(Py_False));
  } catch (nb::python_error &error) {
    error.restore();
    keep_exception();
    return false;
  }
}

/* ---- failures ---- */

static PyObject *hook; /* the function; under tables */

static void call_hook(void *ctx, umemStatusType type, char const *message, void *) noexcept {
  if (!Py_IsInitialized()) return;
  Gil gil;
  if (has_exception()) return;
  try {
    nb::object function;
    {
      TablesLock lock(tables);
      function = nb::borrow(hook);
    }
    if (function.is_valid())
      call_python(function, umem_get_status_name(type), message, umem_get_device_name(ctx));
  } catch (nb::python_error &error) {
    error.restore();
    keep_exception();
  }
}

static nb::object set_hook(nb::object function) {
  PyObject *now = function.is_none() ? nullptr : function.release().ptr();
  {
    TablesLock lock(tables);
    std::swap(now, hook);
    umem_set_failure_hook(hook ? call_hook : nullptr, nullptr);
  }
  return now ? nb::steal(now) : nb::none();
}

/* ---- decisions ---- */

/* Locks of umem may be held, and the GIL, under which nothing waits for a thread of Python: the
 * lines go to a file. A pipe that is full loses them. */
static void write_decision(void *, umemDecision level, char const *message, void *file) noexcept {
  static char const *const names[] = {"", "fallbacks", "memory", "copies"};
  char line[UMEM_MESSAGE_SIZE + 16];
  int length = snprintf(line, sizeof line, "%s: %s\n", names[level], message);
  auto const most = static_cast<int>(sizeof line) - 1;
  pollfd ready{*static_cast<int *>(file), POLLOUT, 0};
  if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT)) return;
  if (write(*static_cast<int *>(file), line, static_cast<size_t>(std::min(length, most))) < 0)
    return; /* nobody could receive it */
}

/* A hook that already runs may still write: the descriptor stays, and is of another file now. */
static void log_decisions(int file, int level) {
  static int own = -1; /* under tables */
  TablesLock lock(tables);
  int const made = own < 0 ? fcntl(file, F_DUPFD_CLOEXEC, 3) : dup3(file, own, O_CLOEXEC);
  if (made < 0) {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  if (own < 0) own = made;
  umem_set_decision_hook(static_cast<umemDecision>(level), write_decision, &own);
}

/* ---- calls that wait for a server ---- */

static thread_local std::atomic<bool> const *ended_call;

EndsWith::EndsWith(std::atomic<bool> const &ended) noexcept
    : before_(std::exchange(ended_call, &ended)) {}

EndsWith::~EndsWith() { ended_call = before_; }

/* Ctrl-C, and what handlers of other signals raise, ends them. */
static bool look_for_signals(void *) noexcept {
  if (ended_call && *ended_call) return false;
  if (!Py_IsInitialized()) return true;
  Gil gil;
  if (has_exception()) return false;
  if (PyErr_CheckSignals() == 0) return true;
  keep_exception();
  return false;
}

void bind_callbacks(nb::module_ &m) {
  umem_set_wait_hook(look_for_signals, nullptr);
  m.def("_set_failure_hook", set_hook, nb::arg("function").none(),
        nb::sig("def _set_failure_hook(function: object) -> typing.Any"),
        "Sets the function that sees each failure; returns the one before.");
  m.def("_log_decisions", log_decisions, nb::arg("file"), nb::arg("level"));
}
