#include "trace_heap.h"

#include <umem.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <unordered_map>

namespace bench {
namespace {

constexpr std::uint64_t unit = 2 << 20;

/* A context whose blocks are addresses alone, as of a GPU: nothing reads or writes them. */
struct Addresses {
  umemVirtual super;
  std::unordered_map<std::uintptr_t, std::uint64_t> blocks;
  std::uintptr_t next;
  std::uint64_t reserved, peak, calls;
};

Addresses *addresses_of(umemVirtual *ctx) { return reinterpret_cast<Addresses *>(ctx); }

std::uintptr_t take_addresses(umemVirtual *ctx, std::size_t, std::size_t size) {
  Addresses *self = addresses_of(ctx);
  std::uint64_t extent = (size + unit - 1) / unit * unit;
  std::uintptr_t adr = self->next;
  self->next += extent + unit; /* blocks never touch */
  self->blocks[adr] = extent;
  self->reserved += extent;
  self->peak = std::max(self->peak, self->reserved);
  self->calls++;
  return adr;
}

void give_addresses(umemVirtual *ctx, std::uintptr_t adr) {
  Addresses *self = addresses_of(ctx);
  self->reserved -= self->blocks.at(adr);
  self->blocks.erase(adr);
  self->calls++;
}

void start_addresses(Addresses &self) {
  static umemVtbl const table = [] {
    umemVtbl made = {};
    made.alloc = [](umemVirtual *ctx, std::size_t size) { return take_addresses(ctx, unit, size); };
    made.free = give_addresses;
    made.aligned_alloc = take_addresses;
    made.aligned_origin = [](umemVirtual *, std::uintptr_t adr) { return adr; };
    made.aligned_free = give_addresses;
    return made;
  }();
  umemVirtual_ctor(&self.super, nullptr);
  self.super.vptr = &table;
  self.super.name = "Addresses";
  self.super.alignment = 512;
  self.next = std::uintptr_t{1} << 44;
}

/* A pool, and the addresses of a trace's blocks. */
class Pool {
public:
  void start(void *upstream, Trace const &trace, std::uint64_t limit, PoolWish wish = {}) {
    umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
    options.maximum = limit;
    options.spare = wish.spare;
    options.growth = wish.growth;
    check(umemPool_ctor(&pool_, upstream, &options));
    addresses_.resize(trace.blocks);
  }
  ~Pool() { umem_dtor(&pool_); }

