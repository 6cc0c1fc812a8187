/* order_captures.cu - calls of umem while a stream is captured into a graph: what is recorded, what
 * is refused, and what another thread does meanwhile. The capture stays whole, and no foreign work
 * is in the graph. */
#include "order.cuh"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

extern "C" {
#include "cuda/cuda_rt.h"
}

namespace {

using namespace order;

constexpr std::size_t n = 50'000;

struct Mode {
  char const *name;
  cudaStreamCaptureMode mode;
};
Mode const modes[] = {{"relaxed", cudaStreamCaptureModeRelaxed},
                      {"thread-local", cudaStreamCaptureModeThreadLocal},
                      {"global", cudaStreamCaptureModeGlobal}};

cudaStream_t handle_of(umem::CudaAsync const &context) {
  return reinterpret_cast<cudaStream_t>(context.stream());
}

/* ---- graphs ---- */

class Graph {
public:
  Graph(cudaStream_t stream, cudaStreamCaptureMode mode) : stream_(stream) {
    CUDA(cudaStreamBeginCapture(stream, mode));
  }
  Graph(Graph const &) = delete;
  Graph &operator=(Graph const &) = delete;
  ~Graph() {
    if (!ended_) cudaStreamEndCapture(stream_, &graph_);
    if (exec_) cudaGraphExecDestroy(exec_);
    if (graph_) cudaGraphDestroy(graph_);
    static_cast<void>(cudaGetLastError());
  }

  bool is_whole() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream_, &status) == cudaSuccess &&
           status == cudaStreamCaptureStatusActive;
  }

  /* What is wrong with the capture, which has so many nodes. */
  std::string end(std::size_t expected) {
    ended_ = true;
    cudaError_t error = cudaStreamEndCapture(stream_, &graph_);
    if (error != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return std::string("the capture is broken: ") + cudaGetErrorString(error);
    }
    std::size_t count = 0;
    CUDA(cudaGraphGetNodes(graph_, nullptr, &count));
    if (count == expected) return {};
    return std::to_string(count) + " nodes in the graph instead of " + std::to_string(expected);
  }

  void launch() {
    if (!exec_) CUDA(cudaGraphInstantiate(&exec_, graph_, 0));
    CUDA(cudaGraphLaunch(exec_, stream_));
  }

private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  bool ended_ = false;
};

/* ---- another thread ---- */

/* Allocates, sets, copies and frees on every kind of context until it ends. */
class Others {
public:
  Others() : thread_([this] { work(); }) {
    while (rounds_ < 1 && !failed_) std::this_thread::yield();
  }
  Others(Others const &) = delete;
  Others &operator=(Others const &) = delete;
  ~Others() {
    if (thread_.joinable()) end();
  }

  /* After more rounds; what went wrong. */
  std::string end() {
    unsigned const begin = rounds_;
    while (rounds_ < begin + 3 && !failed_) std::this_thread::yield();
    ended_ = true;
    thread_.join();
    return problem_;
  }

private:
  void work() {
    try {
      umem::Cuda cuda;
      umem::CudaAsync async, queue;
      umem::Pool pool(cuda);
      umem::Context const contexts[] = {
          cuda, umem::CudaManaged(),      umem::CudaHost(), async, umem::CudaAsync(0, 0),
          pool, umem::PoolOn(pool, queue)};
      for (; !ended_; rounds_++)
        for (umem::Context const &context : contexts) use(context);
    } catch (std::exception const &error) {
      problem_ = std::string("in the other thread: ") + error.what();
      failed_ = true;
    }
  }

  void use(umem::Context const &context) {
    umem::Buffer block(context, n), more = umem::Buffer::zeroed(context, 9 * n);
    std::vector<Byte> bytes(n);
    block.set(new_byte);
    umem::copy(context, block.adr(), context, more.adr(), n);
    umem::copy(context, more.adr(), bytes.data(), n);
    if (problem_.empty()) problem_ = differ(bytes.data(), n, new_byte, context.name());
    umem::copy(bytes.data(), context, block.adr(), n);
    context.synchronize();
  }

  std::atomic<bool> ended_{false}, failed_{false};
  std::atomic<unsigned> rounds_{0};
  std::string problem_; /* read when the thread has ended */
  std::thread thread_;
};

/* ---- one capture of everything ---- */

