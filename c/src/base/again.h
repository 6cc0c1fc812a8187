/* again.h - system calls that signals interrupt. */
#ifndef UMEM_AGAIN_H
#define UMEM_AGAIN_H

#include <errno.h>

/* The result of call, which is made again while a signal interrupts it. */
#define UMEM_AGAIN(call)                                                                           \
  __extension__({                                                                                  \
    __typeof__(call) result_;                                                                      \
    do result_ = (call);                                                                           \
    while (result_ < 0 && errno == EINTR);                                                         \
    result_;                                                                                       \
  })

#endif
