/* array_host.cpp - arrays of NumPy over the memory of an array, for Array.host: by the functions of
 * NumPy itself, as the buffer protocol takes three times as long. */
#include "array.h"

#include <atomic>
#include <cstring>
#include <memory>

namespace {

/* ---- NumPy ---- */

/* What is used of the table of functions that NumPy keeps compatible. Their places in it are those
 * of numpy/__multiarray_api.h. */
struct Numpy {
  enum {
    array_type = 2,
    new_from_descr = 94,
    set_base_object = 282,
    aligned = 0x100,
    writeable = 0x400
  };
  PyObject *type;
  PyObject *(*make)(PyObject *type, PyObject *dtype, int rank, int64_t const *extents,
                    int64_t const *strides, void *data, int flags, PyObject *base);
  int (*set_base)(PyObject *array, PyObject *base);

  Numpy() {
    nb::object module = nb::module_::import_("numpy");
    char const *name =
        nb::hasattr(module, "_core") ? "numpy._core.multiarray" : "numpy.core.multiarray";
    nb::object capsule = nb::module_::import_(name).attr("_ARRAY_API");
    void **table = static_cast<void **>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
    if (!table) throw nb::python_error();
    type = static_cast<PyObject *>(table[array_type]);
    make = reinterpret_cast<decltype(make)>(table[new_from_descr]);
    set_base = reinterpret_cast<decltype(set_base)>(table[set_base_object]);
  }
};

/* Loaded outside of any lock: an import lets other threads run, which may come here, too. All of
 * them find the same functions. */
Numpy const &loaded_numpy() {
  static std::atomic<Numpy const *> loaded{nullptr};
  Numpy const *numpy = loaded.load(std::memory_order_acquire);
  if (numpy) return *numpy;
  auto made = std::make_unique<Numpy const>();
  if (!loaded.compare_exchange_strong(numpy, made.get())) return *numpy;
  return *made.release(); /* never ends, as NumPy does not */
}

/* The dtypes of NumPy that were used, by the type of the elements; under tables. */
struct {
  umemElementType type;
  PyObject *dtype;
} known[16];

PyObject *known_dtype(umemElementType type) {
  TablesLock lock(tables);
  for (auto const &one : known)
    if (one.dtype && one.type == type) return one.dtype;
  return nullptr;
}

/* Borrowed. */
PyObject *numpy_dtype(Array &array, umemElementType type) {
  if (PyObject *found = known_dtype(type)) return found;
  nb::object dtype = dtype_of(array).attr("dtype");
  TablesLock lock(tables);
  for (auto &one : known) {
    if (one.dtype && one.type != type) continue;
    if (!one.dtype) one = {type, dtype.release().ptr()}; /* never ends, as types do not */
    return one.dtype;
  }
  return nullptr; /* there are fewer types with a code of module struct */
}

/* What an array of NumPy keeps: a handle, whose memory is exported as long. An object of a class of
 * its own takes half of the time of a capsule. */
struct Base {
  PyObject head;
  umemArray *handle;
  Memory *memory;
};
PyTypeObject *base_class; /* kept for the life of the process */

void end_base(PyObject *self) {
  Base const *base = reinterpret_cast<Base *>(self);
  PyTypeObject *type = Py_TYPE(self);
  umemArray_release(base->handle);
  base->memory->end_use_of_others();
  PyObject_Free(self);
  Py_DECREF(reinterpret_cast<PyObject *>(type));
}

nb::object make_base(umemArray *handle, Memory *memory) {
  Base *base = PyObject_New(Base, base_class);
  if (!base) throw nb::python_error();
  base->handle = umemArray_retain(handle);
  base->memory = memory;
  memory->begin_use_of_others();
  return nb::steal(&base->head);
}

/* The first element for the CPU, which is complete. */
void *host_pointer(Context const *context, umemArray *handle) {
  if (context->quick && umemArray_elements(handle))
    return reinterpret_cast<void *>(umemArray_address(handle));
  void *first;
  array_call(context->quick, [&](umemStatusType *status) {
    first = umemArray_host_pointer(handle, false, status);
  });
  return first;
}

nb::object numpy_over(Array &array, bool writes) {
  Numpy const &numpy = loaded_numpy();
  nb::object base = [&] {
    Look look(array);
    return make_base(look.get(), look.memory());
  }();
  Base const *held = reinterpret_cast<Base *>(base.ptr());
  umemArray *handle = held->handle;
  void *first = host_pointer(held->memory->context, handle);
  umemElementType type = umemArray_type(handle);
  PyObject *dtype = numpy_dtype(array, type);
  /* Of dense and aligned elements NumPy finds the strides in less time than it checks some. */
  bool is_dense = umemArray_is_c_contiguous(handle) &&
                  reinterpret_cast<uintptr_t>(first) % umem_element_size(type) == 0;
  Py_INCREF(dtype); /* make takes it */
  PyObject *made = numpy.make(numpy.type, dtype, umemArray_rank(handle), umemArray_shape(handle),
                              is_dense ? nullptr : umemArray_strides(handle), first,
                              Numpy::aligned | (writes ? Numpy::writeable : 0), nullptr);
  if (!made) throw nb::python_error();
  nb::object result = nb::steal(made);
  if (numpy.set_base(made, base.release().ptr()) < 0) throw nb::python_error(); /* it takes base */
  return result;
}

/* ---- arrays of NumPy ---- */

/* How an array of NumPy begins, in all versions: PyArrayObject_fields. */
struct NumpyArray {
  PyObject head;
  char *data;
  int rank;
  int64_t *extents, *strides; /* in bytes */
  PyObject *base, *dtype;
  int flags;
};

/* The class of NumPy's arrays, without loading NumPy: NULL until the first array was seen. */
std::atomic<PyTypeObject *> numpy_class{nullptr};

bool is_numpy_array(nb::handle object) {
  PyTypeObject *type = Py_TYPE(object.ptr()), *seen = numpy_class.load(std::memory_order_acquire);
  if (seen) return type == seen;
  unsigned long const is_static = 1ul << 8; /* Py_TPFLAGS_IMMUTABLETYPE, as of few classes */
  if (!(PyType_GetFlags(type) & is_static)) return false;
  if (nb::cast<std::string>(object.type().attr("__name__")) != "ndarray") return false;
  numpy_class.store(reinterpret_cast<PyTypeObject *>(loaded_numpy().type));
  return type == numpy_class.load();
}

/* The type of the elements of a dtype that has one in the machine's order of bytes; 0: none. */
umemElementType type_of_dtype(PyObject *dtype) {
  {
    TablesLock lock(tables);
    for (auto const &pair : known)
      if (pair.dtype == dtype) return pair.type;
  }
  ElementType found = element_of(nb::handle(dtype));
  if (is_stored(found)) return 0;
  nb::object one = dtype_of(found).attr("dtype");
  if (one.ptr() != dtype) return 0; /* another object for the same type */
  TablesLock lock(tables);
  for (auto &unused : known)
    if (!unused.dtype) {
      unused = {found.type, one.release().ptr()};
      break;
    }
  return found.type;
}

/* ---- with array.host() ---- */

/* The access to an array that the CPU reads. */
struct HostAccess {
  PyObject head;
  PyObject *array;
  bool writes;
};
PyTypeObject *access_class; /* kept for the life of the process */
PyObject *host_by_copy;     /* function of (array, mode) */

/* Not valid where the array has to be copied, where NumPy reads no such elements from a buffer, and
 * where the call is wrong: the function of Python then says why. */
nb::object host_access(PyObject *self, Array &array, PyObject *mode) {
  if (!PyUnicode_CheckExact(mode)) return {};
  Look look(array);
  bool reads_only = !PyUnicode_CompareWithASCIIString(mode, "r");
  bool writes = !reads_only && (!PyUnicode_CompareWithASCIIString(mode, "rw") ||
                                !PyUnicode_CompareWithASCIIString(mode, "w"));
  bool is_read_only = umemArray_is_read_only(look.get()) || !look.context()->can(umemCpuWritable);
  if (reads_only == writes || (writes && is_read_only) || array.named ||
      !look.context()->can(umemCpuReadable) || !umemArray_elements(look.get()) ||
      !has_buffer_format(umemArray_type(look.get())))
    return {};
  HostAccess *access = PyObject_New(HostAccess, access_class);
  if (!access) throw nb::python_error();
  Py_INCREF(self);
  access->array = self;
  access->writes = writes;
  return nb::steal(&access->head);
}

PyObject *host_method(PyObject *self, PyObject *const *values, Py_ssize_t count, PyObject *names) {
  static PyObject *const both = PyUnicode_InternFromString("rw");
  static char const *const parameters[] = {"mode"};
  return method_call(self, [&](Array &array) {
    PyObject *given[] = {both};
    if (!read_arguments(parameters, 1, values, count, names, given))
      raise(umemTypeError, "umem.Array.host expects (mode='rw')");
    nb::object access = host_access(self, array, given[0]);
    if (access.is_valid()) return access;
    return nb::object(call_python(host_by_copy, nb::handle(self), nb::handle(given[0])));
  });
}

PyObject *enter(PyObject *self, PyObject *) {
  HostAccess *access = reinterpret_cast<HostAccess *>(self);
  return method_call(access->array,
                     [&](Array &array) { return numpy_over(array, access->writes); });
}

PyObject *leave(PyObject *, PyObject *const *, Py_ssize_t) { Py_RETURN_NONE; }

void end_access(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_DECREF(reinterpret_cast<HostAccess *>(self)->array);
  PyObject_Free(self);
  Py_DECREF(reinterpret_cast<PyObject *>(type));
}

/* A class whose objects only C makes. */
PyTypeObject *make_class(char const *name, size_t size, destructor end, PyMethodDef *methods) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(end)},
                         {methods ? Py_tp_methods : 0, methods},
                         {0, nullptr}};
  unsigned const flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PyType_Spec spec = {name, static_cast<int>(size), 0, flags, slots};
  PyObject *type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  return reinterpret_cast<PyTypeObject *>(type);
}

} // namespace

