/* array.cpp - the life of arrays, and what they are. */
#include "array.h"
#include "module.h"

#include <algorithm>
#include <iterator>

/* ---- life ---- */

static PyObject *array_class; /* umem.Array */
/* dict: object to number, or to the umem.DType that only NumPy has; function for others */
static PyObject *known_types, *find_type;
static PyObject *known_dtypes, *make_dtype; /* dict: number to umem.DType; the same */

Memory::~Memory() {
  if (owner) drop_owner(owner);
  context->drop();
}

Released::~Released() {
  if (!handle_) return;
  Call call;
  {
    Unlock unlock(!memory_->context->quick);
    umemArray_release(handle_);
    memory_->drop();
  }
  if (call.failed()) report_failure("the release of a umem.Array");
}

Released Array::take() {
  if (!handle) return {};
  Memory *left = memory;
  if (previous)
    previous->next = next;
  else
    left->context->arrays = next;
  if (next) next->previous = previous;
  previous = next = nullptr;
  Released released(handle, left);
  handle = nullptr;
  memory = nullptr;
  described.reset();
  if (!left->handed_out && !holds) return released;
  try {
    kept.push_back(std::move(released));
  } catch (std::bad_alloc const &) {
    released.forget(); /* others may use it: without RAM for the list it remains */
  }
  return {};
}

Array::~Array() {
  {
    Released released; /* ends without the lock */
    TablesLock lock(tables);
    released = take();
  }
  kept.clear();
  Py_XDECREF(place);
  Py_XDECREF(named);
}

void release_arrays(Context *context) {
  Use use(context);
  for (bool more = true; more;) {
    Released released; /* ends without the lock */
    TablesLock lock(tables);
    more = context->arrays != nullptr;
    if (more) released = context->arrays->take();
  }
}

char const *Array::obstacle(bool writes, uint64_t with, umemStatusType *type) const {
  *type = handle ? umemRuntimeError : umemValueError;
  if (!handle) return "the array was released, or its place was closed";
  if (memory->lock && memory->lock != with)
    return "the array is locked: use the array that lock(), host() or device() has given";
  if (writes && memory->readers && !umemArray_is_read_only(handle))
    return "the array cannot be written while host() or device() has a copy of it to read";
  return nullptr;
}

Hold::Hold(Array const &array, bool writes, uint64_t key) {
  umemStatusType type;
  char const *obstacle;
  {
    TablesLock lock(tables);
    obstacle = array.obstacle(writes, key, &type);
    if (!obstacle) {
      handle_ = umemArray_retain(array.handle);
      memory_ = array.memory->use();
    }
  }
  if (obstacle) raise(type, "%s", obstacle);
}

#if !defined(NB_FREE_THREADED)
void Look::raise_obstacle(Array const &array, bool writes) {
  umemStatusType type;
  if (char const *obstacle = array.obstacle(writes, array.key, &type)) raise(type, "%s", obstacle);
}

void Lent::end_released() {
  if (array_.holds) return;
  std::vector<Released> ended; /* those that are handed out stay */
  auto is_handed_out = [](Released const &one) { return one.is_handed_out(); };
  auto middle = std::stable_partition(array_.kept.begin(), array_.kept.end(), is_handed_out);
  std::move(middle, array_.kept.end(), std::back_inserter(ended));
  array_.kept.erase(middle, array_.kept.end());
}
#endif

/* Puts an array into the list of its context. The caller has locked tables. */
static void link(Array &array) {
  Context *context = array.memory->context;
  array.next = context->arrays;
  if (array.next) array.next->previous = &array;
  context->arrays = &array;
}

static nb::object wrap(umemArray *handle, Memory *memory, nb::handle place, uint64_t key) {
  nb::object self = nb::inst_alloc(array_class);
  Array *array = new (nb::inst_ptr<Array>(self)) Array;
  array->handle = handle;
  array->memory = memory;
  array->place = nb::borrow(place).release().ptr();
  array->key = key;
  nb::inst_mark_ready(self);
  TablesLock lock(tables);
  link(*array);
  return self;
}