  bool alloc(std::uint32_t block, std::uint64_t size) {
    addresses_[block] = umem_alloc(&pool_, size);
    if (addresses_[block]) return true;
    umem_thread_clear();
    return false;
  }
  void free(std::uint32_t block) { umem_free(&pool_, addresses_[block]); }
  std::uint64_t reserved_peak() {
    umemPoolStats stats = UMEM_POOL_STATS_INIT;
    check(umemPool_stats(&pool_, &stats));
    return stats.reserved_peak;
  }

private:
  static void check(umemStatusType status) {
    if (status != umemOK) throw std::runtime_error(umem_thread_message());
  }
  umemPool pool_ = {};
  std::vector<std::uintptr_t> addresses_;
};

class PoolOfAddresses : public TraceHeap {
public:
  PoolOfAddresses(Trace const &trace, std::uint64_t limit) {
    start_addresses(addresses_);
    pool_.start(&addresses_, trace, limit);
  }
  bool alloc(std::uint32_t block, std::uint64_t size) override { return pool_.alloc(block, size); }
  void free(std::uint32_t block) override { pool_.free(block); }
  std::uint64_t reserved_peak() override { return addresses_.peak; }
  std::uint64_t upstream_calls() override { return addresses_.calls; }

private:
  Addresses addresses_ = {};
  Pool pool_;
};

/* A pool with memory by pages, which counts them. Few addresses, as those of a GPU of 80 GB. */
struct PagedAddresses {
  Addresses base;     /* first */
  umemPages pages[5]; /* of 2 to 32 MiB */
  PageCounts counts;
};

PagedAddresses *paged_of(umemVirtual *ctx) { return reinterpret_cast<PagedAddresses *>(ctx); }

void add_reserved(Addresses &self, std::uint64_t size) {
  self.reserved += size;
  self.peak = std::max(self.peak, self.reserved);
}

/* The methods for pages of this size. */
template <std::uint64_t Size> umemPages methods_for() {
  umemPages methods = {};
  methods.page_size = Size;
  methods.map = [](umemVirtual *ctx, std::uintptr_t, std::size_t size) {
    paged_of(ctx)->counts.mapped += size / Size;
    add_reserved(*addresses_of(ctx), size);
    return size;
  };
  methods.unmap = [](umemVirtual *ctx, std::uintptr_t, std::size_t size) {
    paged_of(ctx)->counts.unmapped += size / Size;
    addresses_of(ctx)->reserved -= size;
    return size;
  };
  methods.move = [](umemVirtual *ctx, std::uintptr_t, std::uintptr_t, std::size_t size) {
    paged_of(ctx)->counts.moved += size / Size;
    return size;
  };
  return methods;
}

void start_paged(PagedAddresses &self) {
  start_addresses(self.base);
  static umemVtbl const table = [](umemVtbl made) {
    made.pages = [](umemVirtual *ctx) -> umemPages const * { return paged_of(ctx)->pages; };
    made.large_pages = [](umemVirtual *ctx) -> umemPages const * {
      return &paged_of(ctx)->pages[4];
    };
    made.sized_pages = [](umemVirtual *ctx, std::size_t size) -> umemPages const * {
      for (umemPages const &pages : paged_of(ctx)->pages)
        if (pages.page_size == size) return &pages;
      return nullptr;
    };
    made.info = [](umemVirtual *, umemInfo *info) { info->capacity = std::uint64_t{80} << 30; };
    return made;
  }(*self.base.super.vptr);
  self.base.super.vptr = &table;
  self.pages[0] = methods_for<unit>();
  self.pages[1] = methods_for<2 * unit>();
  self.pages[2] = methods_for<4 * unit>();
  self.pages[3] = methods_for<8 * unit>();
  self.pages[4] = methods_for<16 * unit>();
  self.pages->reserve = [](umemVirtual *ctx, std::size_t size) {
    std::uintptr_t adr = addresses_of(ctx)->next;
    addresses_of(ctx)->next += size + unit;
    return adr;
  };
  self.pages->release = [](umemVirtual *, std::uintptr_t, std::size_t) { return true; };
}

class PoolOfPages : public TraceHeap {
public:
  PoolOfPages(Trace const &trace, std::uint64_t limit, PoolWish wish) {
    start_paged(addresses_);
    pool_.start(&addresses_, trace, limit, wish);
  }
  bool alloc(std::uint32_t block, std::uint64_t size) override { return pool_.alloc(block, size); }
  void free(std::uint32_t block) override { pool_.free(block); }
  std::uint64_t reserved_peak() override { return addresses_.base.peak; }
  std::uint64_t upstream_calls() override { return addresses_.base.calls; }
  PageCounts pages() override { return addresses_.counts; }

private:
  PagedAddresses addresses_ = {};
  Pool pool_;
};

class PoolOver : public TraceHeap {
public:
  PoolOver(std::string const &name, Trace const &trace, std::uint64_t limit, PoolWish wish)
      : upstream_(umem_open(name.c_str())) {
    if (!upstream_) throw std::runtime_error(umem_thread_message());
    pool_.emplace();
    pool_->start(upstream_, trace, limit, wish);
  }
  ~PoolOver() override {
    pool_.reset();
    umem_close(upstream_);
  }
  bool alloc(std::uint32_t block, std::uint64_t size) override { return pool_->alloc(block, size); }
  void free(std::uint32_t block) override { pool_->free(block); }
  std::uint64_t reserved_peak() override { return pool_->reserved_peak(); }

private:
  void *upstream_;
  std::optional<Pool> pool_;
};

/* Ranges of the arena by address and by size. */
class BestFit : public TraceHeap {
public:
  BestFit(Trace const &trace, std::uint64_t limit)
      : blocks_(trace.blocks), limit_(limit ? limit : UINT64_MAX) {}

