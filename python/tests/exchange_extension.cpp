/* exchange_extension.cpp - a module of Python in C++ that knows umem only by DLPack's exchange
 * table, as an extension of others does; and producers whose tables are wrong. Tests and
 * bench/python_rows.py compile it: see exchange_extension.py. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <umem/dlpack.h>

/* ---- a consumer ---- */

/* As consumers do it: the class of the last argument is known. */
static umemDLPackExchange const *table_of(PyTypeObject *type) {
  static thread_local PyTypeObject *last;
  static thread_local umemDLPackExchange const *table;
  if (type == last) return table;
  PyObject *capsule =
      PyObject_GetAttrString(reinterpret_cast<PyObject *>(type), "__dlpack_c_exchange_api__");
  if (!capsule) return nullptr;
  void *found = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);
  if (!found) return nullptr;
  Py_INCREF(reinterpret_cast<PyObject *>(type));
  last = type;
  return table = static_cast<umemDLPackExchange const *>(found);
}

static uintptr_t volatile seen;

static PyObject *by_pointer(PyObject *, PyObject *const *values, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++)
    seen = reinterpret_cast<uintptr_t>(PyLong_AsVoidPtr(values[i]));
  Py_RETURN_NONE;
}

static PyObject *by_description(PyObject *, PyObject *const *values, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    umemDLTensor tensor;
    umemDLPackExchange const *table = table_of(Py_TYPE(values[i]));
    if (!table || table->dltensor_from_py_object_no_sync(values[i], &tensor)) return nullptr;
    seen = reinterpret_cast<uintptr_t>(tensor.data);
  }
  Py_RETURN_NONE;
}

static PyObject *by_tensor(PyObject *, PyObject *const *values, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    umemDLManagedTensorVersioned *tensor;
    umemDLPackExchange const *table = table_of(Py_TYPE(values[i]));
    if (!table || table->managed_tensor_from_py_object_no_sync(values[i], &tensor)) return nullptr;
    seen = reinterpret_cast<uintptr_t>(tensor->dl_tensor.data);
    tensor->deleter(tensor);
  }
  Py_RETURN_NONE;
}

static PyObject *numbers(int count, int64_t const *values) {
  PyObject *tuple = PyTuple_New(count);
  for (int k = 0; k < count; k++) PyTuple_SetItem(tuple, k, PyLong_FromLongLong(values[k]));
  return tuple;
}

/* (address, device, (code, bits, lanes), shape, strides in elements) */
static PyObject *text_of(umemDLTensor const &dl) {
  uintptr_t const address = reinterpret_cast<uintptr_t>(dl.data) + dl.byte_offset;
  return Py_BuildValue("(N(ii)(iii)NN)", PyLong_FromSize_t(address), dl.device.device_type,
                       dl.device.device_id, dl.dtype.code, dl.dtype.bits, dl.dtype.lanes,
                       numbers(dl.ndim, dl.shape), numbers(dl.ndim, dl.strides));
}

static PyObject *describe(PyObject *, PyObject *object) {
  umemDLTensor tensor;
  umemDLPackExchange const *table = table_of(Py_TYPE(object));
  if (!table || table->dltensor_from_py_object_no_sync(object, &tensor)) return nullptr;
  return text_of(tensor);
}

/* As describe, for an object that need not be of the class of the table. */
static PyObject *describe_as(PyObject *, PyObject *args) {
  PyObject *type, *object;
  umemDLTensor tensor;
  if (!PyArg_ParseTuple(args, "OO", &type, &object)) return nullptr;
  umemDLPackExchange const *table = table_of(reinterpret_cast<PyTypeObject *>(type));
  if (!table || table->dltensor_from_py_object_no_sync(object, &tensor)) return nullptr;
  return text_of(tensor);
}

static void end_capsule(PyObject *capsule) {
  void *tensor = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
  if (strcmp(PyCapsule_GetName(capsule), "dltensor_versioned") != 0) return;
  auto *owned = static_cast<umemDLManagedTensorVersioned *>(tensor);
  owned->deleter(owned);
}

