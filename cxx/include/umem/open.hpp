/* umem/open.hpp - handles of contexts that a text names, and of the default contexts.
 *
 *     umem::Context pool = umem::open("pool+cuda:0?max=8G");
 *     umem::Array<double, 2> u({51, 51}, umem::default_context());
 *
 * See umem/open.h for the form of names, and umem/default.h for the initial defaults.
 *
 * Threads: any, at any time; in a child of fork the defaults only if no other thread of the parent
 * was just asking for them or setting them here. */
#ifndef UMEM_OPEN_HPP
#define UMEM_OPEN_HPP

#include <umem/context.hpp>

#include <mutex>
#include <optional>

namespace umem {

namespace detail {

inline Context opened(std::string const &name, umemOpenOptions const *options) {
  if (name.find('\0') != std::string::npos) throw value_error("the name holds a zero byte");
  void *ctx = options ? umem_open_with(name.c_str(), options) : umem_open(name.c_str());
  if (!ctx) raise_recorded(umem_thread_status());
  forget_thrown();
  return Context(std::shared_ptr<umemVirtual>(static_cast<umemVirtual *>(ctx),
                                              [](umemVirtual *context) { umem_close(context); }));
}

} // namespace detail

/* The context with this name, and all its layers. They end with its last handle, the outermost
 * first. Throws umem::value_error for a wrong name, with a message that describes what is right,
 * and otherwise the exceptions of the constructors. */
inline Context open(std::string const &name) { return detail::opened(name, nullptr); }

/* What a name may use: umemOpenOptions. */
struct OpenOptions {
  std::optional<std::vector<std::string>> schemes{}; /* the allowed ones; nullopt: all */
  std::optional<std::vector<std::string>>
      folders{}; /* that its files must be below; nullopt: anywhere */
};

/* Opens a name that does not come from the user of the program: it may use only the
 * schemes and folders of options, as with umem_open_with. Throws umem::value_error for a name
 * that uses others. */
inline Context open(std::string const &name, OpenOptions const &options) {
  std::string schemes;
  std::vector<char const *> folders;
  if (options.schemes)
    for (std::string const &scheme : *options.schemes) schemes += scheme + ' ';
  folders.reserve(options.folders ? options.folders->size() + 1 : 0);
  if (options.folders)
    for (std::string const &folder : *options.folders) folders.push_back(folder.c_str());
  std::size_t count = folders.size();
  if (options.folders) folders.push_back(nullptr); /* an empty list is an array of one NULL */
  umemOpenOptions full = UMEM_OPEN_OPTIONS_INIT;
  full.schemes = options.schemes ? schemes.c_str() : nullptr;
  full.folders = options.folders ? folders.data() : nullptr;
  full.folder_count = count;
  return detail::opened(name, &full);
}

namespace detail {

/* The handles that were made defaults here. */
struct Defaults {
  std::mutex mutex;
  Context set[1 + UMEM_DEFAULT_DEVICES]; /* of the process; of each device */
};

/* Never ends, so that destructors of static objects may use the defaults. */
UMEM_EXCEPTION inline Defaults &defaults() {
  static Defaults &defaults = *new Defaults;
  return defaults;
}

/* ask: umem_default, or umem_default_of the device of the slot. */
template <class Ask> Context default_of(std::size_t slot, Ask &&ask) {
  if (!ask())
    raise_recorded(umem_thread_status()); /* opens it, which may take long, without the lock */
  Defaults &all = defaults();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto *ctx = static_cast<umemVirtual *>(ask());
  if (!ctx) raise_recorded(umem_thread_status());
  return all.set[slot].c_context() == ctx ? all.set[slot] : Context::borrow(ctx);
}

/* The context that was set before ends after the lock is released, unless it has other handles. */
inline void keep_default(std::size_t slot, Context &context, umemStatusType (*set)(int, void *),
                         int device) {
  Defaults &all = defaults();
  std::lock_guard<std::mutex> lock(all.mutex);
  check_status(set(device, context.c_context()));
  std::swap(all.set[slot], context);
}

} // namespace detail

/* The default context of the process. A handle of a context that set_default_context has set
 * keeps it alive. A context that the variable UMEM_DEFAULT names lives as long as the process. A
 * context that C code has set is borrowed. Throws if the name in UMEM_DEFAULT cannot be opened. */
inline Context default_context() {
  return detail::default_of(0, [] { return umem_default(); });
}

/* The default context of the GPU with this number. Throws umem::value_error if the number is not
 * from 0 to UMEM_DEFAULT_DEVICES - 1. */
inline Context default_context(int device) {
  void *ctx = umem_default_of(device); /* checks the number */
  if (!ctx) detail::raise_recorded(umem_thread_status());
  return detail::default_of(1 + static_cast<std::size_t>(device),
                            [=] { return umem_default_of(device); });
}

/* Makes context the default of the process and keeps it alive until another one is set. The
 * empty handle restores the initial default. Handles of the previous default stay valid; C code
 * that uses it without a handle must stop before. */
inline void set_default_context(Context context) {
  auto set = [](int, void *ctx) { return umem_set_default(ctx); };
  detail::keep_default(0, context, set, 0);
}

/* Sets the default context of the GPU with this number. */
inline void set_default_context(int device, Context context) {
  bool known = device >= 0 && device < UMEM_DEFAULT_DEVICES; /* else umem_set_default_of fails */
  detail::keep_default(known ? 1 + static_cast<std::size_t>(device) : 0, context,
                       umem_set_default_of, device);
}

} // namespace umem

#endif
