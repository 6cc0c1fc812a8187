/* array_given.cpp - reads lists of numbers, and buffers of other libraries, without Python in
 * between, with which small assignments and arrays take several times as long. */
#include "array.h"

#include <cstring>

namespace {

/* ---- lists ---- */

/* The numbers of nested lists or tuples, in C order. */
struct List {
  Shape shape{0, nullptr};
  std::vector<PyObject *> numbers; /* borrowed */
  NumberKind kind = truthNumber;   /* of the largest number */

  /* False: not only lists of equal lengths with bools, ints and floats of Python. */
  bool read(PyObject *value, int depth) {
    bool is_list = PyList_CheckExact(value), is_tuple = PyTuple_CheckExact(value);
    if (!is_list && !is_tuple) return depth == shape.rank && add(value);
    Py_ssize_t count = is_list ? PyList_Size(value) : PyTuple_Size(value);
    if (depth == shape.rank) {
      if (!numbers.empty() || depth == UMEM_MAX_RANK || count == 0) return false;
      shape.extents[shape.rank++] = count;
    }
    if (shape.extents[depth] != count) return false;
    for (Py_ssize_t i = 0; i < count; i++)
      if (!read(is_list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i), depth + 1))
        return false;
    return true;
  }

  bool add(PyObject *number) {
    NumberKind found = PyFloat_CheckExact(number)  ? realNumber
                       : PyLong_CheckExact(number) ? wholeNumber
                       : PyBool_Check(number)      ? truthNumber
                                                   : noNumber;
    if (found == noNumber) return false;
    if (found > kind) kind = found;
    numbers.push_back(number);
    return true;
  }

  umemElementType type() const {
    return kind == realNumber ? umemFloat64 : kind == wholeNumber ? umemInt64 : umemBool;
  }

  /* Writes the numbers as elements of a type; false if one does not fit. */
  bool write(umemElementType as, void *out) const {
    size_t const count = numbers.size();
    bool fits = true;
    for (size_t i = 0; fits && i < count; i++) {
      if (as == umemFloat64) {
        static_cast<double *>(out)[i] = PyFloat_AsDouble(numbers[i]);
      } else if (as == umemBool) {
        static_cast<bool *>(out)[i] = numbers[i] == Py_True;
      } else {
        int overflow;
        static_cast<int64_t *>(out)[i] = PyLong_AsLongLongAndOverflow(numbers[i], &overflow);
        fits = !overflow;
      }
    }
    if (PyErr_Occurred()) fits = false;
    PyErr_Clear();
    return fits;
  }
};

/* The type in which the numbers of a list become elements of type; 0: each needs a check. */
umemElementType type_between(umemElementType type, NumberKind kind) {
  if (umem_element_lanes(type) != 1) return static_cast<umemElementType>(0);
  if (umem_element_is_floating_point(type) && !umem_element_is_complex(type)) return umemFloat64;
  bool is_same =
      (type == umemInt64 && kind <= wholeNumber) || (type == umemBool && kind == truthNumber);
  return is_same ? type : static_cast<umemElementType>(0);
}

/* ---- buffers ---- */

/* The type of elements that one letter of module struct names; 0 for others. */
umemElementType type_of_format(char const *format) {
  if (!format) return umemUInt8;
  if (*format == '@' || *format == '=' || *format == '<') format++;
  if (!strcmp(format, "Zf")) return umemComplex64;
  if (!strcmp(format, "Zd")) return umemComplex128;
  if (!*format || format[1]) return static_cast<umemElementType>(0);
  switch (*format) {
  case '?':
    return umemBool;
  case 'b':
    return umemInt8;
  case 'h':
    return umemInt16;
  case 'i':
    return umemInt32;
  case 'l':
  case 'q':
    return umemInt64;
  case 'B':
    return umemUInt8;
  case 'H':
    return umemUInt16;
  case 'I':
    return umemUInt32;
  case 'L':
  case 'Q':
    return umemUInt64;
  case 'e':
    return umemFloat16;
  case 'f':
    return umemFloat32;
  case 'd':
    return umemFloat64;
  default:
    return static_cast<umemElementType>(0);
  }
}

} // namespace

umemElementType type_of_buffer(Py_buffer const &view) {
  umemElementType found =
      view.ndim <= UMEM_MAX_RANK ? type_of_format(view.format) : static_cast<umemElementType>(0);
  bool is_sized = found && umem_element_size(found) == static_cast<size_t>(view.itemsize);
  return is_sized ? found : static_cast<umemElementType>(0);
}