nb::object share_numpy(nb::handle object) {
  if (!is_numpy_array(object)) return {};
  auto const *array = reinterpret_cast<NumpyArray const *>(object.ptr());
  umemElementType type = type_of_dtype(array->dtype);
  if (!type || array->rank > UMEM_MAX_RANK) return {};
  int64_t const item_size = static_cast<int64_t>(umem_element_size(type));
  for (int k = 0; k < array->rank; k++)
    if (array->strides[k] % item_size) return {};
  Context *context = place_of(default_host()).context; /* permanent */
  umemArray *handle = umemArray_borrow(context->ctx, reinterpret_cast<uintptr_t>(array->data), type,
                                       array->rank, array->extents, array->strides, nullptr);
  if (!handle) raise_failure();
  if (!(array->flags & Numpy::writeable)) handle = keep_read_only(handle);
  Py_INCREF(object.ptr()); /* with the memory, which ends in fewer steps than a handle of others */
  return wrap_array(handle, context, default_host(), object.ptr());
}

void add_method(nb::handle type, PyMethodDef *method) {
  PyObject *descriptor = PyDescr_NewMethod(reinterpret_cast<PyTypeObject *>(type.ptr()), method);
  if (!descriptor) throw nb::python_error();
  nb::setattr(type, method->ml_name, nb::steal(descriptor));
}

void bind_host(nb::module_ &m, nb::class_<Array> &type) {
  static PyMethodDef methods[] = {
      {"__enter__", enter, METH_NOARGS, nullptr},
      {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)),
       METH_FASTCALL, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  static PyMethodDef host = {
      "host", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(host_method)),
      METH_FASTCALL | METH_KEYWORDS,
      "host($self, mode='rw')\n--\n\n"
      "The elements as a NumPy array, for a with block.\n\n"
      "Where the CPU cannot use the memory, it is a copy, which is brought back when the block "
      "ends, unless the block\n"
      "raises. Until then no other access to the array can write it, and with \"w\" and \"rw\" "
      "none can read it.\n\n"
      "Parameters\n"
      "----------\n"
      "mode : {\"r\", \"w\", \"rw\"}\n"
      "    \"r\": only to read. \"w\": the old elements are not needed. \"rw\": both."};
  base_class = make_class("umem._core._HostBase", sizeof(Base), end_base, nullptr);
  access_class = make_class("umem._core._HostAccess", sizeof(HostAccess), end_access, methods);
  add_method(type, &host);
  m.def("_set_host", [](nb::object by_copy) { host_by_copy = by_copy.release().ptr(); });
}
