/* array_value.cpp - Python numbers as elements, and elements as Python numbers. */
#include "array.h"

#include <cmath>
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

/* ---- what kind of number an object is ---- */

/* Whether the class of an object has a method. */
static bool has_method(nb::handle object, char const *name) {
  return nb::hasattr(object.type(), name);
}

static bool has_dimensions(nb::handle object) {
  nb::object shape = nb::getattr(object, "shape", nb::none());
  return !PyTuple_Check(shape.ptr()) || PyTuple_Size(shape.ptr()) != 0;
}

static NumberKind kind_of_type(umemElementType type) {
  if (umem_element_lanes(type) != 1) return noNumber;
  if (umem_element_is_complex(type)) return complexNumber;
  if (umem_element_is_floating_point(type)) return realNumber;
  return umem_element_code(type) == umemCodeBool ? truthNumber : wholeNumber;
}

/* By the type of a value of NumPy, PyTorch or umem itself. */
static NumberKind kind_of_dtype(nb::handle dtype) {
  static char const letters[] = "biufc";
  static NumberKind const kinds[] = {truthNumber, wholeNumber, wholeNumber, realNumber,
                                     complexNumber};
  nb::object kind = nb::getattr(dtype, "kind", nb::none());
  std::string const letter = nb::isinstance<nb::str>(kind) ? nb::cast<std::string>(kind) : "V";
  if (letter.size() == 1)
    if (char const *found = strchr(letters, letter[0])) return kinds[found - letters];
  if (letter != "V") return noNumber; /* a date, a text, an object */
  try {
    return kind_of_type(element_of(dtype).type); /* such as bfloat16, and all of PyTorch */
  } catch (nb::python_error &) {
    return noNumber;
  }
}

NumberKind kind_of_number(nb::handle object) {
  PyObject *o = object.ptr();
  if (PyBool_Check(o)) return truthNumber;
  if (PyLong_Check(o)) return wholeNumber;
  if (PyFloat_Check(o)) return realNumber;
  if (PyComplex_Check(o)) return complexNumber;
  nb::object dtype = nb::getattr(object, "dtype", nb::none());
  bool is_array =
      !dtype.is_none() || has_method(object, "__len__") || has_method(object, "__dlpack__");
  if (is_array && has_dimensions(object)) return noNumber;
  if (!dtype.is_none()) return kind_of_dtype(dtype);
  if (PyIndex_Check(o)) return wholeNumber;
  if (has_method(object, "__float__")) return realNumber;
  return has_method(object, "__complex__") ? complexNumber : noNumber;
}

/* ---- numbers as elements ---- */

[[noreturn]] static void refuse_range(nb::handle number, umemElementType type) {
  PyErr_Format(PyExc_OverflowError, "%R does not fit into elements of %S", number.ptr(),
               dtype_of(type).ptr());
  throw nb::python_error();
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
  if (!fits) refuse_range(number, type);
}

static bool is_integer(umemElementType type) {
  unsigned code = umem_element_code(type);
  return code == umemCodeInt || code == umemCodeUInt;
}

