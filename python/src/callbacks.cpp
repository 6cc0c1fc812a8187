#include "callbacks.h"
#include "module.h"
#include "place.h"

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
  nb::object again = function(nbytes, alignment, attempt);
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
    nb::object answer = nb::handle(function)(done, total);
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
      function(umem_get_status_name(type), message, umem_get_device_name(ctx));
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

void bind_callbacks(nb::module_ &m) {
  m.def("_set_failure_hook", set_hook, nb::arg("function").none(),
        nb::sig("def _set_failure_hook(function: object) -> typing.Any"),
        "Sets the function that sees each failure; returns the one before.");
}
