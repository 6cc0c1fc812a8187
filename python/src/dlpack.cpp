/* dlpack.cpp - arrays to and from other libraries by DLPack. */
#include "array.h"

#include <cstring>
#include <dlfcn.h>

namespace {

PyObject *of_cpu; /* the device of RAM */

char const *const versioned_name = "dltensor_versioned", *const unversioned_name = "dltensor";

/* ---- export ---- */

/* Ends an exported tensor as the library would, and then the use of its memory and of its
 * context. */
template <class Tensor> struct Export {
  void *manager;
  void (*deleter)(Tensor *);
  Memory *memory;

  static void end(Tensor *tensor) {
    Export *self = static_cast<Export *>(tensor->manager_ctx);
    Memory *memory = self->memory;
    tensor->manager_ctx = self->manager;
    tensor->deleter = self->deleter;
    delete self;
    tensor->deleter(tensor);
    memory->exports--;
    memory->drop();
  }

  static Tensor *begin(Tensor *tensor, Memory *memory) {
    tensor->manager_ctx = new Export{tensor->manager_ctx, tensor->deleter, memory->use()};
    tensor->deleter = end;
    memory->exports++;
    return tensor;
  }
};

template <class Tensor> void end_tensor(Tensor *tensor) {
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}

/* The end of a capsule: a tensor that no consumer has taken ends with it. */
template <class Tensor> void end_capsule(PyObject *capsule, char const *name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  end_tensor(static_cast<Tensor *>(PyCapsule_GetPointer(capsule, name)));
}
void end_versioned(PyObject *capsule) {
  end_capsule<umemDLManagedTensorVersioned>(capsule, versioned_name);
}
void end_unversioned(PyObject *capsule) {
  end_capsule<umemDLManagedTensor>(capsule, unversioned_name);
}

template <class Tensor, auto make>
Tensor *make_tensor(Array &array, umemDLPackOptions const &options) {
  if (array.named)
    raise(umemNotSupportedError, "DLPack has no elements of %s",
          nb::cast<std::string>(nb::str(dtype_of(array))).c_str());
  Hold hold(array, options.copy != umemDLCopyAlways);
  Tensor *tensor;
  array_call(hold.context()->quick,
             [&](umemStatusType *status) { tensor = make(hold.get(), &options, status); });
  return Export<Tensor>::begin(tensor, hold.memory());
}

nb::object new_capsule(void *tensor, char const *name, PyCapsule_Destructor end) {
  PyObject *capsule = PyCapsule_New(tensor, name, end);
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

umemDLPackOptions read_options(nb::handle stream, nb::handle device, nb::handle copy) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  if (!stream.is_none()) options.stream = to_index(stream, "the stream");
  if (!device.is_none()) {
    int64_t code = to_index(nb::object(device[0]), "the device code");
    if (code < 0 || code > INT32_MAX) raise(umemValueError, "the device code is out of range");
    options.device = static_cast<umemDLDeviceCode>(code);
    options.copy = umemDLCopyIfNeeded;
  }
  if (!copy.is_none()) {
    int copies = PyObject_IsTrue(copy.ptr());
    if (copies < 0) throw nb::python_error();
    options.copy = copies ? umemDLCopyAlways : umemDLCopyNever;
  }
  return options;
}

/* Whether the consumer takes versioned tensors: max_version is None, or (major, minor). */
bool is_versioned(nb::handle max_version) {
  if (max_version.is_none()) return false;
  if (!PyTuple_CheckExact(max_version.ptr()) || PyTuple_Size(max_version.ptr()) < 1)
    return to_index(nb::object(max_version[0]), "the version") >= 1;
  long major = PyLong_AsLong(PyTuple_GetItem(max_version.ptr(), 0));
  if (major == -1 && PyErr_Occurred()) throw nb::python_error();
  return major >= 1;
}

nb::object to_dlpack(Array &array, nb::handle stream, nb::handle max_version, nb::handle device,
                     nb::handle copy) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  if (!stream.is_none() || !device.is_none() || !copy.is_none())
    options = read_options(stream, device, copy);
  if (is_versioned(max_version))
    return new_capsule(
        make_tensor<umemDLManagedTensorVersioned, umemArray_to_dlpack>(array, options),
        versioned_name, end_versioned);
  return new_capsule(
      make_tensor<umemDLManagedTensor, umemArray_to_dlpack_unversioned>(array, options),
      unversioned_name, end_unversioned);
}