namespace {

/* A buffer of another library, as long as the object lives. */
class Buffer {
  Py_buffer view_;
  bool held_;

public:
  explicit Buffer(nb::handle object)
      : held_(PyObject_GetBuffer(object.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT) == 0) {
    if (!held_) PyErr_Clear();
  }
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  Buffer(Buffer const &) = delete;
  Buffer &operator=(Buffer const &) = delete;

  umemElementType type() const {
    return held_ ? type_of_buffer(view_) : static_cast<umemElementType>(0);
  }
  Py_buffer const &view() const { return view_; }
};

/* ---- assignments ---- */

/* Sets dst to elements in RAM, broadcast to its shape. */
void assign_elements(Hold const &dst, void const *elements, umemElementType type,
                     Shape const &shape, int64_t const *strides) {
  umemArray *to = dst.get();
  void *ram = place_of(default_host()).context->ctx;
  Context *host = place_of(default_host()).context;
  array_call(is_short(dst.context(), umemArray_nbytes(to)), [&](umemStatusType *status) {
    umemArray *given = umemArray_borrow(ram, reinterpret_cast<uintptr_t>(elements), type,
                                        shape.rank, shape.extents, strides, status);
    if (!given) return;
    umemArray *wide = nullptr;
    if (!umemArray_is_same_shape(to, given)) wide = broadcast(to, given, host);
    umemArray *from = wide ? wide : given;
    if (umemArray_type(to) == type)
      umemArray_assign(to, from, status);
    else
      umemArray_convert_wrapping(to, from, 0, 0, umemArray_elements(to), status);
    umemArray_release(wide);
    umemArray_release(given);
  });
}

/* Whether elements of this shape become those of dst without an error. */
bool fits(umemArray const *dst, Shape const &shape) {
  int extra = shape.rank - umemArray_rank(dst);
  for (int k = 0; k < shape.rank; k++) {
    int64_t extent = shape.extents[k];
    if (extent != 1 && (k < extra || extent != umemArray_extent(dst, k - extra))) return false;
  }
  return true;
}

bool assign_list(Array &dst, nb::handle value) {
  Hold to(dst, true);
  List list;
  if (!list.read(value.ptr(), 0) || !fits(to.get(), list.shape)) return false;
  umemElementType type = type_between(umemArray_type(to.get()), list.kind);
  if (!type) return false;
  std::vector<double> room(list.numbers.size()); /* of 8 bytes, as the largest type */
  if (!list.write(type, room.data())) return false;
  assign_elements(to, room.data(), type, list.shape, nullptr);
  return true;
}

bool assign_buffer(Array &dst, nb::handle value) {
  Hold to(dst, true);
  Buffer buffer(value);
  umemElementType type = buffer.type();
  if (!type || buffer.view().ndim == 0) return false; /* a number has checks of its own */
  Py_buffer const &view = buffer.view();
  Shape shape(view.ndim, reinterpret_cast<int64_t const *>(view.shape));
  if (!fits(to.get(), shape) || umemArray_elements(to.get()) == 0) return false;
  if (umemArray_type(to.get()) != type &&
      umem_element_is_complex(umemArray_type(to.get())) != umem_element_is_complex(type))
    return false;
  assign_elements(to, view.buf, type, shape, reinterpret_cast<int64_t const *>(view.strides));
  return true;
}

/* ---- rows: what most small assignments are to ---- */

/* A short row in C order, in RAM that the CPU writes. */
struct Row {
  char *bytes = nullptr; /* none: there is no such row */
  umemElementType type;
  int rank;
  int64_t const *extents;
  size_t size;
};

size_t const longest_row = 4096;

/* That which a whole number names. */
Row find_row(Array &array, nb::handle key) {
  Row row;
  Look look(array, true);
  umemArray *handle = look.get();
  int rank = umemArray_rank(handle), overflow;
  row.type = umemArray_type(handle);
  if (rank < 2 || !look.context()->quick || umemArray_is_read_only(handle) || is_stored(row.type))
    return row;
  int64_t const *extents = umemArray_shape(handle), *strides = umemArray_strides(handle);
  int64_t size = static_cast<int64_t>(umem_element_size(row.type));
  for (int k = rank - 1; k > 0; size *= extents[k--])
    if (strides[k] != size || extents[k] > static_cast<int64_t>(longest_row)) return row;
  long long index = PyLong_AsLongLongAndOverflow(key.ptr(), &overflow);
  if (overflow || index < -extents[0] || index >= extents[0]) return row;
  if (size == 0 || size > static_cast<int64_t>(longest_row)) return row;
  index += index < 0 ? extents[0] : 0;
  row.rank = rank - 1;
  row.extents = extents + 1;
  row.size = static_cast<size_t>(size);
  row.bytes = reinterpret_cast<char *>(umemArray_address(handle)) + index * strides[0];
  return row;
}

/* A list of floats or ints, of those alone: other numbers need checks. */
bool set_row_of_list(Row const &row, PyObject *list) {
  int64_t room[longest_row / sizeof(int64_t)];
  Py_ssize_t count = PyList_Size(list);
  bool is_real = row.type == umemFloat64;
  if (row.rank != 1 || *row.extents != count || !(is_real || row.type == umemInt64)) return false;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *number = PyList_GetItem(list, i);
    int overflow = 0;
    if (is_real && PyFloat_CheckExact(number)) {
      double value = PyFloat_AsDouble(number);
      memcpy(&room[i], &value, sizeof value);
    } else if (!is_real && PyLong_CheckExact(number)) {
      room[i] = PyLong_AsLongLongAndOverflow(number, &overflow);
    } else {
      return false;
    }
    if (overflow) return false;
  }
  memcpy(row.bytes, room, row.size);
  return true;
}