/* f, which a capture does not allow, is refused and leaves it whole. */
template <class F>
std::string refusal(Graph const &graph, std::string const &wrong, char const *name, F const &f) {
  if (!wrong.empty()) return wrong;
  try {
    f();
    return std::string(name) + " is not refused";
  } catch (umem::not_supported_error const &) {
    return graph.is_whole() ? "" : std::string(name) + " has broken the capture";
  }
}

std::string capture_all(Mode const &mode, Log &log) {
  umem::CudaAsync context, joined, outside;
  umem::CudaHost pinned;
  umem::CudaManaged managed;
  umem::Host host;
  umem::File file = umem::File::scratch();
  umem::Buffer a(context, n), b(context, n), c(joined, n), other(outside, n);
  umem::Buffer p(pinned, n), m(managed, n), h(host, n), f(file, n);
  Stream const stream = stream_of(context, 0);
  for (umem::Buffer const *block : {&a, &b, &c, &other, &p, &m, &h, &f})
    block->context().set(block->adr(), old_byte, n);
  for (umem::Context const &one :
       {umem::Context(context), umem::Context(joined), umem::Context(outside)})
    one.synchronize();
  finish_all();
  umem::address const live = context.allocate(n);

  Others others;
  Graph graph(stream.handle, mode.mode);
  slow_set(stream, a.adr(), n, new_byte);            /* 1 */
  umem::copy(context, a.adr(), context, b.adr(), n); /* 2 */
  umem::copy(context, b.adr(), pinned, p.adr(), n);  /* 3 */
  umem::copy(context, b.adr(), host, h.adr(), n);    /* 4 */
  umem::copy(context, b.adr(), managed, m.adr(), n); /* 5 */
  context.set(a.adr(), stale_byte, n);               /* 6 */
  joined.wait(context);
  umem::copy(joined, b.adr(), joined, c.adr(), n); /* 7 */
  context.wait(joined);
  umem::copy(host, h.adr(), context, a.adr(), n); /* 8 */
  std::string wrong;
  wrong = refusal(graph, wrong, "an allocation", [&] { context.allocate(n); });
  wrong = refusal(graph, wrong, "a resize", [&] { context.reallocate(live, n, 2 * n); });
  wrong = refusal(graph, wrong, "a free", [&] { context.deallocate(live); });
  wrong = refusal(graph, wrong, "synchronize", [&] { context.synchronize(); });
  wrong = refusal(graph, wrong, "waiting for another stream", [&] { context.wait(outside); });
  wrong = refusal(graph, wrong, "a copy to a file",
                  [&] { umem::copy(context, a.adr(), file, f.adr(), n); });
  wrong = refusal(graph, wrong, "a copy from a file",
                  [&] { umem::copy(file, f.adr(), context, a.adr(), n); });
  wrong = refusal(graph, wrong, "connect", [&] {
    if (umem_connect(context.c_context(), a.adr(), n, host.c_context(), 0) == host.null())
      umem::detail::raise_recorded(umem_thread_status());
  });
  /* What other streams do, in this thread too, is no part of it. */
  outside.set(other.adr(), new_byte, n);
  outside.synchronize();
  umem::Buffer more(outside, n), on_gpu(umem::Cuda(), n);
  on_gpu.set(new_byte);
  wrong = first_of(wrong, differ(outside, other.adr(), n, new_byte, "the work outside"));
  std::string const busy = others.end();
  wrong = first_of(wrong, graph.end(8));
  wrong = first_of(wrong, busy);
  context.deallocate(live);
  if (!wrong.empty()) return wrong;

  wrong = differ(context, b.adr(), n, old_byte, "a block before the graph is launched");
  log.clear();
  launch(stream, a.adr(), n, log.data(), stale_byte, slow_ns);
  graph.launch();
  context.synchronize();
  auto const *bytes = reinterpret_cast<Byte const *>(p.adr());
  wrong = first_of(wrong, differ(log.data(), n, old_byte, "the kernel before the graph"));
  wrong = first_of(wrong, differ(bytes, n, new_byte, "the pinned block"));
  wrong = first_of(wrong, differ(context, b.adr(), n, new_byte, "the second block"));
  wrong = first_of(wrong, differ(managed, m.adr(), n, new_byte, "the managed block"));
  wrong = first_of(wrong, differ(joined, c.adr(), n, new_byte, "the block of the joined stream"));
  wrong = first_of(wrong, differ(host, h.adr(), n, new_byte, "the host's block"));
  return first_of(wrong, differ(context, a.adr(), n, new_byte, "the first block"));
}

/* ---- views of a pool ---- */

/* In a capture a view gives out what it has free itself, and new memory of a context that is not
 * ordered. */
