/* others.cpp - the allocators of NumPy, CuPy, PyTorch, and of others that call Python, over an
 * Allocator. */
#include "allocator.h"
#include "module.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <iterator>
#include <new>
#include <utility>

/* What Python has of an Allocator. */
struct AllocatorHandle {
  Allocator *allocator;
  explicit AllocatorHandle(Allocator *of) : allocator(of) {}
  AllocatorHandle(AllocatorHandle const &) = delete;
  AllocatorHandle &operator=(AllocatorHandle const &) = delete;
  ~AllocatorHandle() { allocator->drop(); }
};

[[noreturn]] static void raise_failure_of(Allocator *allocator) {
  if (has_exception()) raise_failure();
  raise(allocator->status(), "%s", allocator->message().c_str());
}

/* ---- NumPy: NEP 49 ---- */

namespace {
/* PyDataMem_Handler of NumPy's C API, version 1. */
struct NumpyHandler {
  char name[127];
  uint8_t version;
  void *ctx;
  void *(*malloc)(void *, size_t);
  void *(*calloc)(void *, size_t, size_t);
  void *(*realloc)(void *, void *, size_t);
  void (*free)(void *, void *, size_t);
};
} // namespace

/* Places in the table of NumPy's C API, which do not change. */
enum { numpy_feature_version = 211, numpy_set_handler = 304, numpy_get_handler = 305 };
enum { numpy_1_22 = 0xf };
static char const numpy_capsule[] = "mem_handler"; /* which NumPy prescribes */

static Allocator *allocator_of(void *ctx) { return static_cast<Allocator *>(ctx); }

/* The size that NumPy gives to free is not always that of the block. */
static NumpyHandler const numpy_functions = {
    "umem",
    1,
    nullptr,
    [](void *ctx, size_t nbytes) {
      return allocator_of(ctx)->allocate(nbytes, -1, Allocator::no_stream);
    },
    [](void *ctx, size_t count, size_t nbytes) {
      return allocator_of(ctx)->allocate_zeros(count, nbytes);
    },
    [](void *ctx, void *adr, size_t nbytes) { return allocator_of(ctx)->resize(adr, nbytes); },
    [](void *ctx, void *adr, size_t) { allocator_of(ctx)->free(adr, Allocator::no_stream); },
};

static void end_numpy_handler(PyObject *capsule) {
  auto handler = static_cast<NumpyHandler *>(PyCapsule_GetPointer(capsule, numpy_capsule));
  allocator_of(handler->ctx)->drop();
  delete handler;
}

