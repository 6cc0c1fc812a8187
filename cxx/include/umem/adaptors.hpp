/* umem/adaptors.hpp - handles of contexts that watch or change the calls of another context.
 *
 *     umem::Stats stats{umem::Limit(umem::Host(), 1 << 20)};
 *     {
 *       umem::StatsScope scope(stats);
 *       work_on(stats);                       // as on any context
 *       std::printf("%lld bytes\n", (long long)scope.end().peak_bytes);
 *     }
 *
 * Each goes over another context, its upstream, and keeps that alive: handles of the upstream may
 * be dropped first. A constructor that fails throws, and the upstream can be used as before.
 *
 * A handle that is made from one of its own class is a copy, another handle of the same context. To
 * go over one's own kind, hand it over as what it is to others, a umem::Context. of() finds the
 * outermost layer of its class in a stack, such as umem::open returns, and makes a handle of it,
 * which keeps the stack alive:
 *
 *     umem::Context stack = umem::open("stats+pool+host:");
 *     umem::Stats stats = umem::Stats::of(stack);
 *     umem::Pool pool = umem::Pool::of(stack);
 *
 * Threads: see the headers of the contexts, umem/limit.h, umem/stats.h, ... */
#ifndef UMEM_ADAPTORS_HPP
#define UMEM_ADAPTORS_HPP

#include <umem/context.hpp>

#include <optional>

namespace umem {
namespace detail {

/* What a function of C has found, which returns whether it has filled its last parameter, value. */
template <class Value, class... Parameters, class... Args>
std::optional<Value> found(Value value, bool (*function)(Parameters...), Args... args) {
  return checked_call(function, args..., &value) ? std::optional<Value>(value) : std::nullopt;
}

} // namespace detail

/* Limits the bytes that are live: umemLimit. */
class Limit : public Context {
public:
  /* maximum: in bytes; a request beyond it throws umem::memory_error. */
  Limit(Context const &upstream, std::size_t maximum)
      : Context(make_over(upstream, umemLimit_ctor, maximum)) {}

  /* The bytes that are live now. */
  std::size_t used() const { return detail::checked_call(umemLimit_used, c_struct()); }

  UMEM_KIND_OF_CONTEXT(Limit, "limit")
};

/* Counts blocks and bytes: umemStats. */
class Stats : public Context {
public:
  explicit Stats(Context const &upstream) : Context(make_over(upstream, umemStats_ctor)) {}

  /* The figures since construction or the last reset. */
  umemStatsFigures figures() const {
    return detail::filled<umemStatsFigures>(UMEM_STATS_FIGURES_INIT, umemStats_get, c_struct());
  }

  /* Begins a scope, in which all figures begin at 0. It counts the calls of all threads. */
  void push() const { detail::check_status(umemStats_push(c_struct())); }

  /* Ends the scope that was begun last and returns its figures. Throws umem::value_error if no
   * scope is open. */
  umemStatsFigures pop() const {
    return detail::filled<umemStatsFigures>(UMEM_STATS_FIGURES_INIT, umemStats_pop, c_struct());
  }

  /* Sets peaks to the current figures, and totals to 0. */
  void reset() const { detail::check_status(umemStats_reset(c_struct())); }

  UMEM_KIND_OF_CONTEXT(Stats, "stats")
};

/* A scope of a Stats, which it keeps alive: from the constructor to end() or the destructor.
 * Scopes of one Stats must end in the reverse order. */
class UMEM_NODISCARD StatsScope {
public:
  [[nodiscard]] explicit StatsScope(Stats stats) : stats_(std::move(stats)) { stats_.push(); }
  StatsScope(StatsScope const &) = delete;
  StatsScope &operator=(StatsScope const &) = delete;

  /* Records a failure on the context and for the thread, and reports it to the hook of
   * umem_set_failure_hook. */
  ~StatsScope() {
    if (open_) umemStats_pop(reinterpret_cast<umemStats *>(stats_.c_context()), nullptr);
  }

  /* Ends the scope and returns its figures. Throws umem::value_error if it has ended already. */
  umemStatsFigures end() {
    if (!open_) throw value_error("StatsScope: it has ended already");
    umemStatsFigures figures = stats_.pop();
    open_ = false;
    return figures;
  }

private:
  Stats stats_;
  bool open_ = true;
};

/* Knows every live block: umemTrack. Blocks that are live at its end are umemRuntimeError. A
 * destructor cannot throw it: it records the failure for the thread and reports it to the hook
 * of umem_set_failure_hook. */
class Track : public Context {
public:
  /* frames: how many frames of the stack to keep for each allocation, at most UMEM_TRACK_FRAMES. */
  explicit Track(Context const &upstream, unsigned frames = 0)
      : Context(make<umemTrack>(
            [&](umemTrack *ctx) {
              umemTrackOptions options = UMEM_TRACK_OPTIONS_INIT;
              options.frames = frames;
              return umemTrack_ctor(ctx, upstream.c_context(), &options);
            },
            owner(upstream))) {}

