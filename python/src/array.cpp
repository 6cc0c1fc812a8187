/* array.cpp - the life of arrays, and what they are. */
#include "array.h"
#include "module.h"

/* ---- life ---- */

static PyObject *array_class; /* umem.Array */
static PyObject *known_types,
    *find_type; /* dict: object to number; function for those that it lacks */
static PyObject *known_dtypes, *make_dtype; /* dict: number to umem.DType; the same */

/* Gives up a handle and the use of its memory. */
static void end_handle(umemArray *handle, Memory *memory) {
  Call call;
  {
    Unlock unlock(!memory->context->quick);
    umemArray_release(handle);
    memory->drop();
  }
  if (call.failed()) report_failure("the release of a umem.Array");
}

void Array::release() {
  umemArray *ended = handle;
  if (!ended) return;
  Memory *left = memory;
  handle = nullptr;
  memory = nullptr;
  if (previous)
    previous->next = next;
  else
    left->context->arrays = next;
  if (next) next->previous = previous;
  if (left->handed_out) {
    kept = ended;
    kept_memory = left;
  } else {
    end_handle(ended, left);
  }
}

Array::~Array() {
  release();
  if (kept) end_handle(kept, kept_memory);
  Py_XDECREF(place);
}

void release_arrays(Context *context) {
  context->use();
  while (context->arrays) context->arrays->release();
  context->drop();
}

umemArray *Array::use(bool writes) const {
  if (!handle) raise(umemValueError, "the array was released, or its place was closed");
  if (memory->lock && memory->lock != key)
    raise(umemRuntimeError,
          "the array is locked: use the array that lock(), host() or device() has given");
  if (writes && memory->readers)
    raise(umemRuntimeError,
          "the array cannot be written while host() or device() has a copy of it to read");
  return handle;
}

static nb::object wrap(umemArray *handle, Memory *memory, nb::handle place, uint64_t key) {
  nb::object self = nb::inst_alloc(array_class);
  Array *array = new (nb::inst_ptr<Array>(self)) Array;
  array->handle = handle;
  array->memory = memory;
  array->place = nb::borrow(place).release().ptr();
  array->key = key;
  Context *context = memory->context;
  array->next = context->arrays;
  if (array->next) array->next->previous = array;
  context->arrays = array;
  nb::inst_mark_ready(self);
  return self;
}

nb::object wrap_array(umemArray *handle, Context *context, nb::handle place) {
  return wrap(handle, new Memory(context), place, 0);
}

nb::object wrap_view(umemArray *handle, Hold const &of, Array const &array) {
  return wrap(handle, of.memory()->use(), array.place, array.key);
}

Array *find_array(nb::handle object) {
  Array *array;
  return nb::try_cast(object, array) ? array : nullptr;
}

Array &array_of(nb::handle object) {
  Array *array = find_array(object);
  if (!array)
    raise(umemTypeError, "a umem.Array is expected, not %s", nb::type_name(object.type()).c_str());
  return *array;
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<Array>(self)->place);
  return 0;
}

static int clear(PyObject *self) {
  if (nb::inst_ready(self)) Py_CLEAR(nb::inst_ptr<Array>(self)->place);
  return 0;
}

/* ---- shapes and types ---- */

Shape::Shape(int count, int64_t const *numbers) : rank(count) {
  for (int k = 0; k < count; k++) extents[k] = numbers[k];
}

Shape::Shape(nb::handle object) {
  if (PyLong_CheckExact(object.ptr()) || !PySequence_Check(object.ptr())) {
    rank = 1;
    extents[0] = to_index(object, "the shape");
    return;
  }
  for (nb::handle extent : object) {
    if (rank == UMEM_MAX_RANK)
      raise(umemValueError, "arrays have at most %d dimensions", UMEM_MAX_RANK);
    extents[rank++] = to_index(extent, "an extent");
  }
}

nb::tuple Shape::tuple(int rank, int64_t const *numbers) {
  PyObject *tuple = PyTuple_New(rank);
  for (int k = 0; tuple && k < rank; k++)
    PyTuple_SetItem(tuple, k, PyLong_FromLongLong(numbers[k]));
  if (!tuple) throw nb::python_error();
  return nb::steal<nb::tuple>(tuple);
}

umemElementType element_of(nb::handle dtype) {
  if (dtype.is_none()) return umemFloat64;
  PyObject *number = PyDict_GetItemWithError(known_types, dtype.ptr());
  if (number) return static_cast<umemElementType>(PyLong_AsUnsignedLong(number));
  PyErr_Clear(); /* what cannot be hashed names no type: the function says so */
  return nb::cast<umemElementType>(nb::handle(find_type)(dtype));
}

nb::object dtype_of(umemElementType type) {
  nb::int_ number(type);
  PyObject *dtype = PyDict_GetItemWithError(known_dtypes, number.ptr());
  return dtype ? nb::borrow(dtype) : nb::handle(make_dtype)(number);
}

/* ---- what arrays are ---- */

static nb::object place_of_array(Array &array) {
  return array.place ? nb::borrow(array.place) : nb::none();
}

void release_memory(Memory *memory) {
  Context *context = memory->context->use();
  memory->use();
  for (Array *array = context->arrays; array;) {
    Array *following = array->next;
    if (array->memory == memory) array->release();
    array = following;
  }
  memory->drop();
  context->drop();
}

