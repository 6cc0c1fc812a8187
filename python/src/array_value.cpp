/* array_value.cpp - Python numbers as elements, and elements as Python numbers. */
#include "array.h"

#include <cstring>

/* Room for a number of any type that has one in Python. */
struct alignas(16) Number {
  double parts[2];
};

static void *ram() { return place_of(default_host()).context->ctx; }

/* One element of a type as an array: for conversions. */
class Element {
  umemArray *handle_;

public:
  Element(void *bytes, umemElementType type)
      : handle_(umemArray_borrow(ram(), reinterpret_cast<uintptr_t>(bytes), type, 0, nullptr,
                                 nullptr, nullptr)) {
    if (!handle_) raise_failure();
  }
  ~Element() { umemArray_release(handle_); }
  Element(Element const &) = delete;
  Element &operator=(Element const &) = delete;
  umemArray *handle() const { return handle_; }
};

bool is_number(nb::handle object) {
  PyObject *o = object.ptr();
  if (PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o)) return true;
  if (PyObject_CheckBuffer(o) && !nb::hasattr(object, "__index__") &&
      !nb::hasattr(object, "__float__"))
    return false;
  bool has_shape = nb::hasattr(object, "__len__") || nb::hasattr(object, "__dlpack__");
  if (has_shape && (!nb::hasattr(object, "shape") || nb::len(nb::getattr(object, "shape")) != 0))
    return false;
  return PyIndex_Check(o) || nb::hasattr(object, "__float__") || nb::hasattr(object, "__complex__");
}

/* number: a whole one; value: it, unless there is an overflow. */
static void check_range(nb::handle number, long long value, int overflow, umemElementType type) {
  unsigned bits = umem_element_bits(type);
  bool fits = true;
  if (umem_element_code(type) == umemCodeInt) {
    long long limit = bits < 64 ? 1LL << (bits - 1) : 0;
    fits = !overflow && (bits == 64 || (value >= -limit && value < limit));
  } else if (umem_element_code(type) == umemCodeUInt && !overflow) {
    fits = value >= 0 && (bits == 64 || value < 1LL << bits);
  } else if (umem_element_code(type) == umemCodeUInt) {
    PyObject *shifted = PyNumber_Rshift(number.ptr(), nb::int_(64).ptr());
    fits = overflow > 0 && bits == 64 && shifted && PyObject_Not(shifted) == 1;
    Py_XDECREF(shifted);
  }
  if (fits) return;
  PyErr_Format(PyExc_OverflowError, "%R does not fit into elements of %S", number.ptr(),
               dtype_of(type).ptr());
  throw nb::python_error();
}

static bool is_integer(umemElementType type) {
  unsigned code = umem_element_code(type);
  return code == umemCodeInt || code == umemCodeUInt;
}

