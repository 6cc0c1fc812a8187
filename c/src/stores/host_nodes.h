/* host_nodes.h - Hosts with options: RAM on chosen nodes and pages. */
#ifndef UMEM_HOST_NODES_H
#define UMEM_HOST_NODES_H

#include "core/kind.h"

#include <stddef.h>
#include <umem/host.h>

/* What their method table is, by which umem_host_kind knows them. */
extern struct umemVtbl const umem_host_nodes_vtbl;

/* Constructs ctx; options are complete. plain constructs the Host for intermediate buffers:
 * umemHost_ctor, which is in a layer above. */
umemStatusType umemHostNodes_ctor(umemHost *ctx, umemHostOptions const *options,
                                  umemStatusType (*plain)(umemHost *));

#pragma weak __lsan_register_root_region
#pragma weak __lsan_unregister_root_region
void __lsan_register_root_region(void const *adr, size_t nbytes);
void __lsan_unregister_root_region(void const *adr, size_t nbytes);

static inline void umem_root_add(void const *adr, size_t nbytes) {
  if (__lsan_register_root_region) __lsan_register_root_region(adr, nbytes);
}

static inline void umem_root_remove(void const *adr, size_t nbytes) {
  if (__lsan_unregister_root_region) __lsan_unregister_root_region(adr, nbytes);
}

#endif