  /* The live block that contains adr; nothing if there is none. */
  std::optional<umemTrackBlock> find(address adr) const {
    return detail::found<umemTrackBlock>(UMEM_TRACK_BLOCK_INIT, umemTrack_find, c_struct(), adr);
  }

  /* Finds a block among all Tracks of the process whose addresses are memory. */
  static std::optional<umemTrackBlock> find_owner(address adr) {
    return detail::found<umemTrackBlock>(UMEM_TRACK_BLOCK_INIT, umemTrack_owner, adr);
  }

  /* How many blocks are live. */
  std::size_t count() const { return counted(nullptr); }

  /* How many bytes they have, as requested. */
  std::size_t nbytes() const {
    std::size_t nbytes = 0;
    counted(&nbytes);
    return nbytes;
  }

  /* Calls functor(umemTrackBlock const &) for each live block in order of address, also while other
   * threads allocate. functor may allocate and free. */
  template <class Function> void for_each(Function &&functor) const {
    address from = 0;
    while (std::optional<umemTrackBlock> block = next(from)) {
      functor(static_cast<umemTrackBlock const &>(*block));
      from = block->adr + 1;
    }
  }

  UMEM_KIND_OF_CONTEXT(Track, "track")

  std::optional<umemTrackBlock> next(address from) const {
    return detail::found<umemTrackBlock>(UMEM_TRACK_BLOCK_INIT, umemTrack_next, c_struct(), from);
  }

  std::size_t counted(std::size_t *nbytes) const {
    return detail::checked_call(umemTrack_count, c_struct(), nbytes);
  }
};

/* Finds wrong writes and wrong frees: umemDebug. The call that finds one throws
 * umem::index_error or umem::value_error and does nothing else. A destructor cannot throw: the
 * end of a Buffer, of an Array or of the Debug itself records its findings for the thread and
 * reports them to the hook of umem_set_failure_hook. Call check() before to have them thrown. */
class Debug : public Context {
public:
  explicit Debug(Context const &upstream, umemDebugOptions const &options = UMEM_DEBUG_OPTIONS_INIT)
      : Context(make_over(upstream, umemDebug_ctor, &options)) {}

  /* Checks everything. Throws umem::index_error for wrong writes that were not reported yet. */
  void(check)() const { detail::check_status(umemDebug_check(c_struct())); }

  /* The first reported finding; nothing if there was none. */
  std::optional<umemDebugFault> first() const {
    return detail::found<umemDebugFault>(UMEM_DEBUG_FAULT_INIT, umemDebug_first, c_struct());
  }

  umemDebugFigures figures() const {
    return detail::filled<umemDebugFigures>(UMEM_DEBUG_FIGURES_INIT, umemDebug_get, c_struct());
  }

  UMEM_KIND_OF_CONTEXT(Debug, "debug")
};

/* A request for which the upstream is out of memory. */
struct RetryRequest {
  Context context; /* the Retry; borrowed, valid during the call of its function */
  std::size_t nbytes;
  std::size_t alignment;
  unsigned attempt; /* how often the request has failed, from 1 */
};

/* Calls a function of the program if memory is exhausted, and tries again: umemRetry. */
class Retry : public Context {
public:
  /* function(RetryRequest const &) returns true to try again, false to give up; it lives as long
   * as the context. It runs in the thread that allocates, in several at once if the upstream
   * allows that. If it throws, the request fails, and the C++ call that made the request throws
   * this exception instead of umem::memory_error; C code gets umemMemoryError. A pool over the
   * context then makes up to three smaller requests: the last exception counts. A function that
   * holds a handle of this context keeps it alive for ever: use that of the request. */
  template <class Function, class = std::enable_if_t<std::is_invocable_r_v<
                                bool, std::decay_t<Function> &, RetryRequest const &>>>
  Retry(Context const &upstream, Function &&function)
      : Retry(upstream, std::make_shared<Kept<std::decay_t<Function>>>(
                            upstream, std::forward<Function>(function))) {}

  UMEM_KIND_OF_CONTEXT(Retry, "retry")

  template <class Function> struct Kept {
    template <class Callable>
    Kept(Context const &below, Callable &&g)
        : upstream(below), function(std::forward<Callable>(g)) {}

    Context upstream;
    Function function;
  };

