/* array_copy.cpp - assignments and copies, with broadcasting and conversion. */
#include "array.h"
#include "callbacks.h"

#include <cstring>

namespace {

enum : size_t { long_copy = 32 << 20 }; /* bytes from which Ctrl-C should not wait for the end */

/* An array handle that ends with its scope. */
class Handle {
  umemArray *handle_;

public:
  explicit Handle(umemArray *handle) : handle_(handle) {}
  ~Handle() { umemArray_release(handle_); }
  Handle(Handle const &) = delete;
  Handle &operator=(Handle const &) = delete;
  umemArray *get() const { return handle_; }
};

[[noreturn]] void refuse_shapes(umemArray const *dst, umemArray const *src) {
  nb::object to = Shape::tuple(umemArray_rank(dst), umemArray_shape(dst));
  nb::object from = Shape::tuple(umemArray_rank(src), umemArray_shape(src));
  raise(umemValueError, "an array of shape %s does not fit into shape %s",
        nb::cast<std::string>(nb::str(from)).c_str(), nb::cast<std::string>(nb::str(to)).c_str());
}

/* A copy of bytes that Ctrl-C can end. */
void copy_long(umemArray *dst, umemArray *src, umemStatusType *status) {
  Progress progress = {nullptr};
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.progress = Progress::step;
  options.user = &progress;
  *status =
      umem_copy_to_with(umemArray_context(src), umemArray_address(src), umemArray_context(dst),
                        umemArray_address(dst), umemArray_nbytes(src), &options);
}

bool is_long(Hold const &dst, Hold const &src, umemArray *from) {
  return umemArray_nbytes(from) >= long_copy && umemArray_is_c_contiguous(dst.get()) &&
         umemArray_is_c_contiguous(from) && !dst.context()->can(umemOrdered) &&
         !src.context()->can(umemOrdered) && !umemArray_is_read_only(dst.get());
}

/* from: src in the shape of dst. */
void move(Hold const &dst, Hold const &src, umemArray *from, bool saturates) {
  umemArray *to = dst.get();
  bool keeps_gil = src.context()->quick && is_short(dst.context(), umemArray_nbytes(to));
  array_call(keeps_gil, [&](umemStatusType *status) {
    if (umemArray_type(to) != umemArray_type(from))
      (saturates ? umemArray_convert : umemArray_convert_wrapping)(to, from, 0, 0,
                                                                   umemArray_elements(to), status);
    else if (is_long(dst, src, from))
      copy_long(to, from, status);
    else
      umemArray_assign(to, from, status);
  });
}

} // namespace

umemArray *broadcast(umemArray const *dst, umemArray *src, Context *context) {
  int rank = umemArray_rank(dst), extra = umemArray_rank(src) - rank;
  int64_t strides[UMEM_MAX_RANK];
  for (int k = 0; k < extra; k++)
    if (umemArray_extent(src, k) != 1) refuse_shapes(dst, src);
  for (int k = 0; k < rank; k++) {
    int from = k + extra;
    int64_t extent = from < 0 ? 1 : umemArray_extent(src, from);
    if (extent != 1 && extent != umemArray_extent(dst, k)) refuse_shapes(dst, src);
    strides[k] = extent == 1 ? 0 : umemArray_stride(src, from);
  }
  return umemArray_borrow(context->ctx, umemArray_address(src), umemArray_type(src), rank,
                          umemArray_shape(dst), strides, nullptr);
}

/* function of (dst, src), which converts elements as NumPy does */
static PyObject *element_converter;
static PyObject *source_maker; /* function of (value, dtype) */

nb::object make_source(nb::handle value, Array &array) {
  return call_python(source_maker, value, dtype_of(array));
}

/* Whether umem assigns one to the other by itself. */
static bool is_assignable(ElementType const &to, ElementType const &from) {
  if (to.named.is_valid() || from.named.is_valid())
    return to.named.is_valid() && from.named.is_valid() && to.named.equal(from.named);
  return to.type == from.type ||
         (!is_stored(to) && !is_stored(from) &&
          umem_element_is_complex(to.type) == umem_element_is_complex(from.type));
}

