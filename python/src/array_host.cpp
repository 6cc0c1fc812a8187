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

/* Ends with the array of NumPy. */
void end_base(PyObject *capsule) {
  Hold *hold = static_cast<Hold *>(PyCapsule_GetPointer(capsule, nullptr));
  hold->memory()->end_export();
  delete hold;
}

nb::object numpy_over(Array &array, bool writes) {
  Numpy const &numpy = loaded_numpy();
  std::unique_ptr<Hold> hold(new Hold(array)); /* which keeps the extents and strides, too */
  umemArray *handle = hold->get();
  void *first;
  array_call(hold->context()->quick, [&](umemStatusType *status) {
    first = umemArray_host_pointer(handle, false, status);
  });
  PyObject *dtype = numpy_dtype(array, umemArray_type(handle));
  Py_INCREF(dtype); /* make takes it */
  PyObject *made = numpy.make(numpy.type, dtype, umemArray_rank(handle), umemArray_shape(handle),
                              umemArray_strides(handle), first,
                              Numpy::aligned | (writes ? Numpy::writeable : 0), nullptr);
  if (!made) throw nb::python_error();
  nb::object result = nb::steal(made);
  PyObject *base = PyCapsule_New(hold.get(), nullptr, end_base);
  if (!base) throw nb::python_error();
  hold->memory()->begin_export();
  hold.release();
  if (numpy.set_base(made, base) < 0) throw nb::python_error(); /* base is its own already */
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
  nb::object array;
  bool writes;
};

/* None where the array has to be copied, where NumPy reads no such elements from a buffer, and
 * where the call is wrong: the function of Python then says why. */
nb::object host_access(nb::handle self, nb::handle mode) {
  Array &array = array_of(self);
  Look look(array);
  if (!PyUnicode_CheckExact(mode.ptr())) return nb::none();
  bool reads_only = !PyUnicode_CompareWithASCIIString(mode.ptr(), "r");
  bool writes = !reads_only && (!PyUnicode_CompareWithASCIIString(mode.ptr(), "rw") ||
                                !PyUnicode_CompareWithASCIIString(mode.ptr(), "w"));
  bool is_read_only = umemArray_is_read_only(look.get()) || !look.context()->can(umemCpuWritable);
  if (reads_only == writes || (writes && is_read_only) || array.named ||
      !look.context()->can(umemCpuReadable) || !umemArray_elements(look.get()) ||
      !has_buffer_format(umemArray_type(look.get())))
    return nb::none();
  return nb::cast(HostAccess{nb::borrow(self), writes});
}

PyObject *enter(PyObject *self, PyObject *) {
  return raised([&] {
    if (!nb::inst_ready(self)) raise(umemTypeError, "the access was not made by Array.host");
    HostAccess *access = nb::inst_ptr<HostAccess>(self);
    return numpy_over(array_of(access->array), access->writes);
  });
}

PyObject *leave(PyObject *, PyObject *const *, Py_ssize_t) { Py_RETURN_NONE; }

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
  umemArray *handle =
      umemArray_take(context->ctx, reinterpret_cast<uintptr_t>(array->data), type, array->rank,
                     array->extents, array->strides, drop_owner, object.ptr(), nullptr);
  if (!handle) raise_failure();
  Py_INCREF(object.ptr());
  if (!(array->flags & Numpy::writeable)) handle = keep_read_only(handle);
  return wrap_array(handle, context, default_host());
}

void add_method(nb::handle type, PyMethodDef *method) {
  PyObject *descriptor = PyDescr_NewMethod(reinterpret_cast<PyTypeObject *>(type.ptr()), method);
  if (!descriptor) throw nb::python_error();
  nb::setattr(type, method->ml_name, nb::steal(descriptor));
}

void bind_host(nb::module_ &m) {
  static PyMethodDef methods[] = {
      {"__enter__", enter, METH_NOARGS, nullptr},
      {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)),
       METH_FASTCALL, nullptr}};
  nb::class_<HostAccess> type(m, "_HostAccess");
  for (PyMethodDef &method : methods) add_method(type, &method);
  m.def("_host_access", host_access, nb::arg("array").none(), nb::arg("mode").none(),
        nb::sig("def _host_access(array: object, mode: object) -> typing.Any"));
}
