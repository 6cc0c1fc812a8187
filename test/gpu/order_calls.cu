/* order_calls.cu - every call on one context, behind a slow kernel on each stream that is in one
 * order with its calls; memory that is freed while kernels use it and given out again; umem_wait
 * between contexts. */
#include "order.cuh"

#include <umem/connection.hpp>

namespace {

using namespace order;

/* Of a block: one that pools give out from a chunk. */
constexpr std::size_t n = 300'000;

/* ---- calls on a block that a kernel uses ---- */

std::string set_comes_after(Bed const &bed, Stream const &stream, Log &log) {
  umem::Buffer block(bed.context, n);
  prepare(bed.context, block.adr(), n, old_byte);
  log.clear();
  launch(stream, block.adr(), n, log.data(), stale_byte, slow_ns);
  block.set(new_byte);
  bed.context.synchronize();
  finish_all();
  return first_of(differ(log.data(), n, old_byte, "the kernel before"),
                  differ(bed.context, block.adr(), n, new_byte, "the block"));
}

std::string set_comes_before(Bed const &bed, Stream const &stream, Log &log) {
  umem::Buffer block(bed.context, n);
  prepare(bed.context, block.adr(), n, old_byte);
  log.clear();
  slow_set(stream, block.adr(), n, stale_byte);
  block.set(new_byte);
  launch(stream, block.adr(), n, log.data(), -1, 0);
  finish_all();
  return differ(log.data(), n, new_byte, "the kernel after");
}

bool count(void *calls, std::uint64_t, std::uint64_t) {
  ++*static_cast<int *>(calls);
  return true;
}

/* With progress a copy is complete on return, in both directions. */
std::string copies_with_progress(Bed const &bed, Stream const &stream, Log &log) {
  umem::Buffer block(bed.context, n);
  umem::CudaHost pinned;
  umem::Buffer host(pinned, n);
  int calls = 0;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.progress = count;
  options.user = &calls;
  options.step = n / 3;
  prepare(bed.context, block.adr(), n, old_byte);
  slow_set(stream, block.adr(), n, new_byte);
  check(umem_copy_to_with(bed.context.c_context(), block.adr(), pinned.c_context(), host.adr(), n,
                          &options));
  auto const *bytes = reinterpret_cast<Byte const *>(host.adr());
  std::string wrong = differ(bytes, n, new_byte, "the copy from the context");
  prepare(bed.context, block.adr(), n, old_byte);
  log.clear();
  launch(stream, block.adr(), n, log.data(), stale_byte, slow_ns);
  check(umem_copy_to_with(pinned.c_context(), host.adr(), bed.context.c_context(), block.adr(), n,
                          &options));
  finish_all();
  wrong = first_of(wrong, differ(log.data(), n, old_byte, "the kernel before"));
  wrong = first_of(wrong, differ(bed.context, block.adr(), n, new_byte, "the copy to the context"));
  return calls < 6 ? first_of(wrong, "progress was not called") : wrong;
}

/* Thirds, the last one first: no two of them become one run. */
void copy_thirds(umem::Context const &src, umem::address from, umem::Context const &dst,
                 umem::address to, bool starts) {
  constexpr std::size_t third = n / 3;
  umemCopyItem items[3];
  for (std::size_t i = 0; i < 3; i++) {
    std::size_t const at = (2 - i) * third;
    items[i] = {src.c_context(), from + at, dst.c_context(), to + at, third};
  }
  umemTransfer *transfer = nullptr;
  check(starts ? umem_start_many(items, 3, nullptr, &transfer) : umem_copy_many(items, 3, nullptr));
  if (starts) check(umemTransfer_wait(transfer));
  check(umemTransfer_release(transfer));
}

/* Both ways, by a call and as a transfer. */
std::string lists_are_ordered(Bed const &bed, Stream const &stream, Log &log) {
  umem::Buffer block(bed.context, n);
  umem::CudaHost pinned;
  umem::Buffer host(pinned, n);
  auto *bytes = reinterpret_cast<Byte *>(host.adr());
  std::string wrong;
  for (bool starts : {false, true}) {
    prepare(bed.context, block.adr(), n, old_byte);
    std::memset(bytes, new_byte, n);
    log.clear();
    launch(stream, block.adr(), n, log.data(), stale_byte, slow_ns);
    copy_thirds(pinned, host.adr(), bed.context, block.adr(), starts);
    bed.context.synchronize();
    finish_all();
    wrong = first_of(wrong, differ(log.data(), n, old_byte, "the kernel before"));
    wrong = first_of(wrong, differ(bed.context, block.adr(), n, new_byte, "the list to it"));
    slow_set(stream, block.adr(), n, stale_byte);
    copy_thirds(bed.context, block.adr(), pinned, host.adr(), starts);
    bed.context.synchronize();
    wrong = first_of(wrong, differ(bytes, n, stale_byte, "the list from it"));
    finish_all();
  }
  return wrong;
}

std::string realloc_keeps_what_a_kernel_writes(Bed const &bed, Stream const &stream, Log &) {
  umem::address adr = bed.context.allocate(n);
  prepare(bed.context, adr, n, old_byte);
  slow_set(stream, adr, n, new_byte);
  adr = bed.context.reallocate(adr, n, 9 * n);
  bed.context.synchronize();
  std::string wrong = differ(bed.context, adr, n, new_byte, "the new block");
  finish_all();
  bed.context.deallocate(adr);
  return wrong;
}

std::string synchronize_waits(Bed const &bed, Stream const &stream, Log &log) {
  umem::Buffer block(bed.context, n);
  prepare(bed.context, block.adr(), n, new_byte);
  log.clear();
  launch(stream, block.adr(), n, log.data(), -1, slow_ns);
  bed.context.synchronize();
  std::string wrong = differ(log.data(), n, new_byte, "the log");
  finish_all();
  return wrong;
}

/* ---- connections ---- */

/* The host sees what a kernel writes. Where addresses are pointers nothing is copied: there the
 * program waits for its kernels. */
std::string connect_waits(Bed const &bed, Stream const &stream, Log &) {
  umem::Buffer block(bed.context, n);
  prepare(bed.context, block.adr(), n, old_byte);
  slow_set(stream, block.adr(), n, new_byte);
  umem::Connection host(bed.context, block.adr(), n, umem::Host());
  std::string wrong =
      differ(static_cast<Byte const *>(host.data()), n, new_byte, "the host's bytes");
  finish_all();
  return wrong;
}

std::string syncs_are_ordered(Bed const &bed, Stream const &stream, Log &log) {
  umem::Buffer block(bed.context, n);
  prepare(bed.context, block.adr(), n, old_byte);
  umem::Connection host(bed.context, block.adr(), n, umem::Host());
  auto *bytes = static_cast<Byte *>(host.data());
  log.clear();
  std::memset(bytes, new_byte, n);
  launch(stream, block.adr(), n, log.data(), stale_byte, slow_ns);
  host.sync_back();
  std::memset(bytes, old_byte, n); /* it may be used again: it is not pinned */
  finish_all();
  std::string wrong = differ(log.data(), n, old_byte, "the kernel before");
  wrong = first_of(wrong, differ(bed.context, block.adr(), n, new_byte, "the block"));
  slow_set(stream, block.adr(), n, stale_byte);
  host.sync();
  wrong = first_of(wrong, differ(bytes, n, stale_byte, "the host's bytes"));
  finish_all();
  return wrong;
}

/* Pinned memory goes to the block while the connection ends: it is not given out before. */
std::string disconnect_waits(Bed const &bed, Stream const &stream, Log &) {
  umem::Buffer block(bed.context, n);
  umem::CudaHost pinned;
  prepare(bed.context, block.adr(), n, old_byte);
  umem::address adr = umem_connect(bed.context.c_context(), block.adr(), n, pinned.c_context(), 0);
  std::memset(reinterpret_cast<void *>(adr), new_byte, n);
  slow_set(stream, block.adr(), n, stale_byte);
  check(umem_sync_from(bed.context.c_context(), block.adr(), pinned.c_context(), adr, n));
  check(umem_disconnect(bed.context.c_context(), block.adr(), pinned.c_context(), adr, 0));
  umem::Buffer again(pinned, n);
  again.set(stale_byte);
  finish_all();
  return differ(bed.context, block.adr(), n, new_byte, "the block");
}

/* ---- memory that is given out again ---- */

/* Frees a block that a kernel is going to write. */
void free_in_use(Bed const &bed, Stream const &stream) {
  umem::address adr = bed.context.allocate(n);
  prepare(bed.context, adr, n, old_byte);
  slow_set(stream, adr, n, stale_byte);
  bed.context.deallocate(adr);
}

std::string freed_memory_can_be_set(Bed const &bed, Stream const &stream, Log &) {
  free_in_use(bed, stream);
  umem::Buffer block(bed.context, n);
  block.set(new_byte);
  bed.context.synchronize();
  finish_all();
  return differ(bed.context, block.adr(), n, new_byte, "the next block");
}

std::string freed_memory_can_be_zeroed(Bed const &bed, Stream const &stream, Log &) {
  free_in_use(bed, stream);
  umem::Buffer block = umem::Buffer::zeroed(bed.context, n);
  bed.context.synchronize();
  finish_all();
  return differ(bed.context, block.adr(), n, 0, "the next block");
}

std::string freed_memory_can_be_trimmed(Bed const &bed, Stream const &stream, Log &) {
  free_in_use(bed, stream);
  bed.context.trim();
  umem::Buffer block(bed.context, n);
  block.set(new_byte);
  bed.context.synchronize();
  finish_all();
  return differ(bed.context, block.adr(), n, new_byte, "the next block");
}

std::string freed_memory_can_be_used_by_a_kernel(Bed const &bed, Stream const &stream, Log &log) {
  free_in_use(bed, stream);
  umem::Buffer block(bed.context, n);
  log.clear();
  launch(stream, block.adr(), n, nullptr, new_byte, 0);
  launch(stream, block.adr(), n, log.data(), -1, 0);
  finish_all();
  return first_of(differ(log.data(), n, new_byte, "a kernel"),
                  differ(bed.context, block.adr(), n, new_byte, "the next block"));
}

/* ---- the table ---- */

using Call = std::string (*)(Bed const &bed, Stream const &stream, Log &log);
enum : unsigned {
  frees = 1,   /* where blocks may be freed while kernels use them */
  not_cpu = 2, /* not where addresses are pointers */
  first = 4    /* on the first stream alone: work of others is not the context's */
};
struct Test {
  char const *name;
  Call call;
  unsigned needs;
};
Test const tests[] = {
    {"a set comes after a kernel", set_comes_after, 0},
    {"a set comes before a kernel", set_comes_before, 0},
    {"copies with progress", copies_with_progress, 0},
    {"lists are ordered, and as transfers", lists_are_ordered, 0},
    {"a resized block keeps what a kernel writes", realloc_keeps_what_a_kernel_writes, frees},
    {"synchronize waits for a kernel", synchronize_waits, first},
    {"connect waits for a kernel", connect_waits, not_cpu},
    {"syncs of connected memory are ordered", syncs_are_ordered, not_cpu},
    {"disconnect waits", disconnect_waits, not_cpu},
    {"freed memory can be set", freed_memory_can_be_set, frees},
    {"freed memory can be zeroed", freed_memory_can_be_zeroed, frees},
    {"freed memory can be trimmed", freed_memory_can_be_trimmed, frees},
    {"freed memory can be used by a kernel", freed_memory_can_be_used_by_a_kernel, frees},
};

void test_calls(Bed const &bed, Log &log) {
  for (Test const &one : tests) {
    if ((one.needs & frees) && !bed.frees_in_order) continue;
    if ((one.needs & not_cpu) && bed.context.can(umemCpuReadable)) continue;
    for (Stream const &stream : bed.streams) {
      if ((one.needs & first) && &stream != &bed.streams[0]) break;
      test(bed.name + ", stream " + stream.name + ": " + one.name, [&] {
        if (&stream == &bed.streams[0]) one.call(bed, stream, log); /* the first takes longer */
        return one.call(bed, stream, log);
      });
    }
  }
}

/* ---- umem_wait ---- */

/* Later work of the one comes after what the other has queued. The kernels meet in pinned memory:
 * the device memory of one GPU is not mapped on another. */
void test_wait(Bed const &one, Bed const &other, Log &log) {
  Log block(n);
  for (Stream const &stream : other.streams) {
    if (one.streams[0].device != stream.device && &stream != &other.streams[0]) break;
    test(one.name + " waits for " + other.name + ", stream " + stream.name, [&] {
      block.clear();
      log.clear();
      auto const adr = reinterpret_cast<umem::address>(block.data());
      slow_set(stream, adr, n, new_byte);
      one.context.wait(other.context);
      launch(one.streams[0], adr, n, log.data(), -1, 0);
      finish_all();
      return differ(log.data(), n, new_byte, "a kernel that waits");
    });
  }
}

/* ---- the end of a context ---- */

void test_end(Log &log) {
  test("the end of a context waits for its stream", [&] {
    Stream const stream = non_blocking(0);
    log.clear();
    {
      umem::CudaAsync context(0, number(stream));
      umem::Buffer block(context, n);
      prepare(context, block.adr(), n, new_byte);
      launch(stream, block.adr(), n, log.data(), -1, slow_ns);
    }
    return differ(log.data(), n, new_byte, "the log");
  });
}

/* ---- views of one pool ---- */

/* A pool with room for one block: what one view frees another takes. */
template <class Below> void test_views(char const *name, Below const &below, Log &log) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.maximum = std::uint64_t(64) << 20;
  std::size_t const most = 40 << 20;
  umem::Pool pool(below, options);
  umem::CudaAsync one, other;
  umem::PoolOn first(pool, one), second(pool, other);
  Stream const from = stream_of(one, 0), to = stream_of(other, 0);
  auto free_in_use = [&](umem::Context const &through) {
    umem::address adr = first.allocate(most);
    prepare(first, adr, n, old_byte);
    slow_set(from, adr, n, stale_byte);
    through.deallocate(adr);
    return adr;
  };
  std::string const views = std::string("views of a pool over ") + name + ": ";
  for (int round = 0; round < 3; round++) {
    test(views + "one sets what another has freed", [&] {
      free_in_use(first);
      umem::Buffer block(second, most);
      second.set(block.adr(), new_byte, n);
      finish_all();
      return differ(second, block.adr(), n, new_byte, "the next block");
    });
    test(views + "a kernel of one uses what another has freed", [&] {
      free_in_use(first);
      umem::Buffer block(second, most);
      log.clear();
      launch(to, block.adr(), n, nullptr, new_byte, 0);
      launch(to, block.adr(), n, log.data(), -1, 0);
      finish_all();
      return first_of(differ(log.data(), n, new_byte, "a kernel"),
                      differ(second, block.adr(), n, new_byte, "the next block"));
    });
    test(views + "the pool gives out what a view has freed", [&] {
      free_in_use(first);
      umem::Buffer block(pool, most);
      block.set(new_byte);
      pool.synchronize();
      finish_all();
      return differ(pool, block.adr(), n, new_byte, "the next block");
    });
    test(views + "one frees what another has allocated and waited for", [&] {
      umem::address adr = first.allocate(most);
      prepare(first, adr, n, old_byte);
      slow_set(from, adr, n, stale_byte);
      second.wait(first);
      second.deallocate(adr);
      umem::Buffer block(second, most);
      second.set(block.adr(), new_byte, n);
      finish_all();
      return differ(second, block.adr(), n, new_byte, "the next block");
    });
    test(views + "the memory of a view that has ended", [&] {
      {
        umem::PoolOn third(pool, one);
        umem::address adr = third.allocate(most);
        prepare(third, adr, n, old_byte);
        slow_set(from, adr, n, stale_byte);
        third.deallocate(adr);
      }
      umem::Buffer block(second, most);
      second.set(block.adr(), new_byte, n);
      finish_all();
      return differ(second, block.adr(), n, new_byte, "the next block");
    });
  }
}

