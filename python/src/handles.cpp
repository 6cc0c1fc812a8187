/* handles.cpp - arrays of shared memory in other processes: umem/handles.py pickles them. */
#include "array.h"
#include "module.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace {

/* Bytes of another process, as long as the object lives. */
class Attached {
  Context *context_; /* a user of it */
  uintptr_t adr_ = 0;

public:
  /* fd: taken over; -1 for none. */
  Attached(Context *context, umemHandle const &handle, int fd) : context_(context->use()) {
    Call call;
    {
      Unlock unlock;
      adr_ = umem_attach_with(&handle, fd, context_->ctx);
    }
    if (adr_) return;
    context_->drop();
    call.end();
  }
  Attached(Attached const &) = delete;
  Attached &operator=(Attached const &) = delete;
  ~Attached() {
    umem_detach(context_->ctx, adr_);
    context_->drop();
  }
  uintptr_t address() const { return adr_; }
};

/* The handle of nbytes at an address inside of the array, and a new descriptor that goes with it;
 * or -1. */
nb::typed<nb::tuple, nb::bytes, int> share_bytes(Array &array, uintptr_t address, size_t nbytes) {
  Hold hold(array);
  umemHandle handle;
  int fd = -1, error = 0;
  unlocked([&] {
    if (umem_share_with(hold.context()->ctx, address, nbytes, &handle, &fd) != umemOK || fd < 0)
      return;
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) error = errno;
  });
  if (error) raise(umemIOError, "cannot share the memory: %s", strerror(error));
  return nb::make_tuple(nb::bytes(&handle, sizeof handle), fd);
}

/* Bytes of a handle may come from anybody: umem checks them. */
nb::object attach_bytes(nb::bytes bytes, int fd, nb::handle place) {
  umemHandle handle;
  if (bytes.size() != sizeof handle) {
    if (fd >= 0) close(fd);
    raise(umemValueError, "a handle has %zu bytes, and not %zu", sizeof handle, bytes.size());
  }
  memcpy(&handle, bytes.data(), sizeof handle);
  std::optional<Use> use;
  try {
    use.emplace(place_of(place.is_none() ? default_host() : place).open());
  } catch (...) {
    if (fd >= 0) close(fd);
    throw;
  }
  return nb::cast(new Attached(use->get(), handle, fd), nb::rv_policy::take_ownership);
}

void remove_shm(char const *name) {
  unlocked([&] { umemShm_remove(name); });
}

/* The umemShm that an array is on, also below adaptors. */
umemShm *shm_of(Hold const &hold) {
  void *layer = umem_find_layer(hold.context()->ctx, "shm");
  if (!layer) raise(umemTypeError, "the array is in no shared memory");
  return static_cast<umemShm *>(layer);
}

void complete_shm(Array &array) {
  Hold hold(array);
  umemShm *shm = shm_of(hold);
  unlocked([&] { umemShm_complete(shm, umemArray_address(hold.get())); });
}

bool is_complete_shm(Array &array) {
  Hold hold(array);
  umemShm *shm = shm_of(hold);
  bool complete = false;
  unlocked([&] { complete = umemShm_is_complete(shm, umemArray_address(hold.get())); });
  return complete;
}

} // namespace

void bind_handles(nb::module_ &m) {
  nb::class_<Attached>(m, "_Attached", "Bytes of another process.")
      .def_prop_ro("address", &Attached::address, "Of the first byte, in this process.");
  m.def("_remove_shm", remove_shm, nb::arg("name"));
  m.def("_complete_shm", complete_shm, nb::arg("array"));
  m.def("_is_complete_shm", is_complete_shm, nb::arg("array"));
  m.def("_share", share_bytes, nb::arg("array"), nb::arg("address"), nb::arg("nbytes"));
  m.def("_attach", attach_bytes, nb::arg("handle"), nb::arg("fd"), nb::arg("place") = nb::none(),
        nb::sig("def _attach(handle: bytes, fd: int, place: Place | None = None) -> _Attached"));
}
