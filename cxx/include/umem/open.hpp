/* umem/open.hpp - contexts that a text names, and the default ones, as handles.
 *
 *     umem::Context place = umem::open("pool+cuda:0?max=8G");
 *     umem::Array<double, 2> u({51, 51}, umem::default_context());
 *
 * umem/open.h tells what a name can say, umem/default.h what the defaults begin as.
 *
 * Threads: any, at any time; in a child of fork the defaults only if no other thread of the parent was
 * just asking for them or setting them here. */
#ifndef UMEM_OPEN_HPP
#define UMEM_OPEN_HPP

#include <umem/context.hpp>

#include <umem/default.h>
#include <umem/open.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/* The context with this name, and all its layers, which end with its last handle, the outermost first.
 * Throws umem::value_error for what is wrong with the name, and says what would be right; otherwise what
 * the constructors throw. */
inline Context open(std::string const &name) { return detail::opened(name, nullptr); }

/* What a name may use: umemOpenOptions. */
struct OpenOptions {
  std::optional<std::vector<std::string>> schemes{}; /* the allowed ones; nullopt: all */
  std::optional<std::vector<std::string>>
      folders{}; /* that its files must be below; nullopt: anywhere */
};

/* The same for a name that does not come from the user of the program: it may use only the schemes and
 * folders of options, as of umem_open_with. Throws umem::value_error for a name that uses others. */
inline Context open(std::string const &name, OpenOptions const &options) {
  std::string schemes;
  std::vector<char const *> folders;
  if (options.schemes)
    for (std::string const &scheme : *options.schemes) schemes += scheme + ' ';
  folders.reserve(options.folders ? options.folders->size() + 1 : 0);
  if (options.folders)
    for (std::string const &folder : *options.folders) folders.push_back(folder.c_str());
  std::size_t count = folders.size();
  if (options.folders) folders.push_back(nullptr); /* no folders are an array too */
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

/* Never ends, so that destructors of static objects may ask for the defaults. */
UMEM_EXCEPTION inline Defaults &defaults() {
  static Defaults &defaults = *new Defaults;
  return defaults;
}

/* ask: umem_default, or umem_default_of the device that goes with the slot. */
template <class Ask> Context default_of(std::size_t slot, Ask &&ask) {
  if (!ask()) raise_recorded(umem_thread_status()); /* opens it, maybe for long, under no lock */
  Defaults &all = defaults();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto *ctx = static_cast<umemVirtual *>(ask());
  if (!ctx) raise_recorded(umem_thread_status());
  return all.set[slot].c_context() == ctx ? all.set[slot] : Context::borrow(ctx);
}

/* What was set before ends, if nobody else has it, after the lock. */
inline void keep_default(std::size_t slot, Context &context, umemStatusType (*set)(int, void *),
                         int device) {
  Defaults &all = defaults();
  std::lock_guard<std::mutex> lock(all.mutex);
  check(set(device, context.c_context()));
  std::swap(all.set[slot], context);
}

} // namespace detail

/* The default context of the process. A handle of one that was set by set_default_context keeps it
 * alive; what the variable UMEM_DEFAULT names lives as long as the process; what C code has set is
 * borrowed. Throws where that variable names what cannot be opened. */
inline Context default_context() {
  return detail::default_of(0, [] { return umem_default(); });
}

/* The same for the GPU with this number; umem::value_error where it is not from 0 to
 * UMEM_DEFAULT_DEVICES - 1. */
inline Context default_context(int device) {
  void *ctx = umem_default_of(device); /* so that the number is known to be good */
  if (!ctx) detail::raise_recorded(umem_thread_status());
  return detail::default_of(1 + static_cast<std::size_t>(device),
                            [=] { return umem_default_of(device); });
}

/* Makes context the default of the process and keeps it alive until another one is set; the empty
 * handle: what it began as. Of the one before, handles stay good; C code that asked for it without
 * a handle must no longer use it. */
inline void set_default_context(Context context) {
  auto set = [](int, void *ctx) { return umem_set_default(ctx); };
  detail::keep_default(0, context, set, 0);
}

/* The same for the GPU with this number. */
inline void set_default_context(int device, Context context) {
  bool known =
      device >= 0 && device < UMEM_DEFAULT_DEVICES; /* umem_set_default_of says so if not */
  detail::keep_default(known ? 1 + static_cast<std::size_t>(device) : 0, context,
                       umem_set_default_of, device);
}

} // namespace umem

#endif
