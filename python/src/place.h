/* place.h - contexts as Python objects. */
#ifndef UMEM_PYTHON_PLACE_H
#define UMEM_PYTHON_PLACE_H

#include "call.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <memory>
#include <vector>

struct Array;

/* A context, shared by the Python object of the place, by its arrays, by tensors that other
 * libraries hold, and by the places over it. The last of them ends it, perhaps without the GIL. */
class Context {
  std::atomic<long> users_{1};
  std::vector<Context *> below_; /* users of these */
  void (*end_)(Context *) = nullptr;
  std::unique_ptr<char[]> memory_;

  ~Context();

public:
  void *ctx = nullptr;
  char const *kind = "";  /* the name of its scheme; static */
  bool quick = false;     /* plain RAM, also in pools: short calls keep the GIL */
  bool permanent = false; /* lives as long as the process */
  /* That of umem.host(), whose users are not counted: it never ends. */
  std::atomic<bool> endless{false};
  Array *arrays = nullptr; /* of this place; under tables */
  static constexpr uint64_t not_asked = UINT64_MAX;
  std::atomic<uint64_t> stream{not_asked}; /* of its work on a GPU, 0: the legacy one; and which */
  std::atomic<int64_t> gpu{-1};
  std::shared_ptr<void> owner; /* what an extension keeps its context by */
  PyObject *self = nullptr; /* owned by the Place: a weak reference to it; NULL when there is none;
                               under tables */

  /* end: how the context ends; NULL if others own it. */
  Context(void *context, void (*end)(Context *)) : end_(end), ctx(context) {}

  /* Memory of size zero bytes for the context. */
  void construct(size_t size);
  /* Ends the context, once. Failures are recorded for the thread. */
  void finish();
  void stand_over(Context *below) { below_.push_back(below->use()); }
  Context *use() {
    if (!endless) users_.fetch_add(1, std::memory_order_relaxed);
    return this;
  }
  void drop() {
    if (!endless && users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  long users() const { return users_.load(std::memory_order_relaxed); }
  /* Whether there is a user more now: not if the last one has gone just now. */
  bool try_use() {
    long users = users_.load(std::memory_order_relaxed);
    while (users && !users_.compare_exchange_weak(users, users + 1, std::memory_order_relaxed)) {
    }
    return users != 0;
  }
  bool can(unsigned capability) const {
    return (static_cast<umemVirtual *>(ctx)->capabilities & capability) == capability;
  }
};

/* Keeps a context for the time of a call: another thread may close the place meanwhile. */
class Use {
  Context *context_;

public:
  explicit Use(Context *context) : context_(context->use()) {}
  Use(Use const &other) : Use(other.context_) {}
  Use &operator=(Use const &) = delete;
  ~Use() { context_->drop(); }
  Context *operator->() const { return context_; }
  Context *get() const { return context_; }
};

/* The C++ part of a Python object of class umem.Place. */
struct Place {
  Context *context = nullptr; /* a user of it; NULL when the place is closed; under tables */
  char const *kind = "none";  /* static */

  /* Takes the context over. self: the Python object. */
  void begin(Context *of, PyObject *self);
  /* The context, whose use is the caller's now; NULL if the place is closed, or is one that cannot
   * be. */
  Context *take(bool permanent);

  Place() = default;
  Place(Place const &) = delete;
  Place &operator=(Place const &) = delete;
  ~Place();

  /* The context; raises if the place is closed. */
  Use open() const;
  bool is_closed() const;
};

/* The place behind a Python object; raises umemTypeError if it is none. */
Place &place_of(nb::handle object);

/* The place that a Python object is, or that its text names, as umem.open makes it. */
nb::object find_place(nb::handle object);

/* For elements that are to be written there: a text that names a file and no mode makes the file,
 * and raises if there is one. */
nb::object find_new_place(nb::handle object);

/* The place that means RAM where none is named: one for the process. Borrowed. */
nb::handle default_host();

/* Whether the place is RAM, or pools over RAM: no call waits for a device, a file, or a function of
 * Python. */
bool is_plain_ram(Context const *context);

/* Whether a call with so many bytes on this context is so short that it keeps the GIL. */
inline bool is_short(Context const *context, size_t nbytes) {
  return context->quick && nbytes <= 65536;
}

/* A new Python object over context, which it takes over. upstream: the place below, or None. */
nb::object wrap_context(Context *context, nb::handle upstream);

/* The place of a context that an extension names: the one that it has, or a new one. owner: keeps
 * the context; empty if the context lives as long as the process. */
nb::object place_of_context(umemVirtual *context, std::shared_ptr<void> owner);

/* place_make.cpp */
void bind_place_makers(nb::module_ &m, nb::class_<Place> &type);

/* Releases the arrays of a place: see array.cpp. */
void release_arrays(Context *context);

#endif
