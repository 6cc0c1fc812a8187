/* array_index.cpp - indices and slices, and views of other shapes. */
#include "array.h"

/* A handle on the way from an array to a view of it. */
class Views {
  umemArray *now_;
  bool owned_ = false;

public:
  explicit Views(umemArray *array) : now_(array) {}
  ~Views() {
    if (owned_) umemArray_release(now_);
  }
  Views(Views const &) = delete;
  Views &operator=(Views const &) = delete;
  umemArray *now() const { return now_; }
  void step(umemArray *next) {
    if (!next) raise_failure();
    if (owned_) umemArray_release(now_);
    now_ = next;
    owned_ = true;
  }
  umemArray *take() {
    if (!owned_) step(umemArray_alias(now_, nullptr));
    owned_ = false;
    return now_;
  }
};

/* How many of the parts of a key stand for a dimension. has_rest: there is an ellipsis. */
static int count_dimensions(nb::tuple const &key, bool &has_rest) {
  int count = 0;
  for (nb::handle part : key) {
    if (part.ptr() == Py_Ellipsis) {
      if (has_rest) raise(umemIndexError, "an index can have only one ellipsis (...)");
      has_rest = true;
    } else if (!part.is_none()) {
      count++;
    }
  }
  return count;
}

static void apply_slice(Views &view, int dim, nb::handle part) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(part.ptr(), &start, &stop, &step) < 0) throw nb::python_error();
  Py_ssize_t extent = umemArray_extent(view.now(), dim);
  Py_ssize_t count = PySlice_AdjustIndices(extent, &start, &stop, step);
  if (start == 0 && step == 1 && count == extent) return;
  view.step(umemArray_slice(view.now(), dim, count ? start : 0, count, count ? step : 1, nullptr));
}

static void apply_index(Views &view, int dim, nb::handle part) {
  if (PyBool_Check(part.ptr()) || !PyIndex_Check(part.ptr()))
    raise(umemIndexError,
          "an index is an integer, a slice, an ellipsis, None, or a mask or list of integers, not "
          "%s",
          type_text(part).c_str());
  int64_t index = to_index(part, "an index", umemIndexError, umemIndexError),
          extent = umemArray_extent(view.now(), dim);
  if (index < -extent || index >= extent)
    raise(umemIndexError, "index %lld is outside of dimension %d with %lld elements",
          static_cast<long long>(index), dim, static_cast<long long>(extent));
  view.step(umemArray_select(view.now(), dim, index < 0 ? index + extent : index, nullptr));
}

/* Puts dimensions of one element where new has a bit. */
static void add_dimensions(Views &view, uint64_t added, int rank) {
  if (rank > UMEM_MAX_RANK)
    raise(umemIndexError, "arrays have at most %d dimensions", UMEM_MAX_RANK);
  int64_t extents[UMEM_MAX_RANK];
  for (int k = 0, old = 0; k < rank; k++)
    extents[k] = added >> k & 1 ? 1 : umemArray_extent(view.now(), old++);
  view.step(umemArray_reshape(view.now(), rank, extents, nullptr));
}

nb::object index_array(Array &array, nb::handle key) {
  nb::tuple parts = PyTuple_Check(key.ptr()) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
  Hold hold(array);
  Views view(hold.get());
  bool has_rest = false;
  int rank = umemArray_rank(hold.get()), named = count_dimensions(parts, has_rest), dim = 0,
      shown = 0;
  uint64_t added = 0;
  if (named > rank)
    raise(umemIndexError, "too many indices: the array has %d dimensions, the key %d", rank, named);
  for (nb::handle part : parts) {
    if (part.is_none()) {
      if (shown >= UMEM_MAX_RANK) raise(umemIndexError, "too many new dimensions");
      added |= uint64_t{1} << shown++;
    } else if (part.ptr() == Py_Ellipsis) {
      dim += rank - named;
      shown += rank - named;
    } else if (PySlice_Check(part.ptr())) {
      apply_slice(view, dim++, part);
      shown++;
    } else {
      apply_index(view, dim, part); /* this dimension goes away */
    }
  }
  if (added) add_dimensions(view, added, umemArray_rank(view.now()) + __builtin_popcountll(added));
  return wrap_view(view.take(), hold, array);
}

/* ---- other shapes ---- */

/* Replaces an extent of -1 by what the other extents leave. */
static void infer(Shape &shape, int64_t elements) {
  int unknown = -1;
  int64_t others = 1;
  for (int k = 0; k < shape.rank; k++) {
    if (shape.extents[k] != -1) {
      if (__builtin_mul_overflow(others, shape.extents[k], &others))
        raise(umemValueError, "the shape has too many elements");
    } else if (unknown >= 0) {
      raise(umemValueError, "only one extent of a shape can be -1");
    } else {
      unknown = k;
    }
  }
  if (unknown < 0) return;
  if (others <= 0 || elements % others)
    raise(umemValueError, "%lld elements do not fit into this shape",
          static_cast<long long>(elements));
  shape.extents[unknown] = elements / others;
}

