/* nvToolsExt.h - stands in for NVIDIA's header of this name: remembers ranges instead of telling a
 * profiler. Declares what umem uses of it. */
#pragma once

#include <string>
#include <vector>

struct nvtxDomain {
  std::string name;
  std::vector<std::string> begun; /* all ranges, in order */
  int open = 0;
};
using nvtxDomainHandle_t = nvtxDomain *;

#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE sizeof(nvtxEventAttributes_t)
#define NVTX_MESSAGE_TYPE_ASCII 1

struct nvtxEventAttributes_t {
  unsigned short version, size;
  int messageType;
  union {
    char const *ascii;
  } message;
};

nvtxDomain &the_domain();

inline nvtxDomainHandle_t nvtxDomainCreateA(char const *name) {
  the_domain().name = name;
  return &the_domain();
}
inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, nvtxEventAttributes_t const *range) {
  domain->begun.push_back(range->message.ascii);
  return domain->open++;
}
inline int nvtxDomainRangePop(nvtxDomainHandle_t domain) { return --domain->open; }