std::string capture_of_a_view(Mode const &mode) {
  umem::Cuda gpu;
  umem::Pool pool(gpu);
  umem::CudaAsync queue, other_queue;
  umem::PoolOn view(pool, queue), other(pool, other_queue);
  view.deallocate(view.allocate(n));
  other.deallocate(other.allocate(100 * n));
  view.synchronize();
  Others others;
  Graph graph(handle_of(queue), mode.mode);
  umem::address const block = view.allocate(n), large = view.allocate(200 * n);
  view.set(block, new_byte, n);
  view.set(large, new_byte, n);
  umem::Buffer beside(other, n);
  beside.set(new_byte);
  std::string const busy = others.end();
  std::string wrong = first_of(graph.end(2), busy);
  if (wrong.empty()) {
    graph.launch();
    view.synchronize();
    wrong = first_of(differ(view, block, n, new_byte, "the block"),
                     differ(view, large, n, new_byte, "the large block"));
  }
  view.deallocate(block);
  view.deallocate(large);
  return wrong;
}

/* A pool with three views: one whose queue is captured, one that takes from it, and memory to
 * take. */
struct Views {
  static constexpr std::size_t least = 8 << 20;

  umem::Pool pool{umem::Cuda(), options()};
  umem::CudaAsync queue, other_queue;
  umem::PoolOn view{pool, queue}, other{pool, other_queue};
  umem::Buffer live{view, 100};

  Views() { view.synchronize(); }

  static umemPoolOptions options() {
    umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
    options.maximum = 7 * least;
    return options;
  }
};

/* How long two threads run side by side. A driver (580.159.04) crashes within seconds when one of
 * them begins or ends captures of a stream that the other one uses. */
constexpr std::chrono::seconds beside{20};

/* What the thread that takes does until the other one has ended: it allocates, frees and trims, and
 * makes no call on the stream that is captured. */
void take_until(Views &views, bool free_elsewhere, std::atomic<bool> const &ended,
                std::atomic<unsigned> &taken, std::string &problem) {
  for (unsigned round = 0; !ended; round++) try {
      std::size_t const size = round % 3 ? (1 + round % 4) * Views::least : 64 + round % 50'000;
      umem::address const block = views.other.allocate(size);
      views.other.set(block, new_byte, size);
      if (free_elsewhere && round % 8 == 0) {
        views.other.synchronize(); /* the other queue has not used the block */
        views.view.deallocate(block);
      } else {
        views.other.deallocate(block);
      }
      if (round % 100 == 0) views.pool.trim();
      taken++;
    } catch (umem::memory_error const &) { /* the other has it */
    } catch (std::exception const &error) {
      problem = std::string("in the other thread: ") + error.what();
      return;
    }
}

/* A thread captures the queue of a view again and again; another takes from that view meanwhile,
 * also while the capture begins or ends. */
std::string captures_beside_takers(bool free_elsewhere) {
  Views views;
  std::atomic<bool> ended{false};
  std::atomic<unsigned> taken{0};
  std::string taker_problem, wrong;
  std::thread taker([&] { take_until(views, free_elsewhere, ended, taken, taker_problem); });
  unsigned captures = 0;
  auto const end = std::chrono::steady_clock::now() + beside / 2;
  try {
    while (wrong.empty() && std::chrono::steady_clock::now() < end) {
      try { /* so that there is something free */
        umem::Buffer block(views.view, (1 + captures % 4) * Views::least);
      } catch (umem::memory_error const &) {
      }
      Graph graph(handle_of(views.queue), cudaStreamCaptureModeRelaxed);
      views.view.set(views.live.adr(), new_byte, 100);
      if (captures % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(captures % 100));
      wrong = graph.end(1);
      captures++;
    }
  } catch (std::exception const &error) {
    wrong = error.what();
  }
  ended = true;
  taker.join();
  std::printf("note - %u captures beside %u allocations%s in 10 s\n", captures, taken.load(),
              free_elsewhere ? ", some freed to the captured view," : "");
  wrong = first_of(wrong, taker_problem);
  return taken < 100 ? first_of(wrong, std::to_string(taken) + " blocks were taken") : wrong;
}

/* ---- captures that begin and end between two calls of CUDA ---- */

/* The runtime as umem calls it, with a capture of a stream that begins before one of its calls and
 * ends before a later one, as another thread may do it. */
struct Between {
  umemCudaRt real;
  cudaStream_t stream;
  int begin, end; /* before which calls */
  int calls;      /* since the test was armed; negative: it is not */
  std::unique_ptr<Graph> graph;
  std::string problem;