/* Each array of NumPy has a reference to the handler that has allocated its memory. */
static nb::object make_numpy_handler(AllocatorHandle &handle, char const *name) {
  auto handler = new NumpyHandler(numpy_functions);
  snprintf(handler->name, sizeof handler->name, "umem: %s", name);
  handler->ctx = handle.allocator;
  handle.allocator->use();
  PyObject *capsule = PyCapsule_New(handler, numpy_capsule, end_numpy_handler);
  if (!capsule) {
    handle.allocator->drop();
    delete handler;
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

static void **numpy_table(nb::handle api) {
  auto table = static_cast<void **>(PyCapsule_GetPointer(api.ptr(), nullptr));
  if (!table) throw nb::python_error();
  auto version = reinterpret_cast<unsigned (*)()>(table[numpy_feature_version])();
  if (version < numpy_1_22)
    raise(umemNotSupportedError, "NumPy before 1.22 has no memory handlers");
  return table;
}

static nb::object get_numpy_handler(nb::handle api) {
  PyObject *now = reinterpret_cast<PyObject *(*)()>(numpy_table(api)[numpy_get_handler])();
  if (!now) throw nb::python_error();
  return nb::steal(now);
}

static nb::object replace_numpy_handler(nb::handle api, nb::handle handler) {
  PyObject *old = reinterpret_cast<PyObject *(*)(PyObject *)>(numpy_table(api)[numpy_set_handler])(
      handler.ptr());
  if (!old) throw nb::python_error();
  return nb::steal(old);
}

/* ---- CuPy: CFunctionAllocator ---- */

/* CuPy checks for exceptions after a result of -1, if Cython 3 has compiled it, but never for NULL.
 * It has the GIL. */
static void *cupy_malloc(void *param, size_t nbytes, int device) {
  Allocator *allocator = allocator_of(param);
  void *adr = allocator->allocate(nbytes, device, Allocator::no_stream);
  if (adr || !allocator->raises) return adr;
  try {
    raise_failure_of(allocator);
  } catch (nb::python_error &error) {
    error.restore();
  } catch (std::bad_alloc const &) {
    PyErr_NoMemory();
  }
  return reinterpret_cast<void *>(-1);
}

static void cupy_free(void *param, void *adr, int) {
  if (adr != reinterpret_cast<void *>(-1)) allocator_of(param)->free(adr, Allocator::no_stream);
}

/* Fails as cupy_malloc does. */
static void *cupy_probe(void *, size_t, int) {
  PyErr_SetString(PyExc_MemoryError, "probe");
  return reinterpret_cast<void *>(-1);
}

static std::tuple<uintptr_t, uintptr_t, uintptr_t, uintptr_t>
cupy_functions(AllocatorHandle &handle) {
  auto number = [](auto function) { return reinterpret_cast<uintptr_t>(function); };
  return {number(handle.allocator), number(cupy_malloc), number(cupy_free), number(cupy_probe)};
}

/* ---- PyTorch: functions without an argument for the user ---- */

namespace {
class OutOfMemory : public std::bad_alloc {
  char message_[UMEM_MESSAGE_SIZE];

public:
  explicit OutOfMemory(std::string const &message) noexcept {
    snprintf(message_, sizeof message_, "%s", message.c_str());
  }
  char const *what() const noexcept override { return message_; }
};
} // namespace

/* Each pair of functions serves one allocator at a time. */
static struct TorchSlot {
  std::atomic<Allocator *> allocator; /* owned; NULL: the slot is free */
  bool throws;
} torch_slots[16];

/* Under a MemPool PyTorch takes NULL as out of memory. As the allocator of the process it stores
 * NULL as an address. */
static void *torch_allocate(TorchSlot &slot, ptrdiff_t nbytes, int device, void *stream) {
  Allocator *allocator = slot.allocator.load(std::memory_order_acquire);
  void *adr = allocator ? allocator->allocate(static_cast<size_t>(nbytes), device,
                                              reinterpret_cast<uintptr_t>(stream))
                        : nullptr;
  if (!adr && slot.throws)
    throw OutOfMemory(allocator ? allocator->message() : "umem does not serve PyTorch");
  return adr;
}

static void torch_release(TorchSlot &slot, void *adr, void *stream) {
  Allocator *allocator = slot.allocator.load(std::memory_order_acquire);
  if (allocator) allocator->free(adr, reinterpret_cast<uintptr_t>(stream));
}

#define UMEM_TORCH_SLOT(n)                                                                         \
  extern "C" NB_EXPORT void *umem_torch_alloc_##n(ptrdiff_t nbytes, int device, void *stream) {    \
    return torch_allocate(torch_slots[n], nbytes, device, stream);                                 \
  }                                                                                                \
  extern "C" NB_EXPORT void umem_torch_free_##n(void *adr, ptrdiff_t, int, void *stream) {         \
    torch_release(torch_slots[n], adr, stream);                                                    \
  }
UMEM_TORCH_SLOT(0)
UMEM_TORCH_SLOT(1)
UMEM_TORCH_SLOT(2)
UMEM_TORCH_SLOT(3)
UMEM_TORCH_SLOT(4)
UMEM_TORCH_SLOT(5)
UMEM_TORCH_SLOT(6)
UMEM_TORCH_SLOT(7)
UMEM_TORCH_SLOT(8)
UMEM_TORCH_SLOT(9)
UMEM_TORCH_SLOT(10)
UMEM_TORCH_SLOT(11)
UMEM_TORCH_SLOT(12)
UMEM_TORCH_SLOT(13)
UMEM_TORCH_SLOT(14)
UMEM_TORCH_SLOT(15)

template <int n> static void torch_record(void *adr, void *stream) {
  Allocator *allocator = torch_slots[n].allocator.load(std::memory_order_acquire);
  if (allocator) allocator->record_stream(adr, reinterpret_cast<uintptr_t>(stream));
}

template <int... n>
static uintptr_t torch_recorder_of(int number, std::integer_sequence<int, n...>) {
  static void (*const functions[])(void *, void *) = {torch_record<n>...};
  return reinterpret_cast<uintptr_t>(functions[number]);
}

/* The address of the function that records a stream for a block of the slot. */
static uintptr_t torch_recorder(int number) {
  return torch_recorder_of(number, std::make_integer_sequence<int, std::size(torch_slots)>());
}

static std::mutex torch_mutex; /* who takes and gives slots */

