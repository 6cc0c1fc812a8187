/* dlpack_table.cpp - DLPack's tables of functions, by which libraries exchange arrays without
 * capsules: those of other libraries, and that of umem.Array. */
#include "dlpack.h"

namespace {

PyObject *name_of_table; /* the attribute of a class */

/* Functions of umem/exchange.py. */
PyObject *work_place; /* of (): the place where the calling thread works, umem.default() */
PyObject *come_after; /* of (place, number, stream): later work of place starts after the stream */

/* ---- the tables of other libraries ---- */

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
    *tensor = export_versioned(array, options);
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
    check_dlpack_type(array);
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
    nb::object array = import_versioned(tensor, nb::none());
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
    tensor = make_versioned(handle, memory, options);
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

} // namespace

umemDLPackExchange const *dlpack_table_of(nb::handle object) {
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

nb::object share_by_table(umemDLPackExchange const *table, nb::handle object, nb::handle place) {
  umemDLManagedTensorVersioned *tensor = nullptr;
  try {
    call_table("managed_tensor_from_py_object_no_sync",
               [&] { return table->managed_tensor_from_py_object_no_sync(object.ptr(), &tensor); });
    if (!tensor) raise(umemRuntimeError, "DLPack's exchange table has given no tensor");
    umemDLDevice device = tensor->dl_tensor.device;
    nb::object array = import_versioned(tensor, place);
    follow_producer(table, array_of(array), device);
    return array;
  } catch (nb::python_error &) {
    end_tensor(tensor);
    throw;
  }
}

void set_table_imports(nb::object work, nb::object after) {
  work_place = work.release().ptr();
  come_after = after.release().ptr();
}

void add_dlpack_table(nb::class_<Array> &type) {
  name_of_table = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  nb::object capsule =
      nb::steal(PyCapsule_New(const_cast<umemDLPackExchange *>(&own_table), table_name, nullptr));
  if (!name_of_table || !capsule.is_valid()) throw nb::python_error();
  nb::setattr(type, name_of_table, capsule);
}