  void step() {
    if (calls < 0) return;
    int const call = calls;
    calls = -1; /* what begins and ends captures is no call of umem */
    if (call == begin) graph = std::make_unique<Graph>(stream, cudaStreamCaptureModeRelaxed);
    if (call == end && graph) finish(0);
    calls = call + 1;
  }
  void finish(std::size_t nodes) {
    problem = first_of(problem, graph->end(nodes));
    graph.reset();
  }
};
Between between;

int stream_capture(void *stream, umemCudaCapture *capture, uint64_t *id) {
  between.step();
  return between.real.stream_capture(stream, capture, id);
}
int event_record(void *event, void *stream) {
  between.step();
  return between.real.event_record(event, stream);
}
int stream_wait(void *stream, void *event) {
  between.step();
  return between.real.stream_wait(stream, event);
}
int event_synchronize(void *event) {
  between.step();
  return between.real.event_synchronize(event);
}
int stream_synchronize(void *stream) {
  between.step();
  return between.real.stream_synchronize(stream);
}
int context_current(void **context) {
  between.step();
  return between.real.context_current(context);
}

/* One view takes what another, whose queue still uses it, has free. The capture of that queue stays
 * whole and without foreign work; who got the memory is in order. reached: that call `begin` was
 * made; a negative one is no capture. */
std::string take_between(bool through_pool, int begin, int end, bool &reached) {
  Views views;
  umem::Context const taker = through_pool ? umem::Context(views.pool) : views.other;
  std::size_t const most = 5 * Views::least;
  between.stream = handle_of(views.queue);
  umem::address adr = views.view.allocate(most);
  prepare(views.view, adr, n, old_byte);
  launch(stream_of(views.queue, 0), adr, n, nullptr, stale_byte, 2'000'000);
  views.view.deallocate(adr);
  between.begin = begin;
  between.end = end;
  between.calls = 0;
  between.problem.clear();
  adr = 0;
  try {
    adr = taker.allocate(most);
  } catch (umem::not_supported_error const &) { /* the other captures */
  } catch (umem::memory_error const &) {        /* and has all that is free */
  } catch (umem::error const &error) {
    between.problem = first_of(between.problem, error.message());
  }
  reached = between.calls > begin;
  between.calls = -1;
  if (between.graph) {
    views.view.set(views.live.adr(), new_byte, 100);
    between.finish(1);
  }
  std::string wrong = between.problem;
  if (adr) {
    taker.set(adr, new_byte, n);
    taker.synchronize();
    finish_all();
    wrong = first_of(wrong, differ(taker, adr, n, new_byte, "the block that was taken"));
    taker.deallocate(adr);
  } else if (begin < 0) {
    wrong = first_of(wrong, "nothing was taken");
  }
  finish_all();
  return wrong;
}

/* For every two calls on the way. */
std::string captures_between_calls(bool through_pool) {
  between.real = *umemCudaRt_get();
  between.calls = -1;
  umemCudaRt table = between.real;
  table.stream_capture = stream_capture;
  table.event_record = event_record;
  table.stream_wait = stream_wait;
  table.event_synchronize = event_synchronize;
  table.stream_synchronize = stream_synchronize;
  table.context_current = context_current;
  umemCudaRt_replace(&table);
  bool reached = true;
  std::string wrong = take_between(through_pool, -1, -1, reached);
  for (int begin = 0; reached && wrong.empty(); begin++)
    for (int end = begin + 1; reached && end < begin + 12 && wrong.empty(); end++) {
      wrong = take_between(through_pool, begin, end, reached);
      if (!wrong.empty())
        wrong += ", a capture from call " + std::to_string(begin) + " to " + std::to_string(end);
    }
  umemCudaRt_replace(nullptr);
  return wrong;
}

} // namespace

int main() {
  return run([](int) {
    Log log(n);
    for (Mode const &mode : modes) {
      test(std::string("calls while a stream is captured, ") + mode.name,
           [&] { return capture_all(mode, log); });
      test(std::string("a view while its stream is captured, ") + mode.name,
           [&] { return capture_of_a_view(mode); });
    }
    for (bool frees : {false, true})
      test(std::string("captures of a view's stream while another view takes") +
               (frees ? " and frees to it" : ""),
           [&] { return captures_beside_takers(frees); });
    test("captures that begin while another view takes",
         [] { return captures_between_calls(false); });
    test("captures that begin while the pool takes", [] { return captures_between_calls(true); });
  });
}
