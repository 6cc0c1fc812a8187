/* micro_dispatch.cpp - what a call of umem costs without its work: calls that do next to
 * nothing. */
#include "micro.h"

#include <cstring>

namespace bench {
namespace {

/* What the calls work on. */
struct Small {
  umemHost host;
  double from = 1, to = 0;

  Small() { check(umemHost_ctor(&host)); }
  Small(Small const &) = delete;
  Small &operator=(Small const &) = delete;
  ~Small() { umem_dtor(&host); }
  std::uintptr_t source() { return reinterpret_cast<std::uintptr_t>(&from); }
  std::uintptr_t destination() { return reinterpret_cast<std::uintptr_t>(&to); }
};

struct Call {
  char const *name;
  void (*call)(Small &);
};

void copy_item(Small &s) {
  umem_copy_to(&s.host, s.source(), &s.host, s.destination(), sizeof s.from);
}
void copy_nothing(Small &s) { umem_copy_to(&s.host, s.source(), &s.host, s.destination(), 0); }
void set_item(Small &s) { umem_set(&s.host, s.destination(), 0, sizeof s.to); }
void copy_strided_items(Small &s) {
  std::size_t const extents[] = {1};
  umemLayout layout = {sizeof layout, sizeof s.from, 1, extents, nullptr, nullptr};
  umem_copy_strided(&s.host, s.source(), &s.host, s.destination(), &layout);
}
void connect_pair(Small &s) {
  std::uintptr_t address = umem_connect(&s.host, s.source(), sizeof s.from, &s.host, 0);
  benchmark::DoNotOptimize(address);
  umem_disconnect(&s.host, s.source(), &s.host, address, 0);
}
void ask_status(Small &s) { benchmark::DoNotOptimize(umem_is_ok(&s.host)); }
void synchronize(Small &s) { umem_synchronize(&s.host); }
void fail(Small &s) {
  umem_copy_to(&s.host, 0, &s.host, s.destination(), sizeof s.from);
  umem_clear_status(&s.host);
}
void construct(Small &) {
  umemHost host;
  umemHost_ctor(&host);
  benchmark::DoNotOptimize(&host);
  umem_dtor(&host);
}

constexpr Call calls[] = {
    {"copy-8-bytes", copy_item},
    {"copy-0-bytes", copy_nothing},
    {"set-8-bytes", set_item},
    {"copy-strided-8-bytes", copy_strided_items},
    {"connect+disconnect", connect_pair},
    {"is-ok", ask_status},
    {"synchronize", synchronize},
    {"fail+clear", fail},
    {"construct+destruct", construct},
};

/* By hand, through pointers that the compiler cannot see through, as calls of a library are. */
void *(*volatile copy_by_hand)(void *, void const *, std::size_t) = std::memcpy;
void *(*volatile set_by_hand)(void *, int, std::size_t) = std::memset;

} // namespace

void register_dispatch() {
  for (Call const &call : calls)
    add(std::string("dispatch-") + call.name + "/host/umem", [&call](benchmark::State &state) {
      Small small;
      for (auto _ : state) call.call(small);
    });
  add("dispatch-copy-8-bytes/memory/memcpy", [](benchmark::State &state) {
    Small small;
    for (auto _ : state) copy_by_hand(&small.to, &small.from, sizeof small.from);
  });
  add("dispatch-set-8-bytes/memory/memset", [](benchmark::State &state) {
    Small small;
    for (auto _ : state) set_by_hand(&small.to, 0, sizeof small.to);
  });
}

} // namespace bench