/* (description, flags, minor version, capsule of the tensor) */
static PyObject *export_tensor(PyObject *, PyObject *object) {
  umemDLManagedTensorVersioned *tensor;
  umemDLPackExchange const *table = table_of(Py_TYPE(object));
  if (!table || table->managed_tensor_from_py_object_no_sync(object, &tensor)) return nullptr;
  return Py_BuildValue("(NKIN)", text_of(tensor->dl_tensor),
                       static_cast<unsigned long long>(tensor->flags), tensor->version.minor,
                       PyCapsule_New(tensor, "dltensor_versioned", end_capsule));
}

/* An object of a class over the tensor of a capsule; a tensor that is refused stays there. */
static PyObject *import_tensor(PyObject *, PyObject *args) {
  PyObject *type, *capsule;
  void *object;
  if (!PyArg_ParseTuple(args, "OO", &type, &capsule)) return nullptr;
  umemDLPackExchange const *table = table_of(reinterpret_cast<PyTypeObject *>(type));
  void *tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
  if (!table || !tensor) return nullptr;
  if (table->managed_tensor_to_py_object_no_sync(
          static_cast<umemDLManagedTensorVersioned *>(tensor), &object))
    return nullptr;
  PyCapsule_SetName(capsule, "used_dltensor_versioned");
  return static_cast<PyObject *>(object);
}

static void set_error(void *error_ctx, char const *kind, char const *message) {
  *static_cast<std::string *>(error_ctx) = std::string(kind) + ": " + message;
}

/* A new object of a class: made without the GIL, as a kernel does. A failure is a SystemError with
 * its text. */
