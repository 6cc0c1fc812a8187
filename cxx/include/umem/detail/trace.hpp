/* umem/detail/trace.hpp - ranges on the time line of NVIDIA's profilers (NVTX). If a program
 * defines UMEM_NVTX, for all its files, loops over elements and transfers of arrays are ranges
 * in the domain "umem"; without a profiler each costs two calls of empty functions. Without
 * UMEM_NVTX this header adds no code. */
#ifndef UMEM_DETAIL_TRACE_HPP
#define UMEM_DETAIL_TRACE_HPP

#include <umem/config.hpp>

#ifdef UMEM_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace umem::detail {

/* A range while the object lives. */
class [[maybe_unused]] TraceRange {
public:
  TraceRange(TraceRange const &) = delete;
  TraceRange &operator=(TraceRange const &) = delete;

#ifdef UMEM_NVTX
  explicit TraceRange(char const *name) {
    char text[64];
    std::snprintf(text, sizeof text, "umem::%s", name);
    nvtxEventAttributes_t range = {};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = text;
    nvtxDomainRangePushEx(domain(), &range);
  }
  ~TraceRange() { nvtxDomainRangePop(domain()); }

private:
  static nvtxDomainHandle_t domain() {
    static nvtxDomainHandle_t const domain = nvtxDomainCreateA("umem");
    return domain;
  }
#else
  UMEM_ALWAYS_INLINE explicit TraceRange(char const *) noexcept {}
#endif
};

/* A call of a function of umem by the program: its name in messages, and a range of this name. */
struct [[maybe_unused]] Called : TraceRange {
  char const *name;
  UMEM_ALWAYS_INLINE Called(char const *name_) noexcept : TraceRange(name_), name(name_) {}
};

} // namespace umem::detail

#endif