nb::object device_of(Array &array) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.stream = UMEM_DLPACK_NO_STREAM;
  Hold hold(array);
  if (hold.context()->quick) return nb::borrow(of_cpu);
  umemDLManagedTensorVersioned *tensor;
  array_call(false, [&](umemStatusType *status) {
    tensor = umemArray_to_dlpack(hold.get(), &options, status);
  });
  umemDLDevice device = tensor->dl_tensor.device;
  end_tensor(tensor);
  return nb::make_tuple(device.device_type, device.device_id);
}

/* ---- the methods, which libraries call for each array ---- */

PyObject *option_names[4]; /* of to_dlpack, in the order of its parameters */

/* Python's own error for what only those get who call it themselves. */
[[noreturn]] void refuse_options() {
  raise(umemTypeError, "Array.__dlpack__ takes stream, max_version, dl_device and copy, by name");
}

int find_option(PyObject *name) {
  for (int i = 0; i < 4; i++)
    if (name == option_names[i]) return i;
  for (int i = 0; i < 4; i++)
    if (PyUnicode_Compare(name, option_names[i]) == 0) return i;
  refuse_options();
}

PyObject *dlpack_method(PyObject *self, PyObject *const *values, Py_ssize_t count,
                        PyObject *names) {
  return method_call(self, [&](Array &array) {
    if (count) refuse_options();
    PyObject *options[4] = {Py_None, Py_None, Py_None, Py_None};
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; i++)
      options[find_option(PyTuple_GetItem(names, i))] = values[i];
    return to_dlpack(array, options[0], options[1], options[2], options[3]);
  });
}

PyObject *device_method(PyObject *self, PyObject *) { return method_call(self, device_of); }

/* ---- import ---- */

PyObject *make_place; /* function of (device code, number) that returns the place of such memory */
PyObject *is_immutable;   /* function of an object that has given a tensor without flags */
PyObject *find_read_only; /* function of an object that has given no tensor, as those lack flags */

/* The place of a tensor that names none. */
nb::object place_of_device(umemDLDevice device) {
  if (device.device_type == umemDLCPU || device.device_type == umemDLCUDAHost)
    return nb::borrow(default_host());
  return nb::handle(make_place)(device.device_type, device.device_id);
}

/* The tensor of a capsule that nobody has taken, which is used from now on. NULL if another thread
 * was first. */
void *claim(nb::handle capsule, char const *name, char const *used) {
  TablesLock lock(tables);
  if (!PyCapsule_IsValid(capsule.ptr(), name)) return nullptr;
  void *tensor = PyCapsule_GetPointer(capsule.ptr(), name);
  return PyCapsule_SetName(capsule.ptr(), used) == 0 ? tensor : nullptr;
}

/* NULL if the capsule has no such tensor. A tensor that cannot be an array stays in its capsule. */
template <class Tensor, auto import>
nb::object take_tensor(nb::handle capsule, nb::handle given, bool read_only, char const *name,
                       char const *used) {
  Tensor *tensor = static_cast<Tensor *>(claim(capsule, name, used));
  if (!tensor) return {};
  try {
    nb::object place =
        given.is_none() ? place_of_device(tensor->dl_tensor.device) : nb::borrow(given);
    Use context = place_of(place).open();
    umemArray *handle;
    array_call(true,
               [&](umemStatusType *status) { handle = import(context->ctx, tensor, status); });
    tensor = nullptr; /* the array has it */
    return wrap_array(read_only ? keep_read_only(handle) : handle, context.get(), place);
  } catch (nb::python_error &) {
    if (tensor) PyCapsule_SetName(capsule.ptr(), name);
    throw;
  }
}

nb::object take_capsule(nb::handle object, nb::handle capsule, nb::handle place) {
  nb::object array = take_tensor<umemDLManagedTensorVersioned, umemArray_from_dlpack>(
      capsule, place, false, versioned_name, "used_dltensor_versioned");
  if (array.is_valid()) return array;
  bool read_only = nb::cast<bool>(nb::handle(is_immutable)(object));
  array = take_tensor<umemDLManagedTensor, umemArray_from_dlpack_unversioned>(
      capsule, place, read_only, unversioned_name, "used_dltensor");
  if (array.is_valid()) return array;
  raise(umemTypeError, "__dlpack__ must return a capsule of a tensor that nobody has taken");
}

/* ---- questions to others ---- */

/* Of the stable ABI only from Python 3.12 on, but in every Python. */
using CallMethod = PyObject *(PyObject *name, PyObject *const *arguments, size_t count,
                              PyObject *keywords);
CallMethod *call_method;

/* Made with the module. */
PyObject *name_of_method, *version, *of_version, *of_stream, *of_both;

