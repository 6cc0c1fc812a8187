/* order_peers.cu - a pool whose pages are on one GPU, and kernels of another GPU that read and
 * write its blocks: before and after pages have moved, and behind slow kernels that still use a
 * block when it is freed. With one GPU it tests nothing.
 *
 * The kernels of the other GPU run on streams of their own. The order is the program's: it waits
 * for them before it frees what they use, or makes the queue of a view wait. */
#include "order.cuh"

namespace {

using namespace order;

constexpr std::size_t page = 2 << 20, piece = 3 * page, huge = 5 * page;

/* A pool, and something that allocates from it. */
struct Bench {
  std::string name;
  umem::Pool pool;
  umem::Context context;
};

std::vector<Bench> benches_of(int device) {
  umem::Pool plain{umem::Cuda(device)}, ordered{umem::CudaAsync(device)},
      shared{umem::Cuda(device)};
  return {{"pool(cuda)", plain, plain},
          {"pool(cuda-async)", ordered, ordered},
          {"view of pool(cuda)", shared, umem::PoolOn(shared, umem::CudaAsync(device))}};
}

std::uint64_t reserved(umem::Pool const &pool) { return pool.stats().reserved; }

/* A kernel of the GPU of stream reads the block, all of whose bytes are old_value, and writes value
 * to each. */
std::string visit_from(Stream const &stream, umem::address adr, std::size_t n, int old_value,
                       int value, Log &log) {
  log.clear();
  launch(stream, adr, n, log.data(), value, 0);
  finish_all();
  return differ(log.data(), n, old_value, "what the other GPU has read");
}

/* Blocks of pages that move, and of those that were mapped meanwhile: each GPU sees what the other
 * has written. */
std::string blocks_whose_pages_move(Bench const &bench, Stream const &there, Log &log) {
  umem::Context const &context = bench.context;
  umem::address const first = context.allocate(piece), wall = context.allocate(page);
  prepare(context, first, piece, old_byte);
  prepare(context, wall, page, old_byte);
  std::string wrong = visit_from(there, first, piece, old_byte, new_byte, log);
  wrong = first_of(wrong, visit_from(there, wall, page, old_byte, stale_byte, log));
  wrong = first_of(wrong, differ(context, first, piece, new_byte, "the first block"));
  context.deallocate(first);
  std::uint64_t const before = reserved(bench.pool);
  umem::address const moved = context.allocate(huge);
  if (reserved(bench.pool) != before + huge - piece)
    wrong = first_of(wrong, "the pages of the first block did not move");
  prepare(context, moved, huge, old_byte);
  wrong = first_of(wrong, visit_from(there, moved, huge, old_byte, new_byte, log));
  wrong = first_of(wrong, differ(context, moved, huge, new_byte, "the block of moved pages"));
  wrong = first_of(wrong, differ(context, wall, page, stale_byte, "the block that stayed"));
  umem::address const more = context.allocate(piece); /* in the gap */
  prepare(context, more, piece, old_byte);
  wrong = first_of(wrong, visit_from(there, more, piece, old_byte, new_byte, log));
  for (umem::address adr : {more, moved, wall}) context.deallocate(adr);
  check(umem_trim(bench.pool.c_context(), 0));
  if (reserved(bench.pool)) wrong = first_of(wrong, "a trim has left pages");
  return wrong;
}

/* Copies between a block of the pool and one of the other GPU, by umem. */
std::string copies(Bench const &bench, int other) {
  umem::Context const &context = bench.context;
  umem::Buffer there(umem::Cuda(other), huge);
  std::string wrong;
  std::vector<umem::address> walls;
  for (std::size_t n = 2 * page; n <= huge; n += page) { /* pages move to each larger block */
    umem::address const adr = context.allocate(n);
    walls.push_back(context.allocate(page));
    there.set(new_byte);
    umem::copy(there.context(), there.adr(), context, adr, n);
    context.synchronize();
    wrong = first_of(wrong, differ(context, adr, n, new_byte, "the block of the pool"));
    prepare(context, adr, n, old_byte);
    umem::copy(context, adr, there.context(), there.adr(), n);
    context.synchronize();
    there.context().synchronize();
    wrong =
        first_of(wrong, differ(there.context(), there.adr(), n, old_byte, "the other GPU's block"));
    context.deallocate(adr);
  }
  for (umem::address wall : walls) context.deallocate(wall);
  return wrong;
}

/* A slow kernel of the other GPU uses a block that is freed to a view whose queue waits for it. Its
 * pages move only when the kernel is done: what is made of them keeps what is written then. */
std::string pages_wait_for_the_other_gpu(int device, int other, Log &log) {
  umem::CudaAsync queue(device), there(other);
  umem::Pool pool{umem::Cuda(device)};
  umem::PoolOn view(pool, queue);
  umem::address const busy = view.allocate(piece), wall = view.allocate(page);
  prepare(view, busy, piece, old_byte);
  slow_set(stream_of(there, other), busy, piece, stale_byte);
  view.wait(there);
  view.deallocate(busy);
  umem::address const moved = view.allocate(huge);
  view.set(moved, new_byte, huge);
  launch(stream_of(queue, device), moved, huge, log.data(), -1, 0);
  finish_all();
  std::string const wrong = differ(log.data(), huge, new_byte, "the block of moved pages");
  view.deallocate(moved);
  view.deallocate(wall);
  return wrong;
}

void test_peers(int device, int other, Log &log) {
  std::string const where =
      "GPU " + std::to_string(device) + ", used by GPU " + std::to_string(other);
  int can = 0;
  CUDA(cudaDeviceCanAccessPeer(&can, other, device));
  Stream const there = non_blocking(other);
  for (Bench const &bench : benches_of(device))
    test(bench.name + " on " + where + ": copies", [&] { return copies(bench, other); });
  for (Bench const &bench : benches_of(device))
    if (can)
      test(bench.name + " on " + where + ": kernels, before and after pages move",
           [&] { return blocks_whose_pages_move(bench, there, log); });
  if (can)
    test("pages on " + where + ": they move when its kernels are done",
         [&] { return pages_wait_for_the_other_gpu(device, other, log); });
  else
    std::printf("skipped - kernels on %s: it has no access\n", where.c_str());
}

} // namespace

int main() {
  return run([](int devices) {
    if (devices < 2) {
      std::printf("skipped - pages that another GPU uses: there is one\n");
      return;
    }
    Log log(huge);
    test_peers(0, 1, log);
    test_peers(1, 0, log);
  });
}
