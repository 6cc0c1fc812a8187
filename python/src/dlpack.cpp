/* dlpack.cpp - arrays to and from other libraries by DLPack: its tensors in capsules, and
 * umem.from_dlpack. */
#include "dlpack.h"

#include <cstring>
#include <dlfcn.h>

namespace {

PyObject *of_cpu; /* the device of RAM */

char const *const versioned_name = "dltensor_versioned", *const unversioned_name = "dltensor";

/* ---- export ---- */

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

/* The tensor of handle, as a user of memory. */
template <class Tensor, auto make>
Tensor *make_tensor(umemArray *handle, Memory *memory, umemDLPackOptions &options) {
  Tensor *tensor = nullptr;
  options.ended = end_export;
  options.user = begin_export(memory);
  if (memory->context->quick) { /* runs no function of Python; a failure comes again below */
    tensor = make(handle, &options, nullptr);
    if (tensor) return tensor;
  }
  Call call;
  {
    Unlock unlock(!memory->context->quick);
    tensor = make(handle, &options, nullptr);
  }
  if (!tensor) end_export(memory);
  call.end();
  return tensor;
}

template <class Tensor, auto make> Tensor *export_array(Array &array, umemDLPackOptions &options) {
  check_dlpack_type(array);
  bool writes = options.copy != umemDLCopyAlways;
  {
    Look look(array, writes);
    if (look.context()->quick) /* no other thread runs meanwhile */
      return make_tensor<Tensor, make>(look.get(), look.memory(), options);
  }
  Hold hold(array, writes);
  return make_tensor<Tensor, make>(hold.get(), hold.memory(), options);
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

/* The tensor, if it is in the memory that is asked for: of a GPU of this number. */
template <class Tensor> Tensor *check_number(Tensor *tensor, nb::handle device) {
  int32_t const held = tensor->dl_tensor.device.device_id;
  try {
    if (!device.is_none() && to_index(nb::object(device[1]), "the device number") != held)
      raise(umemNotSupportedError, "the array is in memory of number %d of this device code", held);
  } catch (nb::python_error &) {
    end_tensor(tensor);
    throw;
  }
  return tensor;
}

nb::object to_dlpack(Array &array, nb::handle stream, nb::handle max_version, nb::handle device,
                     nb::handle copy) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  if (!stream.is_none() || !device.is_none() || !copy.is_none())
    options = read_options(stream, device, copy);
  if (is_versioned(max_version))
    return new_capsule(check_number(export_versioned(array, options), device), versioned_name,
                       end_versioned);
  return new_capsule(
      check_number(
          export_array<umemDLManagedTensor, umemArray_to_dlpack_unversioned>(array, options),
          device),
      unversioned_name, end_unversioned);
}

nb::object device_of(Array &array) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.stream = UMEM_DLPACK_NO_STREAM;
  if (Look(array).context()->quick) return nb::borrow(of_cpu);
  Hold hold(array);
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

/* Functions of umem/exchange.py. */
PyObject *make_place;     /* of (device code, number): the place of such memory */
PyObject *is_immutable;   /* of an object that has given a tensor without flags */
PyObject *find_read_only; /* of an object that has given no tensor, as those lack flags */

/* The place of a tensor that names none. */
nb::object place_of_tensor(umemDLManagedTensor const *tensor) {
  return place_of_device(tensor->dl_tensor.device);
}
/* Of another version umem knows no more than that the import refuses it. */
nb::object place_of_tensor(umemDLManagedTensorVersioned const *tensor) {
  if (tensor->version.major != UMEM_DLPACK_MAJOR) return nb::borrow(default_host());
  return place_of_device(tensor->dl_tensor.device);
}

/* The array of a tensor, which becomes NULL where the array has it. given: the place, or None. */
template <auto import, class Tensor>
nb::object import_tensor(Tensor *&tensor, nb::handle given, bool read_only) {
  nb::object place = given.is_none() ? place_of_tensor(tensor) : nb::borrow(given);
  Use context = place_of(place).open();
  umemArray *handle = nullptr;
  array_call(true, [&](umemStatusType *status) { handle = import(context->ctx, tensor, status); });
  tensor = nullptr;
  return wrap_array(read_only ? keep_read_only(handle) : handle, context.get(), place);
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
nb::object take_tensor(nb::handle capsule, nb::handle place, bool read_only, char const *name,
                       char const *used) {
  Tensor *tensor = static_cast<Tensor *>(claim(capsule, name, used));
  if (!tensor) return {};
  try {
    return import_tensor<import>(tensor, place, read_only);
  } catch (nb::python_error &) {
    if (tensor) PyCapsule_SetName(capsule.ptr(), name);
    throw;
  }
}

nb::object take_capsule(nb::handle object, nb::handle capsule, nb::handle place) {
  nb::object array = take_tensor<umemDLManagedTensorVersioned, umemArray_from_dlpack>(
      capsule, place, false, versioned_name, "used_dltensor_versioned");
  if (array.is_valid()) return array;
  bool read_only = nb::cast<bool>(call_python(is_immutable, object));
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
  return nb::steal(in_python([&] { return call_method(name_of_method, arguments, 1, keywords); }));
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

/* ---- umem.from_dlpack ---- */

nb::object share(nb::handle object, nb::handle place) {
  if (umemDLPackExchange const *table = dlpack_table_of(object))
    return share_by_table(table, object, place);
  nb::object capsule;
  try {
    capsule = ask(object, stream_of(place));
  } catch (nb::python_error &error) {
    if (!error.matches(PyExc_BufferError) || !place.is_none()) throw;
    nb::object array = call_python(find_read_only, object);
    if (array.is_none()) throw;
    return array;
  }
  return take_capsule(object, capsule, place);
}

nb::object from_dlpack(nb::handle object, nb::handle named, nb::handle copies) {
  nb::object place = named.is_none() ? nb::borrow(named) : find_place(named);
  nb::object array = named.is_none() ? share_numpy(object) : nb::object();
  if (!array.is_valid()) array = share(object, place);
  if (copies.ptr() == Py_False) return array;
  int copy = PyObject_IsTrue(copies.ptr());
  if (copy < 0) throw nb::python_error();
  if (!copy) return array;
  Array &shared = array_of(array);
  return copy_array(shared, place_of_result(shared, place), umemArray_type(Look(shared).get()));
}

/* As a function of C, without what nanobind adds to a call. */
PyObject *from_dlpack_function(PyObject *, PyObject *const *values, Py_ssize_t count,
                               PyObject *names) {
  static char const *const parameters[] = {"object", "place", "copy"};
  return raised([&] {
    PyObject *given[] = {nullptr, Py_None, Py_False};
    if (!read_arguments(parameters, 2, values, count, names, given) || !given[0])
      raise(umemTypeError, "umem.from_dlpack expects (object, place=None, *, copy=False)");
    return from_dlpack(given[0], given[1], given[2]);
  });
}

} // namespace

void check_dlpack_type(Array &array) {
  if (array.named)
    raise(umemNotSupportedError, "DLPack has no elements of %s",
          nb::cast<std::string>(nb::str(dtype_of(array))).c_str());
}

umemDLManagedTensorVersioned *make_versioned(umemArray *handle, Memory *memory,
                                             umemDLPackOptions &options) {
  return make_tensor<umemDLManagedTensorVersioned, umemArray_to_dlpack>(handle, memory, options);
}

umemDLManagedTensorVersioned *export_versioned(Array &array, umemDLPackOptions &options) {
  return export_array<umemDLManagedTensorVersioned, umemArray_to_dlpack>(array, options);
}

nb::object import_versioned(umemDLManagedTensorVersioned *&tensor, nb::handle place) {
  return import_tensor<umemArray_from_dlpack>(tensor, place, false);
}

nb::object place_of_device(umemDLDevice device) {
  if (device.device_type == umemDLCPU || device.device_type == umemDLCUDAHost)
    return nb::borrow(default_host());
  return call_python(make_place, device.device_type, device.device_id);
}

nb::object share_dlpack(nb::handle object) { return share(object, nb::none()); }

void add_dlpack_methods(nb::handle type) {
  static PyMethodDef methods[] = {
      {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack_method)),
       METH_FASTCALL | METH_KEYWORDS,
       "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
       "The array as a capsule of DLPack, as the array API says. Raises BufferError where a copy "
       "would be needed\nbut is not allowed."},
      {"__dlpack_device__", device_method, METH_NOARGS,
       "__dlpack_device__($self, /)\n--\n\nThe device code and number of DLPack."}};
  for (PyMethodDef &method : methods) add_method(type, &method);
}