nb::object wrap_array(umemArray *handle, Context *context, nb::handle place, PyObject *owner) {
  return wrap(handle, new Memory(context, owner), place, 0);
}

nb::object with_name(nb::object array, ElementType const &type) {
  if (type.named.is_valid()) array_of(array).named = nb::object(type.named).release().ptr();
  return array;
}

nb::object wrap_view(umemArray *handle, Hold const &of, Array const &array, uint64_t key) {
  return with_name(wrap(handle, of.memory()->use(), array.place, key),
                   {umemArray_type(of.get()), nb::borrow(array.named)});
}

nb::object wrap_view(umemArray *handle, Hold const &of, Array const &array) {
  return wrap_view(handle, of, array, array.key);
}

Array *find_array(nb::handle object) {
  Array *array;
  if (Py_TYPE(object.ptr()) == reinterpret_cast<PyTypeObject *>(array_class) &&
      nb::inst_ready(object))
    return nb::inst_ptr<Array>(object); /* the same, in less time */
  return nb::try_cast(object, array) ? array : nullptr;
}

Array &array_of(nb::handle object) {
  Array *array = find_array(object);
  if (!array) raise(umemTypeError, "a umem.Array is expected, not %s", type_text(object).c_str());
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
  bool is_text = PyBytes_Check(object.ptr()) || PyByteArray_Check(object.ptr()) ||
                 PyUnicode_Check(object.ptr()); /* sequences, too */
  if (PyLong_CheckExact(object.ptr()) || is_text || !PySequence_Check(object.ptr())) {
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

ElementType element_of(nb::handle dtype) {
  if (dtype.is_none()) return umemFloat64;
  nb::object found =
      nb::borrow(in_python([&] { return PyDict_GetItemWithError(known_types, dtype.ptr()); }));
  if (!found.is_valid()) {
    PyErr_Clear(); /* of what cannot be hashed, such as a list of fields */
    found = call_python(find_type, dtype);
  }
  if (PyLong_Check(found.ptr()))
    return static_cast<umemElementType>(PyLong_AsUnsignedLong(found.ptr()));
  return {nb::cast<umemElementType>(nb::object(found.attr("_type"))), found};
}

/* Whether umemArray_convert converts such elements. */
static bool is_converted(umemElementType type) {
  unsigned code = umem_element_code(type), bits = umem_element_bits(type);
  return code <= umemCodeBool && code != umemCodeHandle &&
         bits <= (code == umemCodeComplex ? 128 : 64);
}

bool is_stored(ElementType const &type) {
  return type.named.is_valid() || (umem_element_lanes(type.type) == 1 && !is_converted(type.type));
}

ElementType element_of(Array &array) {
  return {umemArray_type(Look(array).get()), nb::borrow(array.named)};
}

void check_numbers(Array &array, char const *what) {
  if (is_stored(element_of(array)))
    raise(umemTypeError, "%s: elements of %s are only stored: NumPy computes with them", what,
          nb::cast<std::string>(nb::str(dtype_of(array))).c_str());
}

nb::object dtype_of(Array &array) { return dtype_of(element_of(array)); }

nb::object dtype_of(ElementType const &type) {
  if (type.named.is_valid()) return type.named;
  nb::int_ number(type.type);
  PyObject *dtype = PyDict_GetItemWithError(known_dtypes, number.ptr());
  return dtype ? nb::borrow(dtype) : call_python(make_dtype, number);
}

/* ---- what arrays are ---- */

static nb::object place_of_array(Array &array) {
  return array.place ? nb::borrow(array.place) : nb::none();
}

void release_memory(Array const &array) {
  std::vector<Released> released; /* they end without the lock */
  TablesLock lock(tables);
  Memory *memory = array.memory;
  if (!memory) return;
  for (Array *other = memory->context->arrays; other;) {
    Array *following = other->next;
    if (other->memory == memory) {
      umemArray_set_keeps(other->handle, false); /* who says so wants the block to be reused */
      released.emplace_back();
      released.back() = other->take();
    }
    other = following;
  }
}

static bool is_released(Array &array) {
  TablesLock lock(tables);
  return !array.handle;
}

static void release_early(Array &array) {
  if (is_released(array)) return;
  {
    Hold hold(array, true);
    Memory *memory = hold.memory();
    if (memory->is_exported() || memory->handed_out)
      raise(umemNotSupportedError,
            "the array cannot be released: NumPy or another library may use its memory");
  }
  release_memory(array);
}

template <auto function> static auto get(Array &array) { return function(Look(array).get()); }

/* A view that a lock with this key does not stop. */
static nb::object with_key(Array &array, uint64_t key) {
  Hold hold(array, false, key);
  return wrap_view(umemArray_alias(hold.get(), nullptr), hold, array, key);
}

static void release_owner(void *owner) { umemArray_release(static_cast<umemArray *>(owner)); }

/* A view of the bytes of an array without gaps. */
static nb::object bytes_of(Array &array) {
  Hold hold(array);
  if (!umemArray_is_c_contiguous(hold.get())) raise(umemValueError, "the array has gaps");
  int64_t nbytes = static_cast<int64_t>(umemArray_nbytes(hold.get()));
  umemArray *view;
  array_call(true, [&](umemStatusType *status) {
    umemArray *owner = umemArray_retain(hold.get());
    view = umemArray_take(hold.context()->ctx, umemArray_address(owner), umemUInt8, 1, &nbytes,
                          nullptr, release_owner, owner, status);
    if (!view) umemArray_release(owner);
  });
  if (umemArray_is_read_only(hold.get())) view = keep_read_only(view);
  return wrap_view(view, hold, array);
}

/* Makes an array one over other memory, which it takes from other. Views keep what they have. */
static void become(nb::handle self, nb::handle other) {
  Array &array = array_of(self), &source = array_of(other);
  Hold held(array, true), kept(source);
  Released old; /* ends without the lock */
  TablesLock lock(tables);
  old = array.take();
  array.handle = umemArray_retain(kept.get());
  array.memory = kept.memory()->use();
  link(array);
}

uintptr_t hand_out(Array &array) {
  Look look(array);
  bool is_stale;
  {
    TablesLock lock(tables);
    is_stale = !array.handle; /* by another thread, just now */
    if (!is_stale) array.memory->handed_out = true;
  }
  if (is_stale) Look again(array); /* this raises */
  return umemArray_address(look.get());
}

/* Locks the memory. Returns the key. */
static uint64_t lock_memory(Array &array) {
  static std::atomic<uint64_t> keys{0};
  uint64_t key = keys.fetch_add(1, std::memory_order_relaxed) + 1;
  Look look(array, true);
  bool is_free;
  {
    TablesLock lock(tables);
    is_free = !look.memory()->lock || look.memory()->lock == array.key;
    if (is_free) look.memory()->lock = key;
  }
  if (!is_free) Look again(array, true); /* another thread was first: this raises */
  return key;
}

static void unlock_memory(Array &array) {
  TablesLock lock(tables);
  if (array.handle) array.memory->lock = 0;
}

static void count_readers(Array &array, int change) {
  if (change > 0) Look look(array);
  TablesLock lock(tables);
  if (array.handle) array.memory->readers += change;
}

static void bind_questions(nb::class_<Array> &type) {
  type.def_prop_ro(
          "shape",
          [](Array &a) {
            Look look(a);
            return Shape::tuple(umemArray_rank(look.get()), umemArray_shape(look.get()));
          },
          nb::for_getter(nb::sig("def shape(self, /) -> tuple[int, ...]")),
          "The numbers of elements along the dimensions.")
      .def_prop_ro(
          "strides",
          [](Array &a) {
            Look look(a);
            return Shape::tuple(umemArray_rank(look.get()), umemArray_strides(look.get()));
          },
          nb::for_getter(nb::sig("def strides(self, /) -> tuple[int, ...]")),
          "Bytes from element to element along each dimension.")
      .def_prop_ro("ndim", get<umemArray_rank>, "The number of dimensions.")
      .def_prop_ro("size", get<umemArray_elements>, "The number of all elements.")
      .def_prop_ro("nbytes", get<umemArray_nbytes>, "The bytes of all elements, without gaps.")
      .def_prop_ro(
          "itemsize", [](Array &a) { return umem_element_size(get<umemArray_type>(a)); },
          "The bytes of one element.")
      .def_prop_ro(
          "dtype", [](Array &a) { return dtype_of(a); },
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
          [](Array &a, nb::handle value) {
            if (!PyBool_Check(value.ptr()))
              raise(umemTypeError, "read_only must be True or False, not %s",
                    type_text(value).c_str());
            Look look(a);
            bool is_set = value.ptr() == Py_True;
            array_call(true,
                       [&](umemStatusType *s) { umemArray_set_read_only(look.get(), is_set, s); });
          },
          nb::for_setter(nb::arg("value").none()),
          nb::for_setter(nb::sig("def read_only(self, value: bool, /) -> None")),
          "Whether writes raise. Views that exist keep what they have. What was read-only where it "
          "came from stays\n"
          "so: bytes, a mapping to read, an array of JAX, a view of a read-only array.")
      .def_prop_ro("released", is_released,
                   "Whether the memory was released, or the place closed: every use then raises.");
}

void bind_array_parts(nb::module_ &m, nb::class_<Array> &type) {
  bind_make(m);
  bind_given(m);
  bind_index(m, type);
  bind_gather(m);
  bind_values(m, type);
  bind_copies(m, type);
  bind_compare(m);
  bind_reductions(m);
  bind_host(m, type);
  bind_dlpack(m, type);
}

void bind_arrays(nb::module_ &m) {
  static PyType_Slot const slots[] = {
      {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
      {Py_tp_clear, reinterpret_cast<void *>(clear)},
      {Py_bf_getbuffer, reinterpret_cast<void *>(get_array_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void *>(release_array_buffer)},
      {Py_mp_length, reinterpret_cast<void *>(count_rows)},
      {Py_mp_subscript, reinterpret_cast<void *>(get_items)},
      {Py_mp_ass_subscript, reinterpret_cast<void *>(set_items)},
      {Py_sq_length, reinterpret_cast<void *>(count_rows)},
      {Py_sq_item, reinterpret_cast<void *>(get_row)},
      {0, nullptr}};
  nb::class_<Array> type(m, "Array", nb::type_slots(slots), nb::is_weak_referenceable(),
                         nb::is_generic(), nb::sig("class Array(typing.Generic[Element])"),
                         "An array: see umem.Array.");
  bind_questions(type);
  m.def("_is_stored", [](nb::handle dtype) { return is_stored(element_of(dtype)); });
  type.def("release", release_early,
           "Gives the memory back now. All views become stale: every use raises ValueError.\n\n"
           "In a named file later arrays may take its bytes, while those of an array that only "
           "ends stay. A child of fork\n"
           "gives back nothing that its parent has in shared memory or a file.\n\n"
           "Raises umem.NotSupportedError while NumPy or another library uses the memory.")
      .def("_hand_out", hand_out)
      .def("_become", become, nb::arg("other"))
      .def("_bytes", bytes_of, nb::sig("def _bytes(self) -> ArrayType"))
      .def_prop_ro("_is_host", [](Array &a) { return Look(a).context()->can(umemCpuReadable); })
      .def("_lock", lock_memory)
      .def("_read", count_readers)
      .def("_unlock", unlock_memory)
      .def(
          "_with_key", [](Array &a, uint64_t key) { return with_key(a, key); }, nb::arg("key"),
          nb::sig("def _with_key(self, key: int) -> ArrayType[Element]"));
  bind_array_parts(m, type);
  m.def("_set_array",
        [](nb::object type_, nb::typed<nb::dict, nb::any, nb::any> types, nb::object find,
           nb::typed<nb::dict, int, nb::any> dtypes, nb::object make) {
          array_class = type_.release().ptr();
          add_dlpack_methods(array_class); /* of which CPython names the class in its own texts */
          known_types = types.release().ptr();
          find_type = find.release().ptr();
          known_dtypes = dtypes.release().ptr();
          make_dtype = make.release().ptr();
        });
}
