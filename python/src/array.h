/* array.h - umemArray as a Python object. */
#ifndef UMEM_PYTHON_ARRAY_H
#define UMEM_PYTHON_ARRAY_H

#include "place.h"

/* What all arrays over the same memory share. Other threads may drop users and exports without the
 * GIL. */
class Memory {
  /* An export is a buffer or a tensor of others. The upper half counts them: to count an export and
   * its use takes one step. */
  static constexpr uint64_t one_export = uint64_t{1} << 32;
  std::atomic<uint64_t> users_{1};

  /* A single user need not count, as no other thread can. */
  void drop(uint64_t count) {
    if (users_.load(std::memory_order_acquire) == count ||
        users_.fetch_sub(count, std::memory_order_acq_rel) == count)
      delete this;
  }
  ~Memory();

public:
  Context *context;                    /* a user of it */
  std::atomic<bool> handed_out{false}; /* its address was given away: it cannot be released early */
  uint64_t lock = 0;                   /* the key that arrays need, 0: none; under tables */
  int readers = 0; /* copies that are read elsewhere: nobody may write; under tables */

  PyObject *owner; /* of Python, owned: what has the bytes; NULL if the first handle knows */

  explicit Memory(Context *of, PyObject *with = nullptr) : context(of->use()), owner(with) {}
  Memory *use() {
    users_.fetch_add(1, std::memory_order_relaxed);
    return this;
  }
  void drop() { drop(1); }
  /* An export of a user that ends later than the export. */
  void begin_export() { users_.fetch_add(one_export, std::memory_order_relaxed); }
  void end_export() { drop(one_export); }
  /* An export that is a user itself. */
  void begin_use_of_others() { users_.fetch_add(one_export + 1, std::memory_order_relaxed); }
  void end_use_of_others() { drop(one_export + 1); }
  bool is_exported() const { return users_.load(std::memory_order_acquire) >= one_export; }
};

/* The use of memory by a tensor or a column, which another library ends, and so that of its
 * context. */
inline void *begin_export(Memory *memory) {
  memory->begin_use_of_others();
  return memory;
}
inline void end_export(void *user) { static_cast<Memory *>(user)->end_use_of_others(); }

/* A handle that was taken from its array, and the use of its memory. Both end with it. */
class Released {
  umemArray *handle_;
  Memory *memory_;

public:
  Released(umemArray *handle = nullptr, Memory *memory = nullptr)
      : handle_(handle), memory_(memory) {}
  Released(Released &&other) noexcept : handle_(other.handle_), memory_(other.memory_) {
    other.handle_ = nullptr;
  }
  Released &operator=(Released &&other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Released();
  void forget() { handle_ = nullptr; }
  bool is_handed_out() const { return memory_ && memory_->handed_out; }
};

/* A type of elements as a Python object names it. */
struct ElementType {
  umemElementType type;
  nb::object named; /* the umem.DType of a type that only NumPy has: opaque bytes here; else none */

  ElementType(umemElementType of) : type(of) {}
  ElementType(umemElementType of, nb::object with) : type(of), named(std::move(with)) {}
};

/* The C++ part of a umem.Array. All but place, named and key is under tables: with a Hold or a Look
 * an array is used. */
struct Array {
  umemArray *handle = nullptr; /* owned; NULL after a release */
  /* Released handles whose address others may use: as long as the array lives if it was handed out,
   * else until the last of the holds ends. */
  std::vector<Released> kept;
  unsigned holds = 0; /* of calls of extensions that count no use of the handle; under the GIL */
  Memory *memory = nullptr;  /* a user of it; NULL after a release */
  PyObject *place = nullptr; /* owned: keeps the place alive for a.place and its callbacks */
  PyObject *named = nullptr; /* owned, or NULL: see ElementType */
  uint64_t key = 0;          /* opens a lock of the memory */
  /* For DLPack, once it was asked for, if the array can be written; its address was given away. */
  std::unique_ptr<umemDLTensor> described;
  Array *previous = nullptr, *next = nullptr; /* in Context::arrays */