/* The value as a number of a type that umem converts: its bytes, and the type. */
static umemElementType read_number(nb::handle number, umemElementType type, Number &room) {
  if (PyIndex_Check(number.ptr()) && is_integer(type)) {
    nb::object whole = nb::steal(PyNumber_Index(number.ptr()));
    if (!whole.is_valid()) throw nb::python_error();
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
    check_range(whole, value, overflow, type);
    unsigned long long large = overflow ? PyLong_AsUnsignedLongLong(whole.ptr()) : 0;
    memcpy(&room, overflow ? static_cast<void *>(&large) : &value, sizeof value);
    return overflow ? umemUInt64 : umemInt64;
  }
  bool is_complex = umem_element_is_complex(type);
  if (is_complex || PyComplex_Check(number.ptr())) {
    if (!is_complex) raise(umemTypeError, "elements that are real cannot have a complex value");
    double real = PyComplex_RealAsDouble(number.ptr()), imaginary = 0;
    if (!PyErr_Occurred()) imaginary = PyComplex_ImagAsDouble(number.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    room = {{real, imaginary}};
    return umemComplex128;
  }
  double value = PyFloat_AsDouble(number.ptr());
  if (PyErr_Occurred()) throw nb::python_error();
  memcpy(&room, &value, sizeof value);
  return umemFloat64;
}

void encode(nb::handle number, umemElementType type, void *out, size_t size) {
  if (umem_element_lanes(type) != 1 || size > sizeof(Number))
    raise(umemTypeError, "no number of Python can be an element of this type");
  Number room = {};
  umemElementType from = read_number(number, type, room);
  if (from == type) {
    memcpy(out, &room, size);
    return;
  }
  Element src(&room, from), dst(out, type);
  array_call(true, [&](umemStatusType *status) {
    umemArray_convert(dst.handle(), src.handle(), 0, 0, 1, status);
  });
}

void fill_array(Array &array, nb::handle number) {
  Hold hold(array, true);
  umemArray *handle = hold.get();
  umemElementType type = umemArray_type(handle);
  alignas(16) char value[sizeof(Number)];
  encode(number, type, value, umem_element_size(type));
  array_call(is_short(hold.context(), umemArray_nbytes(handle)),
             [&](umemStatusType *status) { umemArray_fill(handle, value, status); });
}

static nb::object item(Array &array) {
  Hold hold(array);
  umemArray *handle = hold.get();
  if (umemArray_elements(handle) != 1)
    raise(umemValueError, "item() needs an array of one element; this one has %lld",
          static_cast<long long>(umemArray_elements(handle)));
  umemElementType type = umemArray_type(handle);
  unsigned code = umem_element_code(type);
  bool is_unsigned = code == umemCodeUInt || code == umemCodeBool, is_signed = code == umemCodeInt;
  umemElementType to = umem_element_is_complex(type) ? umemComplex128
                       : is_signed                   ? umemInt64
                       : is_unsigned                 ? umemUInt64
                                                     : umemFloat64;
  Number room = {};
  Element dst(&room, to);
  array_call(hold.context()->quick, [&](umemStatusType *status) {
    umemArray_convert(dst.handle(), handle, 0, 0, 1, status);
  });
  int64_t whole;
  memcpy(&whole, &room, sizeof whole);
  if (code == umemCodeBool) return nb::bool_(whole != 0);
  if (is_signed) return nb::int_(whole);
  if (is_unsigned) return nb::int_(static_cast<uint64_t>(whole));
  if (to == umemFloat64) return nb::float_(room.parts[0]);
  return nb::steal(PyComplex_FromDoubles(room.parts[0], room.parts[1]));
}

static void random_uniform(Array &array, double low, double high, uint64_t seed) {
  Hold hold(array, true);
  umemArray *handle = hold.get();
  array_call(is_short(hold.context(), umemArray_nbytes(handle)), [&](umemStatusType *status) {
    umemArray_random_uniform(handle, low, high, seed, status);
  });
}

static void random_normal(Array &array, double mean, double deviation, uint64_t seed) {
  Hold hold(array, true);
  umemArray *handle = hold.get();
  array_call(is_short(hold.context(), umemArray_nbytes(handle)), [&](umemStatusType *status) {
    umemArray_random_normal(handle, mean, deviation, seed, status);
  });
}

void bind_values(nb::class_<Array> &type) {
  type.def("fill", fill_array, nb::arg("value"),
           "Sets all elements to a number. Raises OverflowError for an integer that does not fit.")
      .def("item", item, nb::sig("def item(self) -> int | float | complex | bool"),
           "The only element as a Python number, from any place. Raises umem.ValueError if there "
           "are more.")
      .def("random_uniform", random_uniform, nb::arg("low") = 0.0, nb::arg("high") = 1.0,
           nb::arg("seed") = 0,
           "Sets all elements to numbers that are uniform in [low, high).\n\n"
           "An element depends on the seed and on its index in C order alone: every place and "
           "every machine gives\n"
           "the same numbers (Philox4x32-10). Only floating-point and complex elements.")
      .def("random_normal", random_normal, nb::arg("mean") = 0.0, nb::arg("deviation") = 1.0,
           nb::arg("seed") = 0,
           "Sets all elements to numbers of a normal distribution; otherwise as random_uniform.");
}
