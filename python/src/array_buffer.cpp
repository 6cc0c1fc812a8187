/* array_buffer.cpp - the buffer protocol: memoryview(array), numpy.asarray(array). */
#include "array.h"

/* The code of module struct; NULL for types that it lacks. NumPy's int64 is long where long has 64
 * bits: of long long it makes elements of another class. */
static char const *format_of(umemElementType type) {
  switch (type) {
  case umemBool:
    return "?";
  case umemInt8:
    return "b";
  case umemInt16:
    return "h";
  case umemInt32:
    return "i";
  case umemInt64:
    return sizeof(long) == 8 ? "l" : "q";
  case umemUInt8:
    return "B";
  case umemUInt16:
    return "H";
  case umemUInt32:
    return "I";
  case umemUInt64:
    return sizeof(long) == 8 ? "L" : "Q";
  case umemFloat16:
    return "e";
  case umemFloat32:
    return "f";
  case umemFloat64:
    return "d";
  case umemComplex64:
    return "Zf";
  case umemComplex128:
    return "Zd";
  default:
    return nullptr;
  }
}

bool has_buffer_format(umemElementType type) { return format_of(type) != nullptr; }

/* Whether the elements follow one another in Fortran's order without gaps. */
static bool is_fortran(umemArray const *array) {
  int64_t stride = static_cast<int64_t>(umem_element_size(umemArray_type(array)));
  for (int k = 0; k < umemArray_rank(array); k++) {
    if (umemArray_extent(array, k) != 1 && umemArray_stride(array, k) != stride) return false;
    stride *= umemArray_extent(array, k);
  }
  return true;
}

static void check_layout(umemArray const *array, int flags) {
  bool is_c = umemArray_is_c_contiguous(array);
  bool needs_c = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
  bool needs_f = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
  bool needs_any = (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
  bool has_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  if ((needs_c && !is_c) || (needs_f && !is_fortran(array)) ||
      (needs_any && !is_c && !is_fortran(array)) || (!has_strides && !is_c))
    raise(umemNotSupportedError, "the elements do not follow one another as the buffer asks for");
}

static void fill_buffer(Array &array, PyObject *self, Py_buffer *view, int flags) {
  bool writes = flags & PyBUF_WRITABLE;
  std::unique_ptr<Hold> hold(new Hold(array)); /* which keeps the extents and strides, too */
  umemArray *handle = hold->get();
  umemElementType type = umemArray_type(handle);
  char const *format = format_of(type);
  if (!format)
    raise(umemNotSupportedError, "buffers of Python have no elements of %s: use from_dlpack",
          nb::cast<std::string>(nb::str(dtype_of(array))).c_str());
  check_layout(handle, flags);
  void *first;
  array_call(hold->context()->quick, [&](umemStatusType *status) {
    first = umemArray_host_pointer(handle, writes, status);
  });
  bool shaped = flags & PyBUF_ND;
  *view = Py_buffer{};
  view->buf = first;
  view->len = static_cast<Py_ssize_t>(umemArray_nbytes(handle));
  view->itemsize = static_cast<Py_ssize_t>(umem_element_size(type));
  view->readonly = umemArray_is_read_only(handle) || !hold->context()->can(umemCpuWritable);
  view->ndim = shaped ? umemArray_rank(handle) : 1;
  view->format = flags & PyBUF_FORMAT ? const_cast<char *>(format) : nullptr;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "extents are used as they are");
  if (shaped)
    view->shape = reinterpret_cast<Py_ssize_t *>(const_cast<int64_t *>(umemArray_shape(handle)));
  if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES)
    view->strides =
        reinterpret_cast<Py_ssize_t *>(const_cast<int64_t *>(umemArray_strides(handle)));
  hold->memory()->begin_export();
  view->internal = hold.release();
  view->obj = nb::borrow(self).release().ptr();
}

int get_array_buffer(PyObject *self, Py_buffer *view, int flags) {
  view->obj = nullptr;
  if (!nb::inst_ready(self)) {
    PyErr_SetString(PyExc_BufferError, "the array was not made by umem.empty or another function");
    return -1;
  }
  try {
    fill_buffer(*nb::inst_ptr<Array>(self), self, view, flags);
    return 0;
  } catch (nb::python_error &error) {
    error.restore();
    return -1;
  }
}

void release_array_buffer(PyObject *, Py_buffer *view) {
  Hold *hold = static_cast<Hold *>(view->internal);
  hold->memory()->end_export();
  delete hold;
}