  Array() = default;
  Array(Array const &) = delete;
  Array &operator=(Array const &) = delete;
  ~Array();

  /* Takes the handle: the array is stale from now on. The caller has locked tables, and ends what
   * it gets later. */
  Released take();

  /* Why the handle cannot be used with this key; NULL if it can. writes: may write, unless the
   * array is read-only. The caller has locked tables. */
  char const *obstacle(bool writes, uint64_t with, umemStatusType *type) const;
  /* Whether there is no obstacle for its own key. The caller has locked tables, or the GIL. */
  bool is_open(bool writes) const {
    return handle && (!memory->lock || memory->lock == key) && !(writes && memory->readers);
  }
};

/* The handle of an array for the time of a call, in which another thread may release the array.
 * Raises if the array was released, or another one has locked the memory. */
class Hold {
  umemArray *handle_;
  Memory *memory_;

public:
  explicit Hold(Array const &array, bool writes = false) : Hold(array, writes, array.key) {}
  Hold(Array const &array, bool writes, uint64_t key);
  /* Takes both over: elements that no Python object has. */
  Hold(umemArray *handle, Memory *memory) : handle_(handle), memory_(memory) {}
  Hold(Hold const &) = delete;
  Hold &operator=(Hold const &) = delete;
  ~Hold() {
    umemArray_release(handle_);
    memory_->drop();
  }
  umemArray *get() const { return handle_; }
  Memory *memory() const { return memory_; }
  Context *context() const { return memory_->context; }
};

#if defined(NB_FREE_THREADED)
using Look = Hold;
#else
/* A Hold for questions, in which the GIL stays: no other thread can release the array. */
class Look {
  Array const &array_;

  static void raise_obstacle(Array const &array, bool writes);

public:
  explicit Look(Array const &array, bool writes = false) : array_(array) {
    if (!array.is_open(writes)) raise_obstacle(array, writes);
  }
  Look(Look const &) = delete;
  Look &operator=(Look const &) = delete;
  umemArray *get() const { return array_.handle; }
  Memory *memory() const { return array_.memory; }
  Context *context() const { return array_.memory->context; }
};
#endif

#if !defined(NB_FREE_THREADED)
/* A Hold for a call of an extension, which gives the GIL up, but has it when this ends: it needs no
 * atomic addition. */
class Lent {
  PyObject *object_;
  Array &array_;

  void end_released(); /* those that were released meanwhile */

public:
  Lent(nb::handle object, Array &array) : object_(object.ptr()), array_(array) {
    Py_INCREF(object_);
    array_.holds++;
  }
  Lent(Lent const &) = delete;
  Lent &operator=(Lent const &) = delete;
  ~Lent() {
    array_.holds--;
    if (!array_.kept.empty()) end_released();
    Py_DECREF(object_);
  }
};
#endif

/* An array in its form: the arguments of umemArray_create. */
struct Shape {
  int rank = 0;
  int64_t extents[UMEM_MAX_RANK];

