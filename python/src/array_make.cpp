/* array_make.cpp - new arrays. */
#include "array.h"

#include <algorithm>
#include <cmath>

nb::object new_array(Shape const &shape, ElementType const &type, nb::handle place, bool zero) {
  Use context = place_of(place).open();
  size_t bytes = zero ? SIZE_MAX : 0; /* zeros may take long; allocation of RAM does not */
  umemArray *handle;
  array_call(is_short(context.get(), bytes), [&](umemStatusType *status) {
    handle = (zero ? umemArray_zeros : umemArray_create)(context->ctx, type.type, shape.rank,
                                                         shape.extents, nullptr, status);
    umemArray_set_keeps(handle, true);
  });
  return with_name(wrap_array(handle, context.get(), place), type);
}

template <bool zero> static nb::object make(nb::handle shape, nb::handle dtype, nb::handle place) {
  nb::object where = zero && !place.is_none() ? find_new_place(place) : place_or_host(place);
  return new_array(Shape(shape), element_of(dtype), where, zero);
}

/* An array over bytes of a place: a part of a file, or memory of another library that owner keeps
 * alive. */
void drop_owner(void *owner) {
  if (!Py_IsInitialized()) return;
  Gil gil;
  Py_DECREF(static_cast<PyObject *>(owner));
}

umemArray *keep_read_only(umemArray *handle) {
  umemStatusType status = umemOK;
  umemArray_set_read_only(handle, true, &status);
  umemArray *view = umemArray_alias(handle, &status);
  umemArray_release(handle);
  if (!view) raise_failure();
  return view;
}

static nb::object borrow(nb::handle place, uintptr_t address, nb::handle dtype, nb::handle shape,
                         nb::object strides, nb::object owner, bool read_only) {
  Use context = place_of(place).open();
  Shape extents(shape);
  int64_t steps[UMEM_MAX_RANK];
  if (!strides.is_none()) {
    Shape given(strides);
    if (given.rank != extents.rank)
      raise(umemValueError, "there are not as many strides as extents");
    for (int k = 0; k < given.rank; k++) steps[k] = given.extents[k];
  }
  ElementType type = element_of(dtype);
  umemArray *handle = nullptr;
  array_call(true, [&](umemStatusType *status) {
    handle = umemArray_take(context->ctx, address, type.type, extents.rank, extents.extents,
                            strides.is_none() ? nullptr : steps, drop_owner, owner.ptr(), status);
  });
  owner.release();
  return with_name(wrap_array(read_only ? keep_read_only(handle) : handle, context.get(), place),
                   type);
}

/* The address of the first byte of a buffer; object holds the buffer. */
static uintptr_t buffer_address(nb::handle object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDES) != 0) throw nb::python_error();
  uintptr_t address = reinterpret_cast<uintptr_t>(view.buf);
  PyBuffer_Release(&view);
  return address;
}

/* ---- numbers that follow one another ---- */

enum : int64_t { chunk = 65536 }; /* elements that are made in RAM at a time */

template <class T> static void fill_range(umemArray *array, umemElementType type, T start, T step) {
  std::vector<T> numbers(static_cast<size_t>(std::min<int64_t>(chunk, umemArray_elements(array))));
  void *ram = place_of(default_host()).context->ctx;
  int64_t all = umemArray_elements(array);
  step = (start + step) - start; /* as NumPy does, whose numbers these are */
  for (int64_t done = 0; done < all; done += chunk) {
    int64_t now = std::min<int64_t>(chunk, all - done);
    for (int64_t i = 0; i < now; i++)
      numbers[static_cast<size_t>(i)] = static_cast<T>(start + static_cast<T>(done + i) * step);
    array_call(false, [&](umemStatusType *status) {
      umemArray *part = umemArray_borrow(ram, reinterpret_cast<uintptr_t>(numbers.data()), type, 1,
                                         &now, nullptr, status);
      umemArray_convert(array, part, done, 0, now, status);
      umemArray_release(part);
    });
  }
}