  template <class Function>
  Retry(Context const &upstream, std::shared_ptr<Kept<Function>> const &kept)
      : Context(make_by(kept, umemRetry_ctor, upstream.c_context(), invoke<Function>, kept.get())) {
  }

  /* A umemRetryCallback. */
  template <class Function>
  static bool invoke(void *user, void *ctx, std::size_t nbytes, std::size_t alignment,
                     unsigned attempt) {
    detail::forget_thrown(); /* only the last exception of a request counts */
    std::uint64_t failures = umem_thread_failures();
    try {
      RetryRequest request{borrow(static_cast<umemVirtual *>(ctx)), nbytes, alignment, attempt};
      return static_cast<Kept<Function> *>(user)->function(
          static_cast<RetryRequest const &>(request));
    } catch (...) { /* must not pass through C */
      detail::keep_thrown(failures);
      return false;
    }
  }
};

/* Fails on purpose: umemFault. */
class Fault : public Context {
public:
  explicit Fault(Context const &upstream, umemFaultPlan const &plan = UMEM_FAULT_PLAN_INIT)
      : Context(make_over(upstream, umemFault_ctor, &plan)) {}

  /* Starts a new plan, with all counts 0. */
  void set_plan(umemFaultPlan const &plan) const {
    detail::check_status(umemFault_set_plan(c_struct(), &plan));
  }

  /* How many calls of these umemFaultCalls the context has had since the plan began. */
  std::uint64_t count(unsigned calls) const {
    return detail::checked_call(umemFault_count, c_struct(), calls);
  }

  /* How many calls have failed on purpose since then. */
  std::uint64_t failures() const { return detail::checked_call(umemFault_failures, c_struct()); }

  UMEM_KIND_OF_CONTEXT(Fault, "fault")
};

/* Traps accesses of the CPU to closed memory, and stands for a GPU in programs without one:
 * umemGuarded.
 *
 *     umem::Array<double, 1> u({n}, umem::Guarded(umem::Host()));
 *     double *kept = u.host(umem::write)->data;
 *     step(*u.device(umem::write));
 *     print(kept[0]);                       // SIGSEGV: the elements are on the other side
 *
 * An array on it has a host side in memory of its own, also if the CPU could use the memory of
 * upstream. The pages of each side are open while a guard of that side lives: for reading only, if
 * no guard writes. */
class Guarded : public Context {
public:
  explicit Guarded(Context const &upstream) : Context(make_over(upstream, umemGuarded_ctor)) {}

  /* What pointers may do with the block of nbytes that begins at adr; see umemGuarded_protect.
   * Throws umem::value_error if there is no such block. Arrays do this by themselves. */
  void protect(address adr, std::size_t nbytes, umemGuardedAccess access) const {
    detail::check_status(umemGuarded_protect(c_context(), adr, nbytes, access));
  }
  umemGuardedAccess access(address adr) const {
    return detail::checked_call(umemGuarded_access, c_context(), adr);
  }

  /* Whether SIGSEGV for memory of any Guarded prints which block it hit: umemGuarded_report. */
  static void report(bool on = true) { detail::check_status(umemGuarded_report(on)); }

  UMEM_KIND_OF_CONTEXT(Guarded, "guarded")
};

/* Logs all calls to a file for umem-trace: umemLog. */
class Log : public Context {
public:
  /* max_bytes: of the file; 0 for UMEM_LOG_BYTES. each_process: a file for each process, with its
   * number behind the name. */
  Log(Context const &upstream, std::string const &filename, std::uint64_t max_bytes = 0,
      bool each_process = false)
      : Context(make<umemLog>(
            [&](umemLog *ctx) {
              umemLogOptions options = UMEM_LOG_OPTIONS_INIT;
              options.filename = detail::c_path(filename);
              options.max_bytes = max_bytes;
              options.each_process = each_process;
              return umemLog_ctor(ctx, upstream.c_context(), &options);
            },
            owner(upstream))) {}

  /* The number of the context in the records of its file, from 1. */
  unsigned number() const { return detail::checked_call(umemLog_number, c_struct()); }

  UMEM_KIND_OF_CONTEXT(Log, "log")
};

/* Moves new blocks of managed memory to the GPU: umemCudaPrefetch. */
class CudaPrefetch : public Context {
public:
  /* Throws umem::type_error if the innermost context is no CudaManaged. */
  explicit CudaPrefetch(Context const &upstream)
      : Context(make_over(upstream, umemCudaPrefetch_ctor)) {}

  UMEM_KIND_OF_CONTEXT(CudaPrefetch, "cuda-prefetch")
};

} // namespace umem

#endif