static PyObject *allocate(PyObject *, PyObject *args) {
  PyObject *type;
  int device, number, code, bits;
  long long extent;
  void *object;
  std::string error;
  if (!PyArg_ParseTuple(args, "OiiiiL", &type, &device, &number, &code, &bits, &extent))
    return nullptr;
  umemDLPackExchange const *table = table_of(reinterpret_cast<PyTypeObject *>(type));
  if (!table) return nullptr;
  int64_t shape[2] = {extent, 2};
  umemDLTensor prototype = {};
  prototype.device = {device, number};
  prototype.ndim = 2;
  prototype.dtype = {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
  prototype.shape = shape;
  umemDLManagedTensorVersioned *tensor = nullptr;
  int failed;
  Py_BEGIN_ALLOW_THREADS;
  failed = table->managed_tensor_allocator(&prototype, &tensor, &error, set_error);
  Py_END_ALLOW_THREADS;
  if (failed) {
    PyErr_SetString(PyExc_SystemError, error.c_str());
    return nullptr;
  }
  return table->managed_tensor_to_py_object_no_sync(tensor, &object)
             ? nullptr
             : static_cast<PyObject *>(object);
}

static PyObject *work_stream(PyObject *, PyObject *args) {
  PyObject *type;
  int device, number;
  void *stream = &device;
  if (!PyArg_ParseTuple(args, "Oii", &type, &device, &number)) return nullptr;
  umemDLPackExchange const *table = table_of(reinterpret_cast<PyTypeObject *>(type));
  if (!table || table->current_work_stream(device, number, &stream)) return nullptr;
  return PyLong_FromVoidPtr(stream);
}

/* ---- producers ---- */

static int ended; /* tensors of these */
static double values[3] = {1, 2, 3};
static int64_t three = 3, one = 1;

static void end_tensor(umemDLManagedTensorVersioned *tensor) {
  ended++;
  delete tensor;
}

static umemDLManagedTensorVersioned *make_tensor() {
  auto *tensor = new umemDLManagedTensorVersioned();
  tensor->version = {1, 3};
  tensor->deleter = end_tensor;
  tensor->dl_tensor = {values, {umemDLCPU, 0}, 1, {umemCodeFloat, 64, 1}, &three, &one, 0};
  return tensor;
}

static int works(void *, umemDLManagedTensorVersioned **tensor) {
  *tensor = make_tensor();
  return 0;
}
static int raises(void *, umemDLManagedTensorVersioned **) {
  PyErr_SetString(PyExc_LookupError, "raised inside");
  return -1;
}
static int fails_silently(void *, umemDLManagedTensorVersioned **) { return -1; }
static int gives_nothing(void *, umemDLManagedTensorVersioned **) { return 0; }
static int throws(void *, umemDLManagedTensorVersioned **) {
  throw std::runtime_error("thrown inside");
}
static int throws_number(void *, umemDLManagedTensorVersioned **) { throw 42; }
static int works_with_error(void *, umemDLManagedTensorVersioned **tensor) {
  PyErr_SetString(PyExc_LookupError, "raised inside");
  return works(nullptr, tensor);
}
static int gives_wrong_tensor(void *, umemDLManagedTensorVersioned **tensor) {
  works(nullptr, tensor);
  (*tensor)->dl_tensor.ndim = -1;
  return 0;
}
static int of_next_version(void *, umemDLManagedTensorVersioned **tensor) {
  works(nullptr, tensor);
  (*tensor)->version.major = 2;
  (*tensor)->dl_tensor.device = {12345, 6};
  return 0;
}
static int on_gpu(void *, umemDLManagedTensorVersioned **tensor) {
  works(nullptr, tensor);
  (*tensor)->dl_tensor.device = {umemDLCUDA, 0};
  return 0;
}
static int no_stream(int32_t, int32_t, void **) {
  PyErr_SetString(PyExc_LookupError, "no stream");
  return -1;
}

static umemDLPackExchange table_with(uint32_t major,
                                     int (*function)(void *, umemDLManagedTensorVersioned **)) {
  return {{{major, 3}, nullptr}, nullptr, function, nullptr, nullptr, nullptr};
}

static PyObject *new_tensor(PyObject *, PyObject *name) {
  umemDLManagedTensorVersioned *tensor;
  bool is_next = PyUnicode_CompareWithASCIIString(name, "next tensor") == 0;
  (is_next ? of_next_version : gives_wrong_tensor)(nullptr, &tensor);
  return PyCapsule_New(tensor, "dltensor_versioned", end_capsule);
}

/* The capsule of a table. */
static PyObject *producer(PyObject *, PyObject *name) {
  static umemDLPackExchange tables[] = {table_with(1, works),
                                        table_with(1, raises),
                                        table_with(1, fails_silently),
                                        table_with(1, gives_nothing),
                                        table_with(1, throws),
                                        table_with(1, throws_number),
                                        table_with(1, works_with_error),
                                        table_with(1, gives_wrong_tensor),
                                        table_with(1, nullptr),
                                        table_with(2, throws),
                                        table_with(2, throws),
                                        table_with(2, throws),
                                        table_with(1, of_next_version),
                                        table_with(1, on_gpu)};
  static char const *const names[] = {"works",
                                      "raises",
                                      "fails silently",
                                      "gives nothing",
                                      "throws",
                                      "throws a number",
                                      "works with error",
                                      "wrong tensor",
                                      "null function",
                                      "next version",
                                      "chain",
                                      "endless",
                                      "next tensor",
                                      "gpu"};
  tables[10].header.previous = &tables[0].header;
  tables[11].header.previous = &tables[11].header;
  tables[13].current_work_stream = no_stream;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
      return PyCapsule_New(&tables[i], "dlpack_exchange_api", nullptr);
  if (PyUnicode_CompareWithASCIIString(name, "other name") == 0)
    return PyCapsule_New(&tables[0], "exchange_api", nullptr);
  PyErr_SetObject(PyExc_KeyError, name);
  return nullptr;
}

static PyObject *count_ended(PyObject *, PyObject *) { return PyLong_FromLong(ended); }

template <class F> static PyCFunction method(F *function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMODINIT_FUNC PyInit_exchange_extension() {
  static PyMethodDef methods[] = {
      {"by_pointer", method(by_pointer), METH_FASTCALL, nullptr},
      {"by_description", method(by_description), METH_FASTCALL, nullptr},
      {"by_tensor", method(by_tensor), METH_FASTCALL, nullptr},
      {"describe", describe, METH_O, nullptr},
      {"describe_as", describe_as, METH_VARARGS, nullptr},
      {"export_tensor", export_tensor, METH_O, nullptr},
      {"import_tensor", import_tensor, METH_VARARGS, nullptr},
      {"allocate", allocate, METH_VARARGS, nullptr},
      {"work_stream", work_stream, METH_VARARGS, nullptr},
      {"new_tensor", new_tensor, METH_O, nullptr},
      {"producer", producer, METH_O, nullptr},
      {"count_ended", count_ended, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "exchange_extension",
                                   nullptr,
                                   -1,
                                   methods,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  PyObject *module = PyModule_Create(&definition);
#if defined(Py_GIL_DISABLED)
  PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
  return module;
}
