/* umem/adaptors.hpp - contexts that watch or change what is asked of another, as handles.
 *
 *     umem::Stats stats{umem::Limit(umem::Host(), 1 << 20)};
 *     {
 *       umem::StatsScope scope(stats);
 *       work_on(stats);                       // as on any context
 *       std::printf("%lld bytes\n", (long long)scope.end().peak_bytes);
 *     }
 *
 * Each goes over another context, its upstream, and keeps that alive: handles of the upstream may be
 * dropped first. A constructor that fails throws, and the upstream can be used as before.
 *
 * A handle that is made from one of its own class is a copy, another handle of the same context. To go
 * over one's own kind, hand it over as what it is to others, a umem::Context. of() finds the outermost layer of
 * its class in a stack, such as umem::open returns, and makes a handle of it, which keeps the stack alive:
 *
 *     umem::Context place = umem::open("stats+pool+host:");
 *     umem::Stats stats = umem::Stats::of(place);
 *     umem::Pool pool = umem::Pool::of(place);
 *
 * Threads: as the headers of the contexts tell: umem/limit.h, umem/stats.h, ... */
#ifndef UMEM_ADAPTORS_HPP
#define UMEM_ADAPTORS_HPP

#include <umem/context.hpp>

#include <umem/debug.h>
#include <umem/fault.h>
#include <umem/limit.h>
#include <umem/log.h>
#include <umem/retry.h>
#include <umem/stats.h>
#include <umem/track.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace umem {

/* Lets at most so many bytes be live: umemLimit. */
class Limit : public Context {
public:
  /* maximum: in bytes; requests beyond are umem::memory_error. */
  Limit(Context const &upstream, std::size_t maximum)
      : Context(make<umemLimit>(
            [&](umemLimit *ctx) { return umemLimit_ctor(ctx, upstream.c_context(), maximum); },
            owner(upstream))) {}

  /* A handle of the outermost Limit in the stack of context; umem::type_error where there is none. */
  static Limit of(Context const &context) { return Limit(layer_of(context, "limit")); }