/* What a conversion of Python returns, which may be NULL with an exception. */
static nb::object checked(PyObject *object) {
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

static double real_of(nb::handle number) {
  double value = in_python([&] { return PyFloat_AsDouble(number.ptr()); });
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

static Number complex_of(nb::handle number) {
  nb::object value = nb::borrow(number);
  if (!PyComplex_Check(number.ptr()))
    value = call_python(reinterpret_cast<PyObject *>(&PyComplex_Type), number);
  return {{PyComplex_RealAsDouble(value.ptr()), PyComplex_ImagAsDouble(value.ptr())}};
}

/* The part of a number that is whole, as an int of Python. */
static nb::object whole_of(nb::handle number, NumberKind kind, umemElementType type) {
  PyObject *whole = nullptr;
  if (kind == realNumber) {
    double value = real_of(number);
    if (std::isnan(value))
      raise(umemValueError, "NaN cannot be an element of %s",
            nb::cast<std::string>(nb::str(dtype_of(type))).c_str());
    if (std::isinf(value)) refuse_range(number, type);
    return checked(PyLong_FromDouble(value));
  }
  if (PyIndex_Check(number.ptr())) whole = in_python([&] { return PyNumber_Index(number.ptr()); });
  if (!whole) { /* such as a bool of NumPy */
    PyErr_Clear();
    whole = in_python([&] { return PyNumber_Long(number.ptr()); });
  }
  return checked(whole);
}

/* The value as a number of a type that umem converts: its bytes, and the type. */
static umemElementType read_number(nb::handle number, umemElementType type, Number &room) {
  NumberKind kind = kind_of_number(number);
  if (kind == noNumber)
    raise(umemTypeError, "a number is expected, not %s", type_text(number).c_str());
  if (umem_element_is_complex(type)) {
    room = complex_of(number);
    return umemComplex128;
  }
  bool has_both = kind == realNumber && !PyFloat_Check(number.ptr()) &&
                  has_method(number, "__complex__") && !nb::hasattr(number, "dtype");
  if (kind == complexNumber || (has_both && complex_of(number).parts[1] != 0))
    raise(umemTypeError, "elements that are real cannot have a complex value");
  if (is_integer(type)) {
    nb::object whole = whole_of(number, kind, type);
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
    check_range(whole, value, overflow, type);
    unsigned long long large = overflow ? PyLong_AsUnsignedLongLong(whole.ptr()) : 0;
    memcpy(&room, overflow ? static_cast<void *>(&large) : &value, sizeof value);
    return overflow ? umemUInt64 : umemInt64;
  }
  bool is_truth = umem_element_code(type) == umemCodeBool && kind == wholeNumber;
  double value = is_truth ? PyObject_IsTrue(number.ptr()) : real_of(number);
  memcpy(&room, &value, sizeof value);
  return umemFloat64;
}

void check_fits(nb::handle number, umemElementType type) {
  Number room;
  if (is_integer(type)) read_number(number, type, room);
}

/* Without an array for each side: most of what programs set. */
static bool encode_plain(Number const &room, umemElementType from, umemElementType type, void *out,
                         size_t size) {
  if (from == type) {
    memcpy(out, &room, size);
    return true;
  }
  if (type == umemFloat32) {
    double value;
    memcpy(&value, &room, sizeof value);
    float const narrow = static_cast<float>(value);
    memcpy(out, &narrow, sizeof narrow);
    return true;
  }
  bool const is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  if (!is_little || !is_integer(type) || umem_element_bits(type) != 8 * size) return false;
  memcpy(out, &room, size); /* a whole number in the range of the type */
  return true;
}

void encode(nb::handle number, umemElementType type, void *out, size_t size) {
  if (umem_element_lanes(type) != 1 || size > sizeof(Number))
    raise(umemTypeError, "no number of Python can be an element of this type");
  Number room = {};
  umemElementType from = read_number(number, type, room);
  if (encode_plain(room, from, type, out, size)) return;
  Element src(&room, from), dst(out, type);
  array_call(true, [&](umemStatusType *status) {
    umemArray_convert(dst.handle(), src.handle(), 0, 0, 1, status);
  });
}

void fill_array(Array &array, nb::handle number) {
  if (is_stored(element_of(array))) {
    nb::object value = make_source(number, array);
    assign(array, array_of(value));
    return;
  }
  Hold hold(array, true);
  umemArray *handle = hold.get();
  umemElementType type = umemArray_type(handle);
  alignas(16) char value[sizeof(Number)];
  encode(number, type, value, umem_element_size(type));
  array_call(is_short(hold.context(), umemArray_nbytes(handle)),
             [&](umemStatusType *status) { umemArray_fill(handle, value, status); });
}

/* The address of the element that a key of whole numbers names; 0 for another key, and beyond. */
static uintptr_t find_address(umemArray const *handle, nb::handle key) {
  bool is_tuple = PyTuple_CheckExact(key.ptr());
  int rank = umemArray_rank(handle);
  if (rank != (is_tuple ? PyTuple_Size(key.ptr()) : 1) || !rank) return 0;
  int64_t const *extents = umemArray_shape(handle), *strides = umemArray_strides(handle);
  uintptr_t address = umemArray_address(handle);
  for (int k = 0; k < rank; k++) {
    PyObject *part = is_tuple ? PyTuple_GetItem(key.ptr(), k) : key.ptr();
    if (!PyLong_CheckExact(part)) return 0;
    int overflow;
    long long index = PyLong_AsLongLongAndOverflow(part, &overflow);
    if (overflow || index < -extents[k] || index >= extents[k]) return 0;
    index += index < 0 ? extents[k] : 0;
    address += static_cast<uintptr_t>(index * strides[k]);
  }
  return address;
}

bool set_element(Array &array, nb::handle key, nb::handle value) {
  PyObject *number = value.ptr();
  if (array.named || !(PyFloat_CheckExact(number) || PyLong_CheckExact(number))) return false;
  Look look(array, true);
  umemArray *handle = look.get();
  umemElementType type = umemArray_type(handle);
  if (!look.context()->quick || umemArray_is_read_only(handle) || is_stored(type)) return false;
  uintptr_t address = find_address(handle, key);
  if (!address) return false;
  alignas(16) char bytes[sizeof(Number)];
  size_t size = umem_element_size(type);
  encode(value, type, bytes, size);
  memcpy(reinterpret_cast<void *>(address), bytes, size);
  return true;
}

static PyObject *stored_item; /* function of an array whose elements umem only stores */

/* The element with a number in C order. */
static nb::object find_element(Array &array, nb::handle number) {
  int64_t rest = to_index(number, "an index", umemIndexError);
  Shape shape(0, nullptr);
  {
    Hold hold(array);
    int64_t elements = umemArray_elements(hold.get());
    if (rest < -elements || rest >= elements)
      raise(umemIndexError, "index %lld is outside of an array of %lld elements",
            static_cast<long long>(rest), static_cast<long long>(elements));
    rest += rest < 0 ? elements : 0;
    shape = Shape(umemArray_rank(hold.get()), umemArray_shape(hold.get()));
  }
  for (int k = shape.rank - 1; k >= 0; k--) {
    int64_t extent = shape.extents[k];
    shape.extents[k] = rest % extent;
    rest /= extent;
  }
  return index_array(array, shape.tuple());
}

static nb::object only_item(Array &array) {
  if (is_stored(element_of(array))) return call_python(stored_item, nb::find(array));
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

static nb::object item(Array &array, nb::args index) {
  if (!index.size()) return only_item(array);
  nb::object given = index.size() == 1 ? nb::object(index[0]) : nb::object(index);
  bool is_tuple = PyTuple_Check(given.ptr());
  nb::object one = is_tuple ? index_array(array, given) : find_element(array, given);
  return only_item(array_of(one));
}

static double as_double(nb::handle number) {
  double value;
  encode(number, umemFloat64, &value, sizeof value);
  return value;
}

static void random_uniform(Array &array, nb::handle low, nb::handle high, uint64_t seed) {
  check_numbers(array, "random_uniform");
  double const numbers[] = {as_double(low), as_double(high)};
  Hold hold(array, true);
  umemArray *handle = hold.get();
  array_call(is_short(hold.context(), umemArray_nbytes(handle)), [&](umemStatusType *status) {
    umemArray_random_uniform(handle, numbers[0], numbers[1], seed, status);
  });
}

static void random_normal(Array &array, nb::handle mean, nb::handle deviation, uint64_t seed) {
  check_numbers(array, "random_normal");
  double const numbers[] = {as_double(mean), as_double(deviation)};
  Hold hold(array, true);
  umemArray *handle = hold.get();
  array_call(is_short(hold.context(), umemArray_nbytes(handle)), [&](umemStatusType *status) {
    umemArray_random_normal(handle, numbers[0], numbers[1], seed, status);
  });
}

void bind_values(nb::module_ &m, nb::class_<Array> &type) {
  m.def("_set_stored_item", [](nb::object function) { stored_item = function.release().ptr(); });
  m.def(
      "_kind_of_number", [](nb::handle object) { return static_cast<int>(kind_of_number(object)); },
      nb::arg("object").none());
  type.def("fill", fill_array, nb::arg("value").none(),
           nb::sig("def fill(self, value: object) -> None"),
           "Sets all elements to a number of Python, NumPy or others. Raises umem.TypeError for a "
           "complex number in real\n"
           "elements, OverflowError for a number outside of the range of integers, and "
           "umem.ValueError for NaN there.")
      .def("item", item, nb::arg("index"),
           nb::sig("def item(self, *index: int) -> int | float | complex | bool"),
           "An element as a Python number, from any place: the only one, that with an index in C "
           "order, or that with an\nindex for each dimension. Raises umem.ValueError if there are "
           "more and none is named.")
      .def("random_uniform", random_uniform, nb::arg("low") = 0.0, nb::arg("high") = 1.0,
           nb::arg("seed") = 0,
           nb::sig("def random_uniform(self, low: float = 0.0, high: float = 1.0, seed: int = 0) "
                   "-> None"),
           "Sets all elements to numbers that are uniform in [low, high).\n\n"
           "An element depends on the seed and on its index in C order alone: every place and "
           "every machine gives\n"
           "the same numbers (Philox4x32-10). Only floating-point and complex elements.")
      .def("random_normal", random_normal, nb::arg("mean") = 0.0, nb::arg("deviation") = 1.0,
           nb::arg("seed") = 0,
           nb::sig("def random_normal(self, mean: float = 0.0, deviation: float = 1.0, seed: int = "
                   "0) -> None"),
           "Sets all elements to numbers of a normal distribution; otherwise as random_uniform.");
}