static void release_early(Array &array) {
  if (!array.handle) return;
  array.use(true);
  if (array.memory->exports || array.memory->handed_out)
    raise(umemNotSupportedError,
          "the array cannot be released: NumPy or another library may use its memory");
  release_memory(array.memory);
}

template <auto function> static auto get(Array &array) { return function(array.use()); }

/* A view that a lock with this key does not stop. */
static nb::object with_key(Array &array, uint64_t key) {
  uint64_t own = array.key;
  array.key = key;
  Hold hold(array);
  nb::object view = wrap_view(umemArray_alias(hold.get(), nullptr), hold, array);
  array.key = own;
  return view;
}

static uintptr_t hand_out(Array &array) {
  umemArray *handle = array.use();
  array.memory->handed_out = true;
  return umemArray_address(handle);
}

static void bind_questions(nb::class_<Array> &type) {
  type.def_prop_ro(
          "shape",
          [](Array &a) { return Shape::tuple(umemArray_rank(a.use()), umemArray_shape(a.handle)); },
          nb::for_getter(nb::sig("def shape(self, /) -> tuple[int, ...]")),
          "The numbers of elements along the dimensions.")
      .def_prop_ro(
          "strides",
          [](Array &a) {
            return Shape::tuple(umemArray_rank(a.use()), umemArray_strides(a.handle));
          },
          nb::for_getter(nb::sig("def strides(self, /) -> tuple[int, ...]")),
          "Bytes from element to element along each dimension.")
      .def_prop_ro("ndim", get<umemArray_rank>, "The number of dimensions.")
      .def_prop_ro("size", get<umemArray_elements>, "The number of all elements.")
      .def_prop_ro("nbytes", get<umemArray_nbytes>, "The bytes of all elements, without gaps.")
      .def_prop_ro(
          "itemsize", [](Array &a) { return umem_element_size(umemArray_type(a.use())); },
          "The bytes of one element.")
      .def_prop_ro(
          "dtype", [](Array &a) { return dtype_of(umemArray_type(a.use())); },
          nb::for_getter(nb::sig("def dtype(self, /) -> DType")),
          "The type of the elements: a umem.DType.")
      .def_prop_ro("place", place_of_array,
                   nb::for_getter(nb::sig("def place(self, /) -> PlaceType")),
                   "The place of the memory.")
      .def_prop_ro("address", get<umemArray_address>,
                   "The address of the first element on the place; for a file the offset in bytes.")
      .def_prop_ro("is_contiguous", get<umemArray_is_c_contiguous>,
                   "Whether the elements follow one another in C order without gaps.")
      .def_prop_rw(
          "read_only", get<umemArray_is_read_only>,
          [](Array &a, bool value) {
            array_call(true,
                       [&](umemStatusType *s) { umemArray_set_read_only(a.use(), value, s); });
          },
          "Whether writes raise. Views that exist keep what they have.")
      .def_prop_ro(
          "released", [](Array &a) { return !a.handle; },
          "Whether the memory was released, or the place closed: every use then raises.");
}

void bind_array_parts(nb::module_ &m, nb::class_<Array> &type) {
  bind_make(m);
  bind_index(type);
  bind_values(type);
  bind_copies(m, type);
  bind_dlpack(m, type);
}

void bind_arrays(nb::module_ &m) {
  static PyType_Slot const slots[] = {
      {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
      {Py_tp_clear, reinterpret_cast<void *>(clear)},
      {Py_bf_getbuffer, reinterpret_cast<void *>(get_array_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void *>(release_array_buffer)},
      {0, nullptr}};
  nb::class_<Array> type(m, "Array", nb::type_slots(slots), nb::is_weak_referenceable(),
                         "An array: see umem.Array.");
  bind_questions(type);
  type.def("release", release_early,
           "Gives the memory back now. All views become stale: every use raises ValueError.\n\n"
           "Raises umem.NotSupportedError while NumPy or another library uses the memory.")
      .def("_hand_out", hand_out)
      .def_prop_ro("_is_host",
                   [](Array &a) {
                     a.use();
                     return a.memory->context->can(umemCpuReadable);
                   })
      .def("_lock",
           [](Array &a, uint64_t key) {
             a.use(true);
             a.memory->lock = key;
           })
      .def("_read",
           [](Array &a, int change) {
             if (change > 0) a.use();
             if (a.handle) a.memory->readers += change;
           })
      .def("_unlock",
           [](Array &a) {
             if (a.handle) a.memory->lock = 0;
           })
      .def(
          "_with_key", [](Array &a, uint64_t key) { return with_key(a, key); }, nb::arg("key"),
          nb::sig("def _with_key(self, key: int) -> ArrayType"));
  bind_array_parts(m, type);
  m.def("_set_array", [](nb::object type_, nb::typed<nb::dict, nb::any, int> types, nb::object find,
                         nb::typed<nb::dict, int, nb::any> dtypes, nb::object make) {
    array_class = type_.release().ptr();
    known_types = types.release().ptr();
    find_type = find.release().ptr();
    known_dtypes = dtypes.release().ptr();
    make_dtype = make.release().ptr();
  });
}
