#include "trace_log.hpp"

#include "failure.hpp"
#include "new_text.hpp"
#include "output.hpp"
#include "place.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <umem.h>

namespace umem::tool {

static std::string numbers_of(Trace const &trace) {
  if (!trace.header.contexts) return "it has none";
  return "its contexts are numbered from 1 to " + std::to_string(trace.header.contexts);
}

Log::Log(std::string const &path, unsigned only) : path_(path) {
  if (!trace_read(&trace_, path.c_str())) throw Failure("cannot read " + path + ": " + trace_.why);
  trace_.only = only;
  if (only <= trace_.header.contexts) return;
  std::string const why = "there is no context " + std::to_string(only) + " in " + trace_.file +
                          ": " + numbers_of(trace_);
  trace_close(&trace_);
  throw Failure(why, misuse);
}

/* To a device, a pipe or a socket, or to the standard output: what has no name that could wait. */
static void write_stream(std::string const &path, std::function<void(FILE *out)> const &what) {
  if (path == "-") {
    what(stdout);
    flush_output();
    return;
  }
  auto const fail = [&] { throw Failure("cannot write " + path + ": " + std::strerror(errno)); };
  std::unique_ptr<FILE, int (*)(FILE *)> out(std::fopen(path.c_str(), "wbe"), std::fclose);
  if (!out) fail();
  what(out.get());
  if (std::ferror(out.get()) || std::fclose(out.release()) != 0) fail();
}

void Log::write(std::string const &path, std::function<bool(FILE *out)> const &what) const {
  auto const checked = [&](FILE *out) {
    errno = 0;
    if (!what(out)) throw Failure("there is no memory for the blocks of " + path_);
  };
  if (path == "-" || is_stream(path)) return write_stream(path, checked);
  if (is_same_file(path, path_)) throw Failure(path + " is the log itself");
  NewText text(path);
  checked(text.stream());
  text.commit();
}

void Log::write_chrome(std::string const &path, bool flows) const {
  write(path, [&](FILE *out) { return trace_write_chrome(&trace_, out, flows); });
}

void Log::write_csv(std::string const &path) const {
  write(path, [&](FILE *out) { return trace_write_csv(&trace_, out); });
}

void Log::write_summary() const {
  write("-", [&](FILE *out) { return trace_write_summary(&trace_, out); });
}

void Log::replay(std::string const &name) const {
  std::unique_ptr<Replay, void (*)(Replay *)> const calls(replay_make(&trace_), replay_free);
  if (!calls) throw Failure("there is no memory for the operations of " + path_);
  std::unique_ptr<void, umemStatusType (*)(void *)> ctx(umem_open(name.c_str()), umem_close);
  if (!ctx) throw Failure("cannot replay on " + name + ": " + reason());
  if (replay_run(calls.get(), ctx.get(), stdout))
    throw Failure("operations failed on " + name + ": " + umem_get_message(ctx.get()));
  if (umem_close(ctx.release()) != umemOK) throw Failure("cannot close " + name + ": " + reason());
}

} // namespace umem::tool