bool has_row(Py_buffer const &view, Row const &row) {
  return view.ndim == row.rank && static_cast<size_t>(view.len) == row.size &&
         !memcmp(view.shape, row.extents, static_cast<size_t>(row.rank) * sizeof *row.extents) &&
         PyBuffer_IsContiguous(&view, 'C');
}

/* A new array in RAM of a list of numbers; None for what needs more checks. */
nb::object from_list(nb::handle value) {
  List list;
  if (!list.read(value.ptr(), 0) || list.shape.rank == 0) return nb::none();
  nb::object made = new_array(list.shape, list.type(), default_host(), false);
  void *out = reinterpret_cast<void *>(umemArray_address(Look(array_of(made)).get()));
  return list.write(list.type(), out) ? made : nb::none();
}

} // namespace

bool set_row(Array &array, nb::handle key, nb::handle value) {
  PyObject *o = value.ptr();
  bool is_list = PyList_CheckExact(o);
  if (array.named || !PyLong_CheckExact(key.ptr()) || !(is_list || PyObject_CheckBuffer(o)))
    return false;
  Row row = find_row(array, key);
  if (!row.bytes) return false;
  if (is_list) return set_row_of_list(row, o);
  Buffer buffer(value); /* which may run Python: the array may be another one then */
  row = find_row(array, key);
  if (!row.bytes || buffer.type() != row.type || !has_row(buffer.view(), row)) return false;
  memmove(row.bytes, buffer.view().buf, row.size);
  return true;
}

bool assign_given(Array &dst, nb::handle value) {
  PyObject *o = value.ptr();
  if (is_stored(element_of(dst))) return false;
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return assign_list(dst, value);
  return PyObject_CheckBuffer(o) && assign_buffer(dst, value);
}

static void end_buffer(void *buffer) {
  if (!Py_IsInitialized()) return;
  Gil gil;
  delete static_cast<Buffer *>(buffer);
}

umemArray *share_buffer(nb::handle object) {
  std::unique_ptr<Buffer> buffer(new Buffer(object));
  umemElementType type = buffer->type();
  if (!type) return nullptr;
  Py_buffer const &view = buffer->view();
  umemArray *handle = nullptr;
  array_call(true, [&](umemStatusType *status) {
    handle = umemArray_take(
        place_of(default_host()).context->ctx, reinterpret_cast<uintptr_t>(view.buf), type,
        view.ndim, reinterpret_cast<int64_t const *>(view.shape),
        reinterpret_cast<int64_t const *>(view.strides), end_buffer, buffer.get(), status);
    umemArray_set_read_only(handle, view.readonly, status);
  });
  static_cast<void>(buffer.release()); /* the array ends it */
  return handle;
}

void bind_given(nb::module_ &m) {
  m.def("_from_list", from_list, nb::arg("value"),
        nb::sig("def _from_list(value: object) -> ArrayType | None"),
        "A new array in RAM of nested lists of bools, ints and floats; None for others.");
}