  /* The bytes that are live now. */
  std::size_t used() const {
    std::uint64_t before = umem_thread_failures();
    std::size_t used = umemLimit_used(reinterpret_cast<umemLimit *>(c_context()));
    detail::check_since(before);
    return used;
  }

private:
  explicit Limit(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Counts blocks and bytes: umemStats. */
class Stats : public Context {
public:
  explicit Stats(Context const &upstream)
      : Context(make<umemStats>(
            [&](umemStats *ctx) { return umemStats_ctor(ctx, upstream.c_context()); },
            owner(upstream))) {}

  /* A handle of the outermost Stats in the stack of context; umem::type_error where there is none. */
  static Stats of(Context const &context) { return Stats(layer_of(context, "stats")); }

  /* Since it was constructed, or reset. */
  umemStatsFigures figures() const {
    umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
    detail::check(umemStats_get(c_stats(), &figures));
    return figures;
  }

  /* Begins a scope, in which all figures begin at 0; all threads count in it. */
  void push() const { detail::check(umemStats_push(c_stats())); }

  /* Ends the scope that was begun last and returns its figures. umem::value_error where none is
   * open. */
  umemStatsFigures pop() const {
    umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
    detail::check(umemStats_pop(c_stats(), &figures));
    return figures;
  }

  /* Forgets the past: peaks become what is current, totals 0. */
  void reset() const { detail::check(umemStats_reset(c_stats())); }

private:
  explicit Stats(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  umemStats *c_stats() const noexcept { return reinterpret_cast<umemStats *>(c_context()); }
};

/* A scope of a Stats, which it keeps alive: from the constructor to end() or the destructor. Scopes of
 * one Stats end in the reverse order of their beginnings. */
class StatsScope {
public:
  explicit StatsScope(Stats stats) : stats_(std::move(stats)) { stats_.push(); }
  StatsScope(StatsScope const &) = delete;
  StatsScope &operator=(StatsScope const &) = delete;

  /* A failure is on the context and the thread, and told to the hook of umem_set_failure_hook. */
  ~StatsScope() {
    if (open_) umemStats_pop(reinterpret_cast<umemStats *>(stats_.c_context()), nullptr);
  }

  /* Ends it and returns its figures. umem::value_error when it has ended already. */
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

/* Knows every live block: umemTrack. Blocks that are live at its end are a umemRuntimeError, which a
 * destructor cannot throw: it is on the thread, and told to the hook of umem_set_failure_hook. */
class Track : public Context {
public:
  /* frames: how many of the stack are kept of each allocation, at most UMEM_TRACK_FRAMES. */
  explicit Track(Context const &upstream, unsigned frames = 0)
      : Context(make<umemTrack>(
            [&](umemTrack *ctx) {
              umemTrackOptions options = UMEM_TRACK_OPTIONS_INIT;
              options.frames = frames;
              return umemTrack_ctor(ctx, upstream.c_context(), &options);
            },
            owner(upstream))) {}

  /* A handle of the outermost Track in the stack of context; umem::type_error where there is none. */
  static Track of(Context const &context) { return Track(layer_of(context, "track")); }

  /* The live block in which adr lies, at its beginning or further inside; nothing where there is
   * none. */
  std::optional<umemTrackBlock> find(address adr) const {
    return asked([&](umemTrackBlock *block) { return umemTrack_find(c_track(), adr, block); });
  }

  /* The same for all Tracks of the process whose addresses are memory. */
  static std::optional<umemTrackBlock> find_owner(address adr) {
    return asked([&](umemTrackBlock *block) { return umemTrack_owner(adr, block); });
  }

  /* How many blocks are live. */
  std::size_t count() const { return counted(nullptr); }

  /* How many bytes they have, as they were asked for. */
  std::size_t nbytes() const {
    std::size_t nbytes = 0;
    counted(&nbytes);
    return nbytes;
  }

  /* Calls f(umemTrackBlock const &) for each live block in order of address, also while other threads
   * allocate. f may allocate and free here. */
  template <class F> void for_each(F &&f) const {
    address from = 0;
    while (std::optional<umemTrackBlock> block = next(from)) {
      f(static_cast<umemTrackBlock const &>(*block));
      from = block->adr + 1;
    }
  }

private:
  explicit Track(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  /* ask(block): whether there is one. */
  template <class Ask> static std::optional<umemTrackBlock> asked(Ask &&ask) {
    umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
    std::uint64_t before = umem_thread_failures();
    bool found = ask(&block);
    detail::check_since(before);
    return found ? std::optional<umemTrackBlock>(block) : std::nullopt;
  }

  std::optional<umemTrackBlock> next(address from) const {
    return asked([&](umemTrackBlock *block) { return umemTrack_next(c_track(), from, block); });
  }

  std::size_t counted(std::size_t *nbytes) const {
    std::uint64_t before = umem_thread_failures();
    std::size_t count = umemTrack_count(c_track(), nbytes);
    detail::check_since(before);
    return count;
  }

  umemTrack *c_track() const noexcept { return reinterpret_cast<umemTrack *>(c_context()); }
};

/* Finds wrong writes and wrong frees: umemDebug. They are umem::index_error and umem::value_error of the
 * call that finds them, which does nothing else. No destructor can throw: what is found when a Buffer
 * or an Array ends, or at the end of the Debug, is on the thread, and told to the hook of
 * umem_set_failure_hook. check() throws it before. */
class Debug : public Context {
public:
  explicit Debug(Context const &upstream, umemDebugOptions const &options = UMEM_DEBUG_OPTIONS_INIT)
      : Context(make<umemDebug>(
            [&](umemDebug *ctx) { return umemDebug_ctor(ctx, upstream.c_context(), &options); },
            owner(upstream))) {}

  /* A handle of the outermost Debug in the stack of context; umem::type_error where there is none. */
  static Debug of(Context const &context) { return Debug(layer_of(context, "debug")); }

  /* Looks at everything: umem::index_error for wrong writes that were not told yet. */
  void check() const { detail::check(umemDebug_check(c_debug())); }

  /* The first fault that was told; nothing where there was none. */
  std::optional<umemDebugFault> first() const {
    umemDebugFault fault = UMEM_DEBUG_FAULT_INIT;
    std::uint64_t before = umem_thread_failures();
    bool any = umemDebug_first(c_debug(), &fault);
    detail::check_since(before);
    return any ? std::optional<umemDebugFault>(fault) : std::nullopt;
  }

  umemDebugFigures figures() const {
    umemDebugFigures figures = UMEM_DEBUG_FIGURES_INIT;
    detail::check(umemDebug_get(c_debug(), &figures));
    return figures;
  }

private:
  explicit Debug(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  umemDebug *c_debug() const noexcept { return reinterpret_cast<umemDebug *>(c_context()); }
};

/* A request that was refused for want of memory. */
struct RetryRequest {
  Context context; /* the Retry, borrowed: good while its function is called */
  std::size_t nbytes;
  std::size_t alignment;
  unsigned attempt; /* how often it was refused, from 1 */
};

/* Calls a function of the program when memory is out, and tries again: umemRetry. */
class Retry : public Context {
public:
  /* function(RetryRequest const &) returns true to try again, false to give up; it lives as long as the
   * context. It runs in the thread that allocates, in several at once if the upstream allows that. What
   * it throws ends the request, and comes out of the call of C++ that made it in place of
   * umem::memory_error; C code sees umemMemoryError. A pool over it then makes another request, for
   * less, up to three times: what is thrown last comes out. A function that holds a handle of this context
   * keeps it alive for ever: the request has one. */
  template <class F, class = std::enable_if_t<
                         std::is_invocable_r_v<bool, std::decay_t<F> &, RetryRequest const &>>>
  Retry(Context const &upstream, F &&function)
      : Retry(upstream,
              std::make_shared<Kept<std::decay_t<F>>>(upstream, std::forward<F>(function))) {}

  /* A handle of the outermost Retry in the stack of context; umem::type_error where there is none. */
  static Retry of(Context const &context) { return Retry(layer_of(context, "retry")); }

private:
  explicit Retry(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  template <class F> struct Kept {
    template <class G>
    Kept(Context const &below, G &&g) : upstream(below), function(std::forward<G>(g)) {}

    Context upstream;
    F function;
  };

  template <class F>
  Retry(Context const &upstream, std::shared_ptr<Kept<F>> const &kept)
      : Context(make<umemRetry>(
            [&](umemRetry *ctx) {
              return umemRetry_ctor(ctx, upstream.c_context(), call<F>, kept.get());
            },
            kept)) {}

  /* A umemRetryCallback. */
  template <class F>
  static bool call(void *user, void *ctx, std::size_t nbytes, std::size_t alignment,
                   unsigned attempt) {
    detail::
        forget_thrown(); /* this request's takes its place, and is none of what function calls */
    std::uint64_t failures = umem_thread_failures();
    try {
      RetryRequest request{borrow(static_cast<umemVirtual *>(ctx)), nbytes, alignment, attempt};
      return static_cast<Kept<F> *>(user)->function(static_cast<RetryRequest const &>(request));
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
      : Context(make<umemFault>(
            [&](umemFault *ctx) { return umemFault_ctor(ctx, upstream.c_context(), &plan); },
            owner(upstream))) {}

  /* A handle of the outermost Fault in the stack of context; umem::type_error where there is none. */
  static Fault of(Context const &context) { return Fault(layer_of(context, "fault")); }

  /* Begins anew, all counts 0. */
  void set_plan(umemFaultPlan const &plan) const {
    detail::check(umemFault_set_plan(c_fault(), &plan));
  }

  /* How many calls of these umemFaultCalls have come since the plan began. */
  std::uint64_t count(unsigned calls) const {
    std::uint64_t before = umem_thread_failures();
    std::uint64_t count = umemFault_count(c_fault(), calls);
    detail::check_since(before);
    return count;
  }

  /* How many calls have failed on purpose since then. */
  std::uint64_t failures() const {
    std::uint64_t before = umem_thread_failures();
    std::uint64_t failures = umemFault_failures(c_fault());
    detail::check_since(before);
    return failures;
  }

private:
  explicit Fault(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}

  umemFault *c_fault() const noexcept { return reinterpret_cast<umemFault *>(c_context()); }
};

/* Writes down what is done, in a file for umem-trace: umemLog. */
class Log : public Context {
public:
  /* max_bytes: of the file; 0 for UMEM_LOG_BYTES. */
  Log(Context const &upstream, std::string const &filename, std::uint64_t max_bytes = 0)
      : Context(make<umemLog>(
            [&](umemLog *ctx) {
              umemLogOptions options = UMEM_LOG_OPTIONS_INIT;
              options.filename = detail::c_path(filename);
              options.max_bytes = max_bytes;
              return umemLog_ctor(ctx, upstream.c_context(), &options);
            },
            owner(upstream))) {}

  /* A handle of the outermost Log in the stack of context; umem::type_error where there is none. */
  static Log of(Context const &context) { return Log(layer_of(context, "log")); }

  /* The number that the context has in the records of its file, from 1. */
  unsigned number() const {
    std::uint64_t before = umem_thread_failures();
    unsigned number = umemLog_number(reinterpret_cast<umemLog *>(c_context()));
    detail::check_since(before);
    return number;
  }

private:
  explicit Log(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

/* Lets new blocks of managed memory begin on the GPU: umemCudaPrefetch. */
class CudaPrefetch : public Context {
public:
  /* umem::type_error when the innermost context is no CudaManaged. */
  explicit CudaPrefetch(Context const &upstream)
      : Context(make<umemCudaPrefetch>(
            [&](umemCudaPrefetch *ctx) { return umemCudaPrefetch_ctor(ctx, upstream.c_context()); },
            owner(upstream))) {}

  /* A handle of the outermost CudaPrefetch in the stack of context; umem::type_error where there is none. */
  static CudaPrefetch of(Context const &context) {
    return CudaPrefetch(layer_of(context, "cuda-prefetch"));
  }

private:
  explicit CudaPrefetch(std::shared_ptr<umemVirtual> context) : Context(std::move(context)) {}
};

} // namespace umem

#endif