static int take_torch_slot(AllocatorHandle &handle, bool permanent) {
  if (permanent) {
    Unlock unlock;
    handle.allocator->follow_streams();
  }
  std::lock_guard<std::mutex> lock(torch_mutex);
  int number = 0;
  for (TorchSlot &slot : torch_slots) {
    if (!slot.allocator.load()) {
      handle.allocator->use();
      slot.throws = permanent;
      slot.allocator.store(handle.allocator, std::memory_order_release);
      return number;
    }
    number++;
  }
  raise(umemNotSupportedError,
        "PyTorch uses 16 places already, by use_in_torch or by tensors that are left of it");
}

/* Frees the slot, unless blocks of it live. */
static bool give_torch_slot(int number) {
  std::lock_guard<std::mutex> lock(torch_mutex);
  Allocator *allocator = torch_slots[number].allocator.load();
  if (!allocator) return true;
  if (allocator->blocks()) return false;
  torch_slots[number].allocator.store(nullptr);
  allocator->drop();
  return true;
}

/* ---- libraries that call Python ---- */

static uintptr_t allocate_for(AllocatorHandle &handle, size_t nbytes, int device,
                              nb::handle stream) {
  uintptr_t on = stream.is_none() ? uintptr_t(Allocator::no_stream) : nb::cast<uintptr_t>(stream);
  void *adr = handle.allocator->allocate(nbytes, device, on);
  if (!adr) raise_failure_of(handle.allocator);
  return reinterpret_cast<uintptr_t>(adr);
}

static void free_for(AllocatorHandle &handle, uintptr_t adr, nb::handle stream) {
  uintptr_t on = stream.is_none() ? uintptr_t(Allocator::no_stream) : nb::cast<uintptr_t>(stream);
  handle.allocator->free(reinterpret_cast<void *>(adr), on);
}

void bind_others(nb::module_ &m) {
  nb::class_<AllocatorHandle>(m, "_Allocator", "Allocates from a place for another library.")
      .def(
          "__init__",
          [](AllocatorHandle *self, nb::handle place, bool keeps_sizes) {
            Use context = place_of(place).open();
            umemInfo info = UMEM_INFO_INIT;
            unlocked([&] { umem_get_info(context->ctx, &info); });
            new (self) AllocatorHandle(new Allocator(context.get(), info, keeps_sizes));
          },
          nb::arg("place"), nb::arg("keeps_sizes"),
          nb::sig("def __init__(self, place: Place, keeps_sizes: bool) -> None"))
      .def_prop_ro(
          "blocks", [](AllocatorHandle &handle) { return handle.allocator->blocks(); },
          "Live blocks.")
      .def_prop_ro(
          "message", [](AllocatorHandle &handle) { return handle.allocator->message(); },
          "The message of the last failure; empty if there was none.")
      .def_prop_rw(
          "raises", [](AllocatorHandle &handle) { return handle.allocator->raises; },
          [](AllocatorHandle &handle, bool raises) { handle.allocator->raises = raises; },
          "Whether the function for CuPy sets an exception and returns -1, or returns NULL.")
      .def("numpy_handler", make_numpy_handler, nb::arg("name"),
           nb::sig("def numpy_handler(self, name: str) -> object"), "A handler of NEP 49.")
      .def("cupy_functions", cupy_functions, "An argument, malloc, free, and a malloc that fails.")
      .def("torch_slot", take_torch_slot, nb::arg("permanent"),
           "The number of a pair of functions for PyTorch. permanent: it stands for PyTorch's own "
           "allocator.")
      .def("allocate", allocate_for, nb::arg("nbytes"), nb::arg("device"), nb::arg("stream").none(),
           nb::sig("def allocate(self, nbytes: int, device: int, stream: int | None) -> int"),
           "The address of a block. Raises if that fails.")
      .def("free", free_for, nb::arg("address"), nb::arg("stream").none(),
           nb::sig("def free(self, address: int, stream: int | None) -> None"), "Frees a block.");
  m.def("_numpy_handler", get_numpy_handler, nb::arg("api"),
        nb::sig("def _numpy_handler(api: object) -> object"),
        "The handler of the current context.");
  m.def("_set_numpy_handler", replace_numpy_handler, nb::arg("api"), nb::arg("handler"),
        nb::sig("def _set_numpy_handler(api: object, handler: object) -> object"),
        "Sets the handler of the current context; returns the one before.");
  m.def("_torch_recorder", torch_recorder, nb::arg("number"),
        "The address of the function that records a stream for a block.");
  m.def("_give_torch_slot", give_torch_slot, nb::arg("number"),
        "Ends the use of a pair of functions for PyTorch. False: blocks of it live.");
}
