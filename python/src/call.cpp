/* umem/errors.py makes the exceptions. */
#include "call.h"
#include "module.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

nb::ft_mutex tables;

static PyObject
    *make_exception; /* function of (status, message); kept for the life of the process */
static thread_local PyObject *kept;

bool has_exception() noexcept { return kept != nullptr; }

void keep_exception() noexcept {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  if (kept)
    Py_XDECREF(value);
  else
    kept = value;
}

static void set_exception(PyObject *value) {
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(value)), value);
  Py_DECREF(value);
}

void set_exception(umemStatusType type, char const *message) {
  PyObject *text =
      PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(strlen(message)), "surrogateescape");
  if (!text) return;
  PyObject *value = in_python(
      [&] { return PyObject_CallFunction(make_exception, "iO", static_cast<int>(type), text); });
  Py_DECREF(text);
  if (value) set_exception(value);
}

void raise_failure() {
  if (kept) {
    PyObject *value = kept;
    kept = nullptr;
    set_exception(value);
  } else {
    set_exception(umem_thread_status(), umem_thread_message());
  }
  umem_thread_clear();
  throw nb::python_error();
}

void raise(umemStatusType type, char const *format, ...) {
  char message[UMEM_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  set_exception(type, message);
  throw nb::python_error();
}

void report_failure(char const *where) noexcept {
  PyObject *type, *value, *trace; /* of an exception that is on its way */
  PyErr_Fetch(&type, &value, &trace);
  try {
    raise_failure();
  } catch (nb::python_error &error) {
    error.discard_as_unraisable(where);
  }
  PyErr_Restore(type, value, trace);
}

std::string type_text(nb::handle object) {
  bool is_class = PyType_Check(object.ptr());
  std::string const name = nb::type_name(is_class ? object : object.type()).c_str();
  return is_class ? "the class " + name : name;
}

int64_t to_index(nb::handle object, char const *what, umemStatusType beyond, umemStatusType other) {
  PyObject *number = in_python([&] { return PyNumber_Index(object.ptr()); });
  if (!number) {
    nb::python_error error; /* what a method of the program has raised stays */
    if (!error.matches(PyExc_TypeError)) throw error;
    raise(other, "%s must be an integer, not %s", what, type_text(object).c_str());
  }
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  Py_DECREF(number);
  if (overflow) raise(beyond, "%s does not fit into 64 bits", what);
  return value;
}

void bind_call(nb::module_ &m) {
  m.def(
      "_set_exceptions",
      [](nb::object make) {
        Py_XDECREF(make_exception);
        make_exception = make.release().ptr();
      },
      nb::arg("make"), "Sets the function of (status, message) that makes exceptions.");
  m.def(
      "_raise",
      [](int status, char const *message) {
        raise(static_cast<umemStatusType>(status), "%s", message);
      },
      nb::arg("status"), nb::arg("message"),
      nb::sig("def _raise(status: int, message: str) -> typing.NoReturn"),
      "Raises the exception that stands for a status.");
  m.def(
      "_status_name",
      [](int status) { return umem_get_status_name(static_cast<umemStatusType>(status)); },
      nb::arg("status"), "The name of a status: 'OK', 'MemoryError', ...");
}