  bool alloc(std::uint32_t block, std::uint64_t size) override {
    auto fit = by_size_.lower_bound({size, 0});
    std::uint64_t adr = end_;
    if (fit != by_size_.end()) {
      auto [extent, start] = *fit;
      remove(start, extent);
      if (extent > size) add(start + size, extent - size);
      adr = start;
    } else {
      auto last = by_address_.empty() ? by_address_.end() : std::prev(by_address_.end());
      if (last != by_address_.end() && last->first + last->second == end_) adr = last->first;
      if (adr + size > limit_) return false;
      if (adr != end_) remove(adr, end_ - adr);
      end_ = adr + size;
    }
    blocks_[block] = {adr, size};
    return true;
  }

  void free(std::uint32_t block) override {
    auto [adr, size] = blocks_[block];
    auto after = by_address_.find(adr + size);
    if (after != by_address_.end()) {
      size += after->second;
      remove(after->first, after->second);
    }
    auto before = by_address_.lower_bound(adr);
    if (before != by_address_.begin() && (--before)->first + before->second == adr) {
      adr = before->first;
      size += before->second;
      remove(before->first, before->second);
    }
    add(adr, size);
  }

  std::uint64_t reserved_peak() override { return end_; }

private:
  void add(std::uint64_t adr, std::uint64_t size) {
    by_address_[adr] = size;
    by_size_.insert({size, adr});
  }
  void remove(std::uint64_t adr, std::uint64_t size) {
    by_address_.erase(adr);
    by_size_.erase({size, adr});
  }

  struct Block {
    std::uint64_t adr, size;
  };
  std::vector<Block> blocks_;
  std::map<std::uint64_t, std::uint64_t> by_address_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
  std::uint64_t limit_, end_ = 0;
};

} // namespace

std::unique_ptr<TraceHeap> pool_of_addresses(Trace const &trace, std::uint64_t limit) {
  return std::make_unique<PoolOfAddresses>(trace, limit);
}

TraceHeaps pool_of_pages(PoolWish wish) {
  return [wish](Trace const &trace, std::uint64_t limit) {
    return std::make_unique<PoolOfPages>(trace, limit, wish);
  };
}

TraceHeaps pool_over(std::string name, PoolWish wish) {
  return [name, wish](Trace const &trace, std::uint64_t limit) {
    return std::make_unique<PoolOver>(name, trace, limit, wish);
  };
}

std::unique_ptr<TraceHeap> best_fit(Trace const &trace, std::uint64_t limit) {
  return std::make_unique<BestFit>(trace, limit);
}

TraceResult run_trace(Trace const &trace, TraceHeap &heap) {
  std::vector<bool> live(trace.blocks);
  TraceResult result = {};
  result.served = true;
  std::size_t allocations = 0;
  auto begin = std::chrono::steady_clock::now();
  for (TraceStep const &step : trace.steps) {
    if (step.size && !heap.alloc(step.block, step.size)) {
      result.served = false;
      break;
    }
    if (!step.size) heap.free(step.block);
    live[step.block] = step.size;
    allocations += step.size != 0;
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  result.seconds = seconds.count() / static_cast<double>(trace.steps.size());
  result.factor = static_cast<double>(heap.reserved_peak()) / static_cast<double>(trace.live_peak);
  auto each = [&](std::uint64_t n) {
    return static_cast<double>(n) / static_cast<double>(allocations);
  };
  PageCounts pages = heap.pages();
  result.calls = each(heap.upstream_calls());
  result.mapped = each(pages.mapped);
  result.moved = each(pages.moved);
  result.unmapped = each(pages.unmapped);
  for (std::uint32_t block = 0; block < trace.blocks; block++)
    if (live[block]) heap.free(block);
  return result;
}

std::optional<double> least_limit(Trace const &trace, TraceHeaps const &heaps) {
  auto served = [&](std::uint64_t limit) { return run_trace(trace, *heaps(trace, limit)).served; };
  std::uint64_t below = trace.live_peak - 1, enough = trace.live_peak;
  while (!served(enough)) {
    below = enough;
    enough += enough / 8;
    if (enough > 8 * trace.live_peak) return std::nullopt;
  }
  while (enough - below > trace.live_peak / 500) {
    std::uint64_t middle = below + (enough - below) / 2;
    (served(middle) ? enough : below) = middle;
  }
  return static_cast<double>(enough) / static_cast<double>(trace.live_peak);
}

} // namespace bench
