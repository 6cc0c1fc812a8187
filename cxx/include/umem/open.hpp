/* umem/open.hpp - handles of contexts that a text names.
 *
 *     umem::Context pool = umem::open("pool+cuda:0?max=8G");
 *
 * See umem/open.h for the form of names. Threads: any, at any time. */
#ifndef UMEM_OPEN_HPP
#define UMEM_OPEN_HPP

#include <umem/default_context.hpp>

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
      folders{};                    /* that its files must be below; nullopt: anywhere */
  std::vector<std::string> hosts{}; /* that its URLs may name; none: it has no URL */
};

/* Opens a name that does not come from the user of the program: it may use only the
 * schemes, folders and hosts of options, as with umem_open_with. Throws umem::value_error for a
 * name that uses others. */
inline Context open(std::string const &name, OpenOptions const &options) {
  std::string schemes, hosts;
  std::vector<char const *> folders;
  if (options.schemes)
    for (std::string const &scheme : *options.schemes) schemes += scheme + ' ';
  for (std::string const &host : options.hosts) hosts += host + ' ';
  folders.reserve(options.folders ? options.folders->size() + 1 : 0);
  if (options.folders)
    for (std::string const &folder : *options.folders) folders.push_back(folder.c_str());
  std::size_t count = folders.size();
  if (options.folders) folders.push_back(nullptr); /* an empty list is an array of one NULL */
  umemOpenOptions full = UMEM_OPEN_OPTIONS_INIT;
  full.schemes = options.schemes ? schemes.c_str() : nullptr;
  full.folders = options.folders ? folders.data() : nullptr;
  full.folder_count = count;
  full.hosts = options.hosts.empty() ? nullptr : hosts.c_str();
  return detail::opened(name, &full);
}

} // namespace umem

#endif