  explicit Shape(nb::handle object);
  Shape(int count, int64_t const *numbers);
  nb::tuple tuple() const { return tuple(rank, extents); }
  static nb::tuple tuple(int rank, int64_t const *numbers);
};

/* The new Python object of handle, which it takes over, with a new Memory or one that it shares.
 * owner: has the bytes, which the handle borrows; it is taken over, too. */
nb::object wrap_array(umemArray *handle, Context *context, nb::handle place,
                      PyObject *owner = nullptr);
nb::object wrap_view(umemArray *handle, Hold const &of, Array const &array);
nb::object wrap_view(umemArray *handle, Hold const &of, Array const &array, uint64_t key);

/* Lets an owner go that an array was made over: a function for umemArray_take. */
void drop_owner(void *owner);

/* A read-only view of handle, which it takes over: nothing makes it writable. */
umemArray *keep_read_only(umemArray *handle);

/* The address of the first element, whose memory now lives as long as the array. */
uintptr_t hand_out(Array &array);

/* Releases all arrays over the memory of this one, also while others use it: it ends with the last
 * user. */
void release_memory(Array const &array);

/* The array behind a Python object; NULL if it is none, and a umemTypeError. */
Array *find_array(nb::handle object);
Array &array_of(nb::handle object);

/* Whether umem itself only moves such elements, and NumPy knows their values. */
bool is_stored(ElementType const &type);

/* Raises a umemTypeError that names the type of elements that umem only stores; what: the work that
 * needs numbers. */
void check_numbers(Array &array, char const *what);

/* The type that a Python object names (umem/dtypes.py). None: float64. */
ElementType element_of(nb::handle dtype);
ElementType element_of(Array &array);
/* Gives a new array the name of its type. */
nb::object with_name(nb::object array, ElementType const &type);
nb::object dtype_of(ElementType const &type);
nb::object dtype_of(Array &array);

/* Runs a call with a status, without the GIL unless it is short, and raises its failure. */
template <class F> void array_call(bool keeps_gil, F &&function) {
  Call call;
  {
    Unlock unlock(!keeps_gil);
    umemStatusType status = umemOK;
    function(&status);
  }
  call.end();
}

/* A method without what nanobind adds to a call, which would be half of the time of a short one. */
void add_method(nb::handle type, PyMethodDef *method);

/* The arguments of such a function, by the names of its parameters, of which so many can be given
 * by place alone. Those that are not given remain as they are; false for others. */
template <size_t count>
bool read_arguments(char const *const (&parameters)[count], size_t by_place,
                    PyObject *const *values, Py_ssize_t given_by_place, PyObject *names,
                    PyObject *(&given)[count]) {
  size_t const placed = static_cast<size_t>(given_by_place);
  size_t const named = names ? static_cast<size_t>(PyTuple_Size(names)) : 0;
  if (placed > by_place) return false;
  for (size_t i = 0; i < placed; i++) given[i] = values[i];
  for (size_t i = 0; i < named; i++) {
    PyObject *name = PyTuple_GetItem(names, static_cast<Py_ssize_t>(i));
    size_t at = 0;
    while (at < count && PyUnicode_CompareWithASCIIString(name, parameters[at]) != 0) at++;
    if (at == count || at < placed) return false;
    given[at] = values[placed + i];
  }
  return true;
}

/* The body of such a method: exceptions become those of Python. */
template <class F> PyObject *raised(F &&body) noexcept {
  try {
    return in_python([&] { return nb::object(body()).release().ptr(); });
  } catch (nb::python_error &error) {
    error.restore();
  } catch (std::bad_alloc const &) {
    PyErr_NoMemory();
  } catch (std::exception const &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}
/* Of umem.Array. */
template <class F> PyObject *method_call(PyObject *self, F &&body) noexcept {
  return raised([&] {
    if (!nb::inst_ready(self))
      raise(umemTypeError, "the array was not made by umem.empty or another function");
    return body(*nb::inst_ptr<Array>(self));
  });
}

/* array_copy.cpp: the elements of src in the shape of dst, for the time of a call. */
umemArray *broadcast(umemArray const *dst, umemArray *src, Context *context);

/* Sets dst to src, of any type, broadcast to its shape. Numbers out of the range of integers wrap,
 * or become the nearest in range. */
void assign(Array &dst, Array &src, bool saturates = false);
/* A new array in C order on place. */
nb::object copy_array(Array &src, nb::handle place, ElementType const &type,
                      bool saturates = false);
nb::object new_array(Shape const &shape, ElementType const &type, nb::handle place, bool zero);
/* An array of a value that is none, of elements as those of array. */
nb::object make_source(nb::handle value, Array &array);

/* array_given.cpp: sets dst to a list of numbers or to a buffer of another library, without Python
 * in between; false, and nothing is done, for what is neither, or needs more checks. */
bool assign_given(Array &dst, nb::handle value);

/* array_given.cpp: sets the row that a whole number names to such a value of its shape, where the
 * CPU writes it at once; false, and nothing is done, for all else. */
bool set_row(Array &array, nb::handle key, nb::handle value);

/* array_host.cpp: the array over the memory of an array of NumPy in RAM, as DLPack would share it,
 * in half of the time. Not valid for other objects, and for what DLPack does not share. */
nb::object share_numpy(nb::handle object);

/* array_value.cpp: the bytes of one element of this type with the value of a Python number. */
void encode(nb::handle number, umemElementType type, void *out, size_t size);
/* Raises OverflowError if elements are integers, and a number is out of their range. */
void check_fits(nb::handle number, umemElementType type);
/* Each can hold those before it. The numbers are those of _ORDER in umem/_lists.py. */
enum NumberKind { noNumber = -1, truthNumber, wholeNumber, realNumber, complexNumber };
NumberKind kind_of_number(nb::handle object);
void fill_array(Array &array, nb::handle number);

/* array_index.cpp */
nb::object index_array(Array &array, nb::handle key);
PyObject *get_items(PyObject *self, PyObject *key);
Py_ssize_t count_rows(PyObject *self);
PyObject *get_row(PyObject *self, Py_ssize_t index);
/* array_copy.cpp */
int set_items(PyObject *self, PyObject *key, PyObject *value);
/* array_value.cpp: sets the element of RAM that a key of whole numbers names to a number; false,
 * and nothing is done, for what is more than that, or wrong. */
bool set_element(Array &array, nb::handle key, nb::handle value);
/* Sets the elements that a key with masks or lists of integers chooses; false for other keys. */
bool write_chosen_items(nb::handle self, nb::handle key, nb::handle value);

/* array_gather.cpp: the rows of array that a key chooses which is one array of integers, or one
 * mask; not valid for other keys. The other one sets them, or returns false. */
nb::object read_rows(Array &array, nb::handle key);
bool write_rows(Array &array, nb::handle key, nb::handle value);

/* An array over the buffer of another object, which it holds; NULL where umem has no such
 * elements. */
umemArray *share_buffer(nb::handle object);
/* The type of the elements of a buffer with a format; 0 where umem has none. */
umemElementType type_of_buffer(Py_buffer const &view);

/* dlpack.cpp: a umem.Array over the tensor of an object with __dlpack__, without a copy. */
nb::object share_dlpack(nb::handle object);
void add_dlpack_methods(nb::handle type);

/* array_buffer.cpp: the buffer protocol. */
int get_array_buffer(PyObject *self, Py_buffer *view, int flags);
void release_array_buffer(PyObject *self, Py_buffer *view);
/* Whether it has such elements. */
bool has_buffer_format(umemElementType type);

/* The methods of array_make.cpp, array_index.cpp, array_value.cpp and array_copy.cpp. */
void bind_array_parts(nb::module_ &m, nb::class_<Array> &type);
void bind_make(nb::module_ &m);
void bind_given(nb::module_ &m);
void bind_index(nb::module_ &m, nb::class_<Array> &type);
void bind_gather(nb::module_ &m);
void bind_values(nb::module_ &m, nb::class_<Array> &type);
void bind_copies(nb::module_ &m, nb::class_<Array> &type);
void bind_compare(nb::module_ &m);
void bind_reductions(nb::module_ &m);
void bind_dlpack(nb::module_ &m, nb::class_<Array> &type);
void bind_host(nb::module_ &m, nb::class_<Array> &type);

/* What a place means where it may be None: RAM. */
inline nb::object place_or_host(nb::handle place) {
  return place.is_none() ? nb::borrow(default_host()) : find_place(place);
}

/* Where a result of array is if None is named: on its place, or in RAM if that may outlive the
 * process, or cannot be written. */
inline nb::object place_of_result(Array &array, nb::handle named) {
  if (!named.is_none()) return find_new_place(named);
  Look look(array);
  bool is_own = look.context()->can(umemWritable) && !look.context()->can(umemShared);
  return nb::borrow(is_own ? nb::handle(array.place) : default_host());
}

#endif
