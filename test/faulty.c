#include "faulty.h"

#include <stdlib.h>

bool faulty_open(Faulty *ctx, umemVirtual *upstream) {
  return umemFault_ctor(&ctx->context, upstream, NULL) == umemOK;
}

void faulty_fail(Faulty *ctx, unsigned calls, umemStatusType type) {
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  if (calls) {
    plan.calls = calls;
    plan.status = type;
    plan.share = 1;
  }
  if (umemFault_set_plan(&ctx->context, &plan) != umemOK) abort();
}

uint64_t faulty_count(Faulty *ctx, unsigned calls) { return umemFault_count(&ctx->context, calls); }