void bind_dlpack(nb::module_ &m, nb::class_<Array> &type) {
  make_names();
  add_dlpack_methods(type);
  static PyMethodDef function = {
      "from_dlpack",
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_dlpack_function)),
      METH_FASTCALL | METH_KEYWORDS,
      "from_dlpack($module, object, place=None, *, copy=False)\n--\n\n"
      "An array over the memory of another library's array, which stays alive; by DLPack.\n\n"
      "Parameters\n"
      "----------\n"
      "object : object with __dlpack_c_exchange_api__ or __dlpack__\n"
      "place : umem.Place, optional\n"
      "    A place of that memory. Default: RAM, or a umem.Cuda of its GPU.\n"
      "copy : bool\n"
      "    Whether to make a copy on that place.\n\n"
      "Raises\n"
      "------\n"
      "umem.NotSupportedError, which is also a BufferError\n"
      "    umem has no place for this memory, or it is not that of the place.\n"
      "umem.TypeError\n"
      "    object has no DLPack, or elements of a type that umem does not have."};
  nb::object module_name = nb::str("umem");
  m.attr("from_dlpack") = nb::steal(PyCFunction_NewEx(&function, m.ptr(), module_name.ptr()));
  add_dlpack_table(type);
  m.def("_set_imports", [](nb::object places, nb::object immutable, nb::object read_only,
                           nb::object work, nb::object after) {
    make_place = places.release().ptr();
    is_immutable = immutable.release().ptr();
    find_read_only = read_only.release().ptr();
    set_table_imports(std::move(work), std::move(after));
  });
}
