/* host_pages.h - RAM of this process that is mapped page by page. */
#ifndef UMEM_HOST_PAGES_H
#define UMEM_HOST_PAGES_H

#include <umem/base.h>

/* See the method pages in umem/virtual.h. */
umemPages const *umemHost_pages(umemVirtual *ctx);

#endif