static nb::object reshape(Array &array, nb::args arguments) {
  nb::object given = arguments.size() == 1 ? nb::object(arguments[0]) : nb::object(arguments);
  Shape shape(given);
  Hold hold(array);
  umemArray *view;
  infer(shape, umemArray_elements(hold.get()));
  array_call(true, [&](umemStatusType *status) {
    view = umemArray_reshape(hold.get(), shape.rank, shape.extents, status);
  });
  return wrap_view(view, hold, array);
}

static nb::object transpose(Array &array, nb::args arguments) {
  nb::object given = arguments.size() == 1 ? nb::object(arguments[0]) : nb::object(arguments);
  Hold hold(array);
  umemArray *view;
  int axes[UMEM_MAX_RANK], rank = umemArray_rank(hold.get());
  bool reverses = arguments.size() == 0 || given.is_none();
  if (!reverses) {
    Shape order(given);
    if (order.rank != rank)
      raise(umemValueError, "%d axes for an array of %d dimensions", order.rank, rank);
    for (int k = 0; k < rank; k++) {
      int64_t axis = order.extents[k] < 0 ? order.extents[k] + rank : order.extents[k];
      axes[k] = axis >= 0 && axis < rank ? static_cast<int>(axis) : -1;
    }
  }
  array_call(true, [&](umemStatusType *status) {
    view = umemArray_permute(hold.get(), reverses ? nullptr : axes, status);
  });
  return wrap_view(view, hold, array);
}

Py_ssize_t count_rows(PyObject *self) {
  Py_ssize_t count = -1;
  nb::object none = nb::steal(method_call(self, [&](Array &array) {
    Look look(array);
    if (umemArray_rank(look.get()) == 0)
      raise(umemTypeError, "an array without dimensions has no length");
    count = umemArray_extent(look.get(), 0);
    return nb::none();
  }));
  return count;
}

/* ---- masks and lists of integers ---- */

static PyObject *read_chosen, *write_chosen; /* functions of (array, key) and (array, key, value) */

/* Whether a part of a key chooses elements one by one: all but integers, slices, ..., None and
 * texts. */
static bool is_chosen(nb::handle part) {
  PyObject *o = part.ptr();
  if (PyBool_Check(o) || PyList_Check(o) || PyTuple_Check(o)) return true;
  if (PyLong_Check(o) || PySlice_Check(o) || o == Py_Ellipsis || o == Py_None) return false;
  nb::object shape = nb::getattr(part, "shape", nb::none());
  if (!PyTuple_Check(shape.ptr()))
    return PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o);
  return PyTuple_Size(shape.ptr()) != 0 || kind_of_number(part) == truthNumber;
}

static bool has_chosen(nb::handle key) {
  if (!PyTuple_Check(key.ptr())) return is_chosen(key);
  for (nb::handle part : nb::borrow<nb::tuple>(key))
    if (is_chosen(part)) return true;
  return false;
}

PyObject *get_items(PyObject *self, PyObject *key) {
  return method_call(self, [&](Array &array) {
    if (!has_chosen(key)) return index_array(array, key);
    nb::object rows = read_rows(array, key);
    return rows.is_valid() ? rows : call_python(read_chosen, nb::handle(self), nb::handle(key));
  });
}

/* For the functions of C that take a sequence. */
PyObject *get_row(PyObject *self, Py_ssize_t index) {
  return method_call(self, [&](Array &array) { return index_array(array, nb::int_(index)); });
}

bool write_chosen_items(nb::handle self, nb::handle key, nb::handle value) {
  if (!has_chosen(key)) return false;
  if (write_rows(array_of(self), key, value)) return true;
  nb::object none = call_python(write_chosen, self, key, value);
  return true;
}

void bind_index(nb::module_ &m, nb::class_<Array> &type) {
  m.def("_set_indices", [](nb::object read, nb::object write) {
    read_chosen = read.release().ptr();
    write_chosen = write.release().ptr();
  });
  type.def("reshape", reshape, nb::arg("shape"),
           nb::sig("def reshape(self, *shape: int | collections.abc.Sequence[int]) -> "
                   "ArrayType[Element]"),
           "A view of the same elements in C order with another shape; one extent may be -1.\n\n"
           "Raises umem.ValueError where the strides allow no such view: then copy() has one.")
      .def("transpose", transpose, nb::arg("axes"),
           nb::sig("def transpose(self, *axes: int | collections.abc.Sequence[int] | None) -> "
                   "ArrayType[Element]"),
           "A view with the dimensions in another order; without axes reversed.");
}