/* Bytes of memory that is not pinned may arrive after the call, and the block be freed before:
 * nothing that a view does with it afterwards is overwritten. */
void test_late_bytes(Log &log) {
  umem::Cuda gpu;
  umem::Pool pool(gpu);
  umem::CudaAsync queue;
  umem::PoolOn view(pool, queue);
  Stream const stream = stream_of(queue, 0);
  test("late bytes of a short copy to a pool reach no block of a view", [&] {
    std::vector<Byte> bytes(60'000, Byte(stale_byte));
    for (int round = 0; round < 1000; round++) {
      umem::address adr = pool.allocate(bytes.size());
      umem::copy(bytes.data(), pool, adr, bytes.size());
      pool.deallocate(adr);
      adr = view.allocate(bytes.size());
      log.clear();
      launch(stream, adr, bytes.size(), nullptr, new_byte, 0);
      launch(stream, adr, bytes.size(), log.data(), -1, 100'000);
      view.synchronize();
      view.deallocate(adr);
      std::string wrong = differ(log.data(), bytes.size(), new_byte, "the view's block");
      if (!wrong.empty()) return "round " + std::to_string(round) + ", " + wrong;
    }
    return std::string();
  });
}

} // namespace

int main() {
  return run([](int devices) {
    Log log(n);
    std::vector<Bed> beds = beds_of(0);
    for (Bed const &bed : beds) test_calls(bed, log);
    if (devices > 1) {
      for (Bed const &bed : beds_of(1)) {
        test_calls(bed, log);
        beds.push_back(bed);
      }
    } else {
      std::printf("skipped - calls on a second GPU: there is none\n");
    }
    for (Bed const &one : beds)
      for (Bed const &other : beds) test_wait(one, other, log);
    test_end(log);
    test_views("cuda", umem::Cuda(), log);
    test_views("async", umem::CudaAsync(), log);
    test_late_bytes(log);
  });
}
