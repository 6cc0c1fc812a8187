/* umem/detail/trace.hpp - ranges on the time line of NVIDIA's profilers (NVTX). If a program
 * defines UMEM_NVTX, for all its files, loops over elements and transfers of arrays are ranges
 * in the domain "umem"; without a profiler each costs two calls of empty functions. Without
 * UMEM_NVTX this header adds no code. */
#ifndef UMEM_DETAIL_TRACE_HPP
#define UMEM_DETAIL_TRACE_HPP

#ifdef UMEM_NVTX
#include <nvtx3/nvToolsExt.h>

namespace umem::detail {

inline nvtxDomainHandle_t trace_domain() {
  static nvtxDomainHandle_t const domain = nvtxDomainCreateA("umem");
  return domain;
}

/* A range while the object lives. */
class TraceRange {
public:
  explicit TraceRange(char const *name) {
    nvtxEventAttributes_t range = {};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = name;
    nvtxDomainRangePushEx(trace_domain(), &range);
  }
  TraceRange(TraceRange const &) = delete;
  TraceRange &operator=(TraceRange const &) = delete;
  ~TraceRange() { nvtxDomainRangePop(trace_domain()); }
};

} // namespace umem::detail

#define UMEM_TRACE(name) ::umem::detail::TraceRange const umem_trace(name)
#else
#define UMEM_TRACE(name) static_cast<void>(0)
#endif

#endif
