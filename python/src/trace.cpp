/* trace.cpp - what umem-trace does with the log of a umemLog. */
#include "../../c/tools/trace.h"

#include "module.h"
#include "place.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <utility>

namespace {

/* A log that was read, which takes some time. */
class Log {
  std::unique_ptr<Trace> trace_{new Trace};

public:
  Log(nb::bytes const &path, unsigned context) {
    errno = 0;
    bool is_read;
    {
      Unlock unlock;
      is_read = trace_read(trace_.get(), path.c_str());
    }
    if (!is_read)
      raise(strcmp(trace_->why, strerror(errno)) ? umemValueError : umemIOError,
            "cannot read \"%s\": %s", path.c_str(), trace_->why);
    trace_->only = context;
  }
  /* Raises if the context is not in the log. A constructor that raises would not end what it has
   * read. */
  void check() const {
    if (trace_->only > trace_->header.contexts)
      raise(umemValueError, "there is no context %u in the log, which has %u", trace_->only,
            trace_->header.contexts);
  }
  Log(Log const &) = delete;
  Log &operator=(Log const &) = delete;
  ~Log() { trace_close(trace_.get()); }
  Trace const *get() const { return trace_.get(); }
};

[[noreturn]] void refuse_memory() { raise(umemMemoryError, "no memory for the blocks of the log"); }

nb::object summary(nb::bytes path, unsigned context) {
  Log log(path, context);
  log.check();
  char *text = nullptr;
  size_t length = 0;
  bool is_written = false;
  {
    Unlock unlock;
    FILE *out = open_memstream(&text, &length);
    if (out) {
      is_written = trace_write_summary(log.get(), out) && !ferror(out);
      is_written = fclose(out) == 0 && is_written;
    }
  }
  nb::object made;
  if (is_written)
    made = nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(length), "replace"));
  free(text);
  if (!is_written) refuse_memory();
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

/* What is written by a FILE. It gets its name when it is complete, and keeps what it replaces as
 * umemFile_replace; a device, a pipe or a socket is written as it is. */
class Output {
  umemFile file_ = {};
  bool replaces_;
  FILE *stream_ = nullptr;

public:
  explicit Output(char const *path) {
    struct stat about = {};
    char draft[4096];
    replaces_ = stat(path, &about) || S_ISREG(about.st_mode) || S_ISDIR(about.st_mode);
    if (!replaces_)
      stream_ = fopen(path, "wbe");
    else if (!umemFile_replace(&file_, path) && !umemFile_draft(&file_, draft, sizeof draft))
      stream_ = fopen(draft, "wbe");
  }
  ~Output() {
    if (stream_) fclose(stream_);
    if (replaces_) umem_dtor(&file_);
  }
  Output(Output const &) = delete;
  Output &operator=(Output const &) = delete;
  FILE *get() { return stream_; }
  bool finish() {
    bool is_written = !ferror(stream_);
    is_written = !fclose(std::exchange(stream_, nullptr)) && is_written;
    return is_written && (!replaces_ || !umemFile_commit(&file_));
  }
};

/* Writes the log to a new file in another format. */
void convert(nb::bytes path, nb::bytes to, unsigned context, bool chrome, bool flows) {
  Log log(path, context);
  log.check();
  uint64_t before = umem_thread_failures();
  bool has_memory = true, is_written = false;
  int number = 0;
  {
    Unlock unlock;
    errno = 0;
    Output out(to.c_str());
    if (out.get()) {
      has_memory = chrome ? trace_write_chrome(log.get(), out.get(), flows)
                          : trace_write_csv(log.get(), out.get());
      is_written = has_memory && out.finish();
    }
    number = errno;
  }
  if (!has_memory) refuse_memory();
  if (umem_thread_failures() != before) raise_failure();
  if (!is_written) raise(umemIOError, "cannot write \"%s\": %s", to.c_str(), strerror(number));
}

/* What fails is counted, not raised; but what a callback raises. */
ReplayFigures run(Trace const *trace, void *ctx) {
  uint64_t before = umem_thread_failures();
  ReplayFigures figures = {};
  bool has_memory;
  {
    Unlock unlock;
    Replay *replay = replay_make(trace);
    has_memory = replay != nullptr;
    if (replay) {
      figures = replay_measure(replay, ctx);
      replay_free(replay);
    }
  }
  if (has_exception()) raise_failure();
  if (umem_thread_failures() != before) umem_thread_clear();
  if (!has_memory) refuse_memory();
  return figures;
}

Dict replay(nb::bytes path, nb::handle place, unsigned context) {
  Use where = place_of(place).open();
  Log log(path, context);
  log.check();
  ReplayFigures f = run(log.get(), where->ctx);
  Dict d;
  d["operations"] = f.operations;
  d["seconds"] = static_cast<double>(f.nanoseconds) * 1e-9;
  d["peak_bytes"] = f.peak_bytes;
  d["left_out"] = f.left_out;
  d["failed"] = f.failed;
  return d;
}

} // namespace

void bind_trace(nb::module_ &m) {
  m.def("_trace_summary", summary, nb::arg("path"), nb::arg("context"),
        nb::sig("def _trace_summary(path: bytes, context: int) -> str"));
  m.def("_trace_convert", convert, nb::arg("path"), nb::arg("to"), nb::arg("context"),
        nb::arg("chrome"), nb::arg("flows"));
  m.def("_trace_replay", replay, nb::arg("path"), nb::arg("place"), nb::arg("context"),
        nb::sig("def _trace_replay(path: bytes, place: Place, context: int) -> dict[str, "
                "typing.Any]"));
}
