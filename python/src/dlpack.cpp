/* dlpack.cpp - arrays to and from other libraries by DLPack. */
#include "array.h"

#include <cstring>
#include <dlfcn.h>

namespace {

PyObject *of_cpu; /* the device of RAM */

char const *const versioned_name = "dltensor_versioned", *const unversioned_name = "dltensor";

/* ---- export ---- */

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

/* Refuses types that only NumPy has. */
void check_type(Array &array) {
  if (array.named)
    raise(umemNotSupportedError, "DLPack has no elements of %s",
          nb::cast<std::string>(nb::str(dtype_of(array))).c_str());
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
  check_type(array);
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
    return new_capsule(check_number(export_array<umemDLManagedTensorVersioned, umemArray_to_dlpack>(
                                        array, options),
                                    device),
                       versioned_name, end_versioned);
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
PyObject *work_place;     /* of (): the place where the calling thread works, umem.default() */
PyObject *come_after; /* of (place, number, stream): later work of place starts after the stream */

/* The place of a tensor that names none. */
nb::object place_of_device(umemDLDevice device) {
  if (device.device_type == umemDLCPU || device.device_type == umemDLCUDAHost)
    return nb::borrow(default_host());
  return call_python(make_place, device.device_type, device.device_id);
}
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
PyObject *name_of_method, *name_of_table, *version, *of_version, *of_stream, *of_both;

void make_names() {
  auto tuple = [](auto... words) { return nb::make_tuple(words...).release().ptr(); };
  auto word = [](char const *text) { return nb::steal(PyUnicode_InternFromString(text)); };
  name_of_method = word("__dlpack__").release().ptr();
  name_of_table = word("__dlpack_c_exchange_api__").release().ptr();
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

/* ---- tables of functions ---- */

/* Classes whose table is known, or that can have none. They never end; under tables. */
struct {
  PyTypeObject *type;
  umemDLPackExchange const *table; /* NULL: it has none */
} known_tables[8];

char const *const table_name = "dlpack_exchange_api";

void remember_table(PyTypeObject *type, umemDLPackExchange const *table) {
  unsigned long const immutable = 1ul << 8; /* Py_TPFLAGS_IMMUTABLETYPE: no attribute comes later */
  if (!table && !(PyType_GetFlags(type) & immutable)) return;
  TablesLock lock(tables);
  for (auto &one : known_tables) {
    if (one.type && one.type != type) continue;
    if (!one.type) Py_INCREF(reinterpret_cast<PyObject *>(type));
    one = {type, table};
    return;
  }
}

/* NULL for an attribute that is no table, or of no version that umem knows: the object then has
 * other ways. */
umemDLPackExchange const *read_table(nb::handle attribute) {
  if (!PyCapsule_IsValid(attribute.ptr(), table_name)) return nullptr;
  umemStatusType status = umemOK;
  umemDLPackExchange const *table = umem_find_dlpack_exchange(
      static_cast<umemDLPackExchangeHeader *>(PyCapsule_GetPointer(attribute.ptr(), table_name)),
      &status);
  if (!table) umem_thread_clear();
  return table;
}

/* The table of the class of an object; NULL if it has none. */
umemDLPackExchange const *table_of(nb::handle object) {
  PyTypeObject *type = Py_TYPE(object.ptr());
  {
    TablesLock lock(tables);
    for (auto const &one : known_tables)
      if (one.type == type) return one.table;
  }
  nb::object attribute =
      nb::steal(PyObject_GetAttr(reinterpret_cast<PyObject *>(type), name_of_table));
  if (!attribute.is_valid()) {
    nb::python_error error;
    if (!error.matches(PyExc_AttributeError)) throw error;
  }
  umemDLPackExchange const *table = attribute.is_valid() ? read_table(attribute) : nullptr;
  remember_table(type, table);
  return table;
}

/* Calls a function of a table, which returns 0, or -1 with an exception of Python. */
template <class F> void call_table(char const *what, F &&function) {
  int failed = -1;
  try {
    failed = function();
  } catch (abi::__forced_unwind &) {
    throw;
  } catch (std::exception const &error) { /* which it must not */
    PyErr_Clear();
    raise(umemRuntimeError, "%s of DLPack's exchange table has thrown: %s", what, error.what());
  } catch (...) {
    PyErr_Clear();
    raise(umemRuntimeError, "%s of DLPack's exchange table has thrown", what);
  }
  if (PyErr_Occurred()) throw nb::python_error();
  if (failed)
    raise(umemRuntimeError, "%s of DLPack's exchange table has returned %d without an exception",
          what, failed);
}

/* The queue of a context on a GPU, which remains the same: asked once. */
struct Queue {
  int64_t gpu;     /* -1: of no GPU */
  uint64_t stream; /* 0: CUDA's legacy default stream */

  explicit Queue(Context *context) : gpu(-1), stream(0) {
    if (!context->can(umemDeviceAccessible)) return;
    stream = context->stream.load(std::memory_order_acquire);
    if (stream == Context::not_asked) {
      umemInfo info = UMEM_INFO_INIT;
      unlocked([&] { umem_get_info(context->ctx, &info); });
      context->gpu.store(info.ordinal, std::memory_order_relaxed);
      stream = info.stream == UMEM_UNKNOWN || info.stream == 1 ? 0 : info.stream;
      context->stream.store(stream, std::memory_order_release);
    }
    gpu = context->gpu.load(std::memory_order_relaxed);
  }
};

bool has_streams(umemDLDevice device) {
  return device.device_type == umemDLCUDA || device.device_type == umemDLCUDAManaged;
}

/* Puts later work on the array after that of the stream on which its producer works. */
void follow_producer(umemDLPackExchange const *table, Array &array, umemDLDevice device) {
  if (!has_streams(device) || !table->current_work_stream) return;
  void *stream = nullptr;
  call_table("current_work_stream", [&] {
    return table->current_work_stream(device.device_type, device.device_id, &stream);
  });
  uint64_t number = reinterpret_cast<uintptr_t>(stream);
  if (number == 1) number = 0; /* CUDA's other name of it */
  Queue queue(Hold(array).context());
  if (number != queue.stream) nb::borrow(come_after)(nb::borrow(array.place), queue.gpu, number);
}

nb::object share_by_table(umemDLPackExchange const *table, nb::handle object, nb::handle place) {
  umemDLManagedTensorVersioned *tensor = nullptr;
  try {
    call_table("managed_tensor_from_py_object_no_sync",
               [&] { return table->managed_tensor_from_py_object_no_sync(object.ptr(), &tensor); });
    if (!tensor) raise(umemRuntimeError, "DLPack's exchange table has given no tensor");
    umemDLDevice device = tensor->dl_tensor.device;
    nb::object array = import_tensor<umemArray_from_dlpack>(tensor, place, false);
    follow_producer(table, array_of(array), device);
    return array;
  } catch (nb::python_error &) {
    end_tensor(tensor);
    throw;
  }
}

/* ---- the table of umem.Array ---- */

/* The stream on which the calling thread works: that of umem.default(), if it is on this GPU, else
 * CUDA's legacy default stream, 0. */
uint64_t work_stream(umemDLDevice device) {
  if (!has_streams(device)) return 0;
  nb::object place = call_python(work_place);
  Use context = place_of(place).open();
  Queue queue(context.get());
  return queue.gpu == device.device_id ? queue.stream : 0;
}

/* The work stream of the GPU of an array, as an export names it. */
int64_t stream_for(Context *context) {
  Queue queue(context);
  if (queue.gpu < 0) return UMEM_DLPACK_DEFAULT_STREAM;
  uint64_t stream = work_stream({umemDLCUDA, static_cast<int32_t>(queue.gpu)});
  return stream ? static_cast<int64_t>(stream) : UMEM_DLPACK_DEFAULT_STREAM;
}

template <class F> int table_function(F &&body) noexcept {
  bool done = false;
  nb::object none = nb::steal(raised([&] {
    body();
    done = true;
    return nb::none();
  }));
  return done ? 0 : -1;
}

int table_export(void *object, umemDLManagedTensorVersioned **tensor) {
  return table_function([&] {
    Array &array = array_of(static_cast<PyObject *>(object));
    umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
    if (!Look(array).context()->quick) options.stream = stream_for(Hold(array).context());
    *tensor = export_array<umemDLManagedTensorVersioned, umemArray_to_dlpack>(array, options);
  });
}

/* Without a GIL, another thread may release the array meanwhile. */
#if defined(NB_FREE_THREADED)
constexpr bool keeps_descriptions = false;
#else
constexpr bool keeps_descriptions = true;
#endif

/* The address is given away, as the end of its use is not known: the memory then lives as long as
 * the array. */
int table_describe(void *object, umemDLTensor *tensor) {
  return table_function([&] {
    Array &array = array_of(static_cast<PyObject *>(object));
    if (keeps_descriptions && array.described && array.is_open(true) &&
        !umemArray_is_read_only(array.handle)) {
      *tensor = *array.described;
      return;
    }
    check_type(array);
    Look look(array, true);
    hand_out(array);
    Context *context = look.context();
    int64_t stream = context->quick ? UMEM_DLPACK_DEFAULT_STREAM : stream_for(context);
    array_call(context->quick, [&](umemStatusType *status) {
      umemArray_describe_dlpack(look.get(), stream, tensor, status);
    });
    if (keeps_descriptions && context->quick)
      array.described = std::make_unique<umemDLTensor>(*tensor);
  });
}

int table_import(umemDLManagedTensorVersioned *tensor, void **object) {
  return table_function([&] {
    if (!tensor) raise(umemValueError, "the tensor is NULL");
    nb::object array = import_tensor<umemArray_from_dlpack>(tensor, nb::none(), false);
    *object = array.release().ptr();
  });
}

int table_stream(int32_t type, int32_t number, void **stream) {
  *stream = nullptr;
  return table_function([&] { *stream = reinterpret_cast<void *>(work_stream({type, number})); });
}

/* Where a new tensor for this device is: at umem.default() if that is such memory. */
nb::object place_of_new(umemDLDevice device) {
  nb::object place = call_python(work_place);
  Use context = place_of(place).open();
  bool is_on_gpu = context->can(umemDeviceAccessible);
  bool is_host = context->can(umemCpuReadable | umemWritable) && !context->can(umemOffsets);
  if (device.device_type == umemDLCPU && is_host && !is_on_gpu) return place;
  if (device.device_type == umemDLCUDA && is_on_gpu && !context->can(umemCpuReadable) &&
      Queue(context.get()).gpu == device.device_id)
    return place;
  return place_of_device(device);
}

umemDLManagedTensorVersioned *new_tensor(umemDLTensor const *prototype) {
  nb::object place = place_of_new(prototype->device);
  umemDLDataType type = prototype->dtype;
  Use context = place_of(place).open();
  umemArray *handle = nullptr;
  array_call(context->quick, [&](umemStatusType *status) {
    handle = umemArray_create(context->ctx, UMEM_ELEMENT(type.code, type.bits, type.lanes),
                              prototype->ndim, prototype->shape, nullptr, status);
  });
  std::unique_ptr<umemArray, decltype(&umemArray_release)> owner(handle, umemArray_release);
  Memory *memory = new Memory(context.get());
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.device = static_cast<umemDLDeviceCode>(prototype->device.device_type);
  options.stream = UMEM_DLPACK_NO_STREAM; /* nothing is queued on new memory but its allocation */
  if (!context->quick) options.stream = stream_for(context.get());
  Use kept(context); /* until the handle has ended */
  umemDLManagedTensorVersioned *tensor;
  try {
    tensor =
        make_tensor<umemDLManagedTensorVersioned, umemArray_to_dlpack>(handle, memory, options);
  } catch (nb::python_error &) {
    memory->drop();
    throw;
  }
  memory->drop(); /* the tensor is a user */
  return tensor;
}

/* May be called by any thread, with the GIL or without. */
int table_allocate(umemDLTensor *prototype, umemDLManagedTensorVersioned **tensor, void *error_ctx,
                   void (*set_error)(void *error_ctx, char const *kind, char const *message)) {
  Gil gil;
  int failed = table_function([&] {
    if (!prototype || !tensor) raise(umemValueError, "the prototype is NULL");
    *tensor = new_tensor(prototype);
  });
  if (!failed) return 0;
  try {
    nb::python_error error;
    std::string const kind = nb::type_name(error.type()).c_str();
    std::string const message = nb::str(error.value()).c_str();
    if (set_error) set_error(error_ctx, kind.substr(kind.rfind('.') + 1).c_str(), message.c_str());
  } catch (std::exception const &) {
    if (set_error) set_error(error_ctx, "RuntimeError", "the allocation has failed");
  }
  return failed;
}

umemDLPackExchange const own_table = {{{UMEM_DLPACK_MAJOR, UMEM_DLPACK_MINOR}, nullptr},
                                      table_allocate,
                                      table_export,
                                      table_import,
                                      table_describe,
                                      table_stream};

/* ---- umem.from_dlpack ---- */

nb::object share(nb::handle object, nb::handle place) {
  if (umemDLPackExchange const *table = table_of(object))
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
  nb::object capsule =
      nb::steal(PyCapsule_New(const_cast<umemDLPackExchange *>(&own_table), table_name, nullptr));
  if (!capsule.is_valid()) throw nb::python_error();
  nb::setattr(type, name_of_table, capsule);
  m.def("_set_imports", [](nb::object places, nb::object immutable, nb::object read_only,
                           nb::object work, nb::object after) {
    make_place = places.release().ptr();
    is_immutable = immutable.release().ptr();
    find_read_only = read_only.release().ptr();
    work_place = work.release().ptr();
    come_after = after.release().ptr();
  });
}