void make_names() {
  auto tuple = [](auto... words) { return nb::make_tuple(words...).release().ptr(); };
  auto word = [](char const *text) { return nb::steal(PyUnicode_InternFromString(text)); };
  name_of_method = word("__dlpack__").release().ptr();
  version = tuple(UMEM_DLPACK_MAJOR, UMEM_DLPACK_MINOR);
  of_version = tuple(word("max_version"));
  of_stream = tuple(word("stream"));
  of_both = tuple(word("max_version"), word("stream"));
  of_cpu = tuple(static_cast<int>(umemDLCPU), 0);
  char const *names[] = {"stream", "max_version", "dl_device", "copy"};
  for (int i = 0; i < 4; i++) option_names[i] = word(names[i]).release().ptr();
  call_method = reinterpret_cast<CallMethod *>(dlsym(RTLD_DEFAULT, "PyObject_VectorcallMethod"));
  if (!call_method) raise(umemNotSupportedError, "this Python has no PyObject_VectorcallMethod");
}

/* The capsule of an object; not valid, with an exception of Python, if there is none. */
nb::object call_dlpack(nb::handle object, nb::handle stream, bool versioned) {
  bool streamed = !stream.is_none();
  PyObject *arguments[] = {object.ptr(), versioned ? version : stream.ptr(), stream.ptr()};
  PyObject *keywords = versioned ? streamed ? of_both : of_version : streamed ? of_stream : nullptr;
  return nb::steal(call_method(name_of_method, arguments, 1, keywords));
}

nb::object ask(nb::handle object, nb::handle stream) {
  nb::object capsule = call_dlpack(object, stream, true);
  if (capsule.is_valid()) return capsule;
  nb::python_error error;
  if (error.matches(PyExc_AttributeError) && !nb::hasattr(object, name_of_method))
    raise(umemTypeError, "%s has no __dlpack__", type_text(object).c_str());
  if (!error.matches(PyExc_TypeError)) throw error;
  capsule = call_dlpack(object, stream, false); /* of a producer before version 1.0 */
  if (!capsule.is_valid()) throw nb::python_error();
  return capsule;
}

/* The stream on which the memory is used, in the words of the array API. None: that of the host, or
 * CUDA's legacy default stream, in whose order a umem.Cuda is. */
nb::object stream_of(nb::handle place) {
  if (place.is_none()) return nb::none();
  Use context = place_of(place).open();
  umemInfo info = UMEM_INFO_INIT;
  unlocked([&] { umem_get_info(context->ctx, &info); });
  if (info.stream == UMEM_UNKNOWN || info.stream == 0) return nb::none();
  return nb::int_(info.stream);
}

nb::object share(nb::handle object, nb::handle place) {
  nb::object capsule;
  try {
    capsule = ask(object, stream_of(place));
  } catch (nb::python_error &error) {
    if (!error.matches(PyExc_BufferError) || !place.is_none()) throw;
    nb::object array = nb::handle(find_read_only)(object);
    if (array.is_none()) throw;
    return array;
  }
  return take_capsule(object, capsule, place);
}

nb::object from_dlpack(nb::handle object, nb::handle named, nb::handle copies) {
  nb::object place = named.is_none() ? nb::borrow(named) : find_place(named);
  nb::object array = share(object, place);
  int copy = PyObject_IsTrue(copies.ptr());
  if (copy < 0) throw nb::python_error();
  if (!copy) return array;
  Array &shared = array_of(array);
  return copy_array(shared, place_of_result(shared, place), umemArray_type(Look(shared).get()));
}

} // namespace

void bind_dlpack(nb::module_ &m, nb::class_<Array> &type) {
  make_names();
  static PyMethodDef methods[] = {
      {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack_method)),
       METH_FASTCALL | METH_KEYWORDS,
       "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
       "The array as a capsule of DLPack, as the array API says. Raises BufferError where a copy "
       "would be needed\nbut is not allowed."},
      {"__dlpack_device__", device_method, METH_NOARGS,
       "__dlpack_device__($self, /)\n--\n\nThe device code and number of DLPack."}};
  for (PyMethodDef &method : methods) add_method(type, &method);
  m.def("_from_dlpack", from_dlpack, nb::arg("object").none(), nb::arg("place").none(),
        nb::arg("copy"),
        nb::sig("def _from_dlpack(object: object, place: object, copy: object) -> ArrayType"));
  m.def("_set_imports", [](nb::object places, nb::object immutable, nb::object read_only) {
    make_place = places.release().ptr();
    is_immutable = immutable.release().ptr();
    find_read_only = read_only.release().ptr();
  });
}
