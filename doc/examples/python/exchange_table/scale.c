/* scale.c - a module of Python that takes arrays of any library by DLPack's exchange table. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <umem/dlpack.h>

/* [consumer] */
/* The table of the class of an object; NULL and an exception if it has none that we know. */
static umemDLPackExchange const *table_of(PyTypeObject *type) {
  static PyTypeObject *known; /* under the GIL */
  static umemDLPackExchange const *table;
  if (type == known) return table;
  PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
  if (!capsule) return NULL;
  umemDLPackExchange const *found = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);
  if (!found) return NULL;
  if (found->header.version.major != 1 || !found->dltensor_from_py_object_no_sync) {
    PyErr_SetString(PyExc_BufferError, "the exchange table is of another version");
    return NULL;
  }
  Py_INCREF((PyObject *)type); /* a class that is known never ends */
  known = type;
  return table = found;
}

/* scale(array, factor): multiplies the doubles of an array in RAM without gaps. */
static PyObject *scale(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
  (void)self;
  umemDLTensor x;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "scale takes an array and a factor");
  umemDLPackExchange const *table = table_of(Py_TYPE(arguments[0]));
  double factor = PyFloat_AsDouble(arguments[1]);
  if (!table || PyErr_Occurred() || table->dltensor_from_py_object_no_sync(arguments[0], &x))
    return NULL;
  if (x.device.device_type != umemDLCPU || x.ndim != 1 || x.strides[0] != 1 ||
      x.dtype.code != umemCodeFloat || x.dtype.bits != 64 || x.dtype.lanes != 1)
    return PyErr_Format(PyExc_TypeError, "scale takes doubles in RAM, in one dimension");
  double *numbers = (double *)(void *)((char *)x.data + x.byte_offset);
  for (int64_t i = 0; i < x.shape[0]; i++) numbers[i] *= factor;
  Py_RETURN_NONE;
}
/* [/consumer] */

PyMODINIT_FUNC PyInit_scale(void) {
  static PyMethodDef methods[] = {
      {"scale", (PyCFunction)(void (*)(void))scale, METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};
  static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "scale", .m_methods = methods};
  return PyModule_Create(&module);
}