void assign(Array &dst, Array &src, bool saturates) {
  if (!is_assignable(element_of(dst), element_of(src))) {
    nb::object none = call_python(element_converter, nb::find(dst), nb::find(src));
    return;
  }
  Hold to(dst, true), from(src);
  if (umemArray_elements(to.get()) == 0 && umemArray_is_same_shape(to.get(), from.get())) return;
  if (to.memory() == from.memory() &&
      umemArray_address(to.get()) == umemArray_address(from.get()) &&
      umemArray_is_matching(to.get(), from.get(), true))
    return;
  if (umemArray_is_same_shape(to.get(), from.get())) {
    move(to, from, from.get(), saturates);
    return;
  }
  Call call;
  Handle wide(broadcast(to.get(), from.get(), from.context()));
  call.end();
  move(to, from, wide.get(), saturates);
}

nb::object copy_array(Array &src, nb::handle place, ElementType const &type, bool saturates) {
  Hold from(src);
  Shape shape(umemArray_rank(from.get()), umemArray_shape(from.get()));
  nb::object copy = new_array(shape, type, place, false);
  if (umemArray_elements(from.get())) assign(array_of(copy), src, saturates);
  return copy;
}

static nb::object copy_to_place(Array &array, nb::handle place) {
  nb::object where = place_of_result(array, place);
  return copy_array(array, where, element_of(array));
}

/* Whether an array on one place is on the other one, too: the same place, or the same RAM. */
static bool is_same_ram(Context *one, Context *other) {
  return one == other || (!strcmp(one->kind, "host") && !strcmp(other->kind, "host") &&
                          umem_is_same_device(one->ctx, other->ctx));
}

static nb::object to_place(nb::handle_t<Array> self, nb::handle place) {
  Array &array = array_of(self);
  nb::object where = find_new_place(place);
  Hold hold(array);
  if (is_same_ram(hold.context(), place_of(where).open().get())) return nb::borrow(self);
  return copy_array(array, where, element_of(array));
}

static nb::object as_type(Array &array, nb::handle dtype, nb::handle place, bool saturates) {
  nb::object where = place_of_result(array, place);
  Hold hold(array);
  return copy_array(array, where, element_of(dtype), saturates);
}

static void assign_items(nb::handle self, Array &array, nb::handle key, nb::handle value) {
  if (set_element(array, key, value) || set_row(array, key, value)) return;
  if (write_chosen_items(self, key, value)) return;
  nb::object part = index_array(array, key);
  Array &dst = array_of(part);
  if (Array *src = find_array(value)) {
    assign(dst, *src);
  } else if (assign_given(dst, value)) {
    return;
  } else if (kind_of_number(value) != noNumber) {
    fill_array(dst, value);
  } else {
    nb::object made = make_source(value, dst);
    assign(dst, array_of(made));
  }
}

int set_items(PyObject *self, PyObject *key, PyObject *value) {
  nb::object done = nb::steal(method_call(self, [&](Array &array) {
    if (!value) raise(umemTypeError, "elements of an array cannot be deleted");
    assign_items(self, array, key, value);
    return nb::none();
  }));
  return done.is_valid() ? 0 : -1;
}

void bind_copies(nb::module_ &m, nb::class_<Array> &type) {
  type.def("copy", copy_to_place, nb::arg("place").none() = nb::none(),
           nb::sig("def copy(self, place: PlaceType | str | None = None) -> ArrayType[Element]"),
           "A new array in C order with the same elements, on the place that is named.\n\n"
           "Without one it is on the place of the array; but in RAM if that is a file, a mapped "
           "file, "
           "shared memory or\n"
           "another process: a result never lands in a file that nobody has named.")
      .def(
          "_place_of_result", [](Array &array) { return place_of_result(array, nb::none()); },
          nb::sig("def _place_of_result(self) -> PlaceType"))
      .def("to", to_place, nb::arg("place"),
           nb::sig("def to(self, place: PlaceType | str) -> ArrayType[Element]"),
           "The array on a place: itself if it is there already, else a new one in C order.\n\n"
           "A text that names a file makes it. If there is one already, the text must say a mode, "
           "else "
           "umem.FileExistsError is raised:\nmode=w+ replaces the file, mode=a+ writes behind its "
           "arrays.")
      .def("_astype", as_type, nb::arg("dtype"), nb::arg("place").none(), nb::arg("saturates"),
           nb::sig(
               "def _astype(self, dtype: object, place: PlaceType | str | None, saturates: bool) "
               "-> ArrayType"));
  m.def("_set_source", [](nb::object make, nb::object between) {
    source_maker = make.release().ptr();
    element_converter = between.release().ptr();
  });
}