static nb::object arange(nb::handle start, nb::handle stop, nb::handle step, bool whole,
                         nb::handle dtype, nb::handle place) {
  double distance = PyFloat_AsDouble(stop.ptr()) - PyFloat_AsDouble(start.ptr());
  double each = PyFloat_AsDouble(step.ptr());
  if (PyErr_Occurred()) throw nb::python_error();
  double count = std::ceil(distance / each);
  int64_t first = 0, pace = 0;
  if (whole) { /* exactly, also beyond 2^53 */
    first = to_index(start, "start");
    pace = to_index(step, "step");
    __int128 between = __int128{to_index(stop, "stop")} - first;
    __int128 rest = between + (pace > 0 ? pace - 1 : pace + 1);
    count = between == 0 || (between > 0) != (pace > 0) ? 0 : static_cast<double>(rest / pace);
  }
  if (!(count < 9e18)) raise(umemValueError, "arange has too many elements");
  Shape shape(nb::int_(count > 0 ? static_cast<int64_t>(count) : 0));
  ElementType const type = element_of(dtype);
  if (shape.extents[0]) { /* all fit if the first and the last one do */
    check_fits(start, type.type);
    check_fits(start + step * nb::int_(shape.extents[0] - 1), type.type);
  }
  nb::object array = new_array(shape, type, place_or_host(place), false);
  Hold hold(array_of(array)); /* another thread may close the place */
  if (whole)
    fill_range<int64_t>(hold.get(), umemInt64, first, pace);
  else
    fill_range<double>(hold.get(), umemFloat64, PyFloat_AsDouble(start.ptr()), each);
  return array;
}

/* A block of a file for the bytes of a header; its address. */
static uintptr_t take_block(Place &place, size_t nbytes) {
  Use context = place.open();
  return unlocked([&] { return umem_alloc(context->ctx, nbytes); });
}

/* Resizes a block of a named file where it is: free and alloc change no byte there. Free ranges
 * before the block are taken for that time. False, and nothing has changed, if what is behind the
 * block is not free. */
static bool resize_block(Place &place, uintptr_t block, size_t before, size_t after) {
  Use context = place.open();
  std::vector<uintptr_t> others;
  return unlocked([&] {
    void *ctx = context->ctx;
    umem_free(ctx, block);
    uintptr_t found = umem_alloc(ctx, after);
    while (found < block && others.size() < 1000) {
      others.push_back(found);
      found = umem_alloc(ctx, after);
    }
    bool is_there = found == block;
    if (!is_there && found != umem_null(ctx)) umem_free(ctx, found);
    for (size_t tries = 0; !is_there && found != block && tries < 1000; tries++) {
      found = umem_alloc(ctx, before);
      if (found != block) others.push_back(found);
    }
    for (uintptr_t other : others) umem_free(ctx, other);
    return is_there;
  });
}

void bind_make(nb::module_ &m) {
  m.def("empty", make<false>, nb::arg("shape").none(), nb::arg("dtype").none() = nb::none(),
        nb::arg("place").none() = nb::none(),
        nb::sig("def empty(shape: int | collections.abc.Sequence[int], dtype: object = None, "
                "place: PlaceType | str | None = None) -> ArrayType"),
        "See umem.empty. Without a place the array is in RAM.");
  m.def("zeros", make<true>, nb::arg("shape").none(), nb::arg("dtype").none() = nb::none(),
        nb::arg("place").none() = nb::none(),
        nb::sig("def zeros(shape: int | collections.abc.Sequence[int], dtype: object = None, "
                "place: PlaceType | str | None = None) -> ArrayType"),
        "See umem.zeros. Without a place the array is in RAM.");
  m.def(
      "_borrow", borrow, nb::arg("place"), nb::arg("address"), nb::arg("dtype"), nb::arg("shape"),
      nb::arg("strides").none(), nb::arg("owner").none(), nb::arg("read_only"),
      nb::sig(
          "def _borrow(place: Place, address: int, dtype: object, shape: object, strides: object, "
          "owner: object, read_only: bool) -> ArrayType"));
  m.def("_buffer_address", buffer_address);
  m.def("_arange", arange, nb::arg("start"), nb::arg("stop"), nb::arg("step"), nb::arg("whole"),
        nb::arg("dtype"), nb::arg("place").none(),
        nb::sig("def _arange(start: float, stop: float, step: float, whole: bool, dtype: object, "
                "place: Place | None) -> ArrayType"));
  m.def("_take_block", take_block);
  m.def("_resize_block", resize_block);
}
