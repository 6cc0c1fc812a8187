/* socket.c - handles through a Unix socket, with their descriptors (SCM_RIGHTS).
 *
 * pidfd_getfd would need no socket, but fails in containers. */
#include "share/handle_check.h"
#include "base/again.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/context.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <umem/handle.h>
#include <unistd.h>

enum {
  descriptors = 8, /* of one message, that have room; what the kernel cuts off it closes */
  others = 512 /* bytes for what the program has told the socket to add: who has sent the message */
};

#ifndef SCM_PIDFD
#define SCM_PIDFD 4 /* Linux 6.5: a descriptor of the process that has sent the message */
#endif

typedef union Control {
  struct cmsghdr aligned;
  char bytes[CMSG_SPACE(sizeof(int) * descriptors) + others];
} Control;

static bool fail(void *ctx, char const *what, int error) {
  char words[128];
  return UMEM_FAIL(ctx, umemIOError, "cannot %s the handle: %s", what,
                   umem_system_words(error, words, sizeof words));
}

/* ---- send ---- */

/* The descriptor goes with the first bytes. */
static bool send_all(int socket, umemHandle const *handle, int fd) {
  Control control = {.bytes = {0}};
  for (size_t done = 0; done < sizeof *handle;) {
    struct iovec bytes = {(char *)(uintptr_t)handle + done, sizeof *handle - done};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (fd >= 0 && !done) {
      message.msg_control = control.bytes;
      message.msg_controllen = CMSG_SPACE(sizeof fd);
      struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
      *rights = (struct cmsghdr){
          .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
      memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    ssize_t n = UMEM_AGAIN(sendmsg(socket, &message, MSG_NOSIGNAL));
    if (n < 0) return false;
    done += (size_t)n;
  }
  return true;
}

umemStatusType umem_send(int socket, void *ctx, uintptr_t adr, size_t nbytes) {
  UMEM_ENTER();
  umem_defer_cancel();
  umemHandle handle;
  int fd;
  umemStatusType status = umem_share_with(ctx, adr, nbytes, &handle, &fd);
  if (status != umemOK) return status;
  if (send_all(socket, &handle, fd)) return umemOK;
  fail(ctx, "send", errno);
  return umemIOError;
}

/* ---- receive ---- */

/* What came: the first descriptor, and how many there were; the others are closed. */
typedef struct Came {
  int fd;
  size_t count;
  bool cut; /* by the kernel: there were more, which it has closed */
} Came;

static void collect(struct msghdr *message, Came *came) {
  came->cut |= (message->msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    bool sent = part->cmsg_type == SCM_RIGHTS; /* by the other side */
    if (part->cmsg_level != SOL_SOCKET || (!sent && part->cmsg_type != SCM_PIDFD)) continue;
    size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      if (sent && !came->count++)
        came->fd = fd;
      else if (fd >= 0)
        close(fd);
    }
  }
}

/* The handle, all of it. False, with errno, or 0 there if the other side has closed the socket. */
static bool receive_all(int socket, umemHandle *handle, Came *came) {
  for (size_t done = 0; done < sizeof *handle;) {
    Control control;
    struct iovec bytes = {(char *)handle + done, sizeof *handle - done};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t n = UMEM_AGAIN(recvmsg(socket, &message, MSG_CMSG_CLOEXEC));
    if (n < 0) return false;
    collect(&message, came);
    if (n == 0) {
      errno = 0;
      return false;
    }
    done += (size_t)n;
  }
  return true;
}

static bool receive(umemVirtual *ctx, int socket, umemHandle *handle, Came *came) {
  if (!receive_all(socket, handle, came))
    return errno ? fail(ctx, "receive", errno)
                 : UMEM_FAIL(ctx, umemIOError,
                             "cannot receive the handle: the other side has closed the socket");
  size_t expected = umemHandle_needs_descriptor(handle);
  if (came->count == expected && !came->cut) return true;
  return UMEM_FAIL(ctx, umemIOError,
                   "cannot receive the handle: %zu descriptors came with it%s, and it needs %zu",
                   came->count, came->cut ? ", or more" : "", expected);
}

uintptr_t umem_receive_trusting(int socket, void *ctx, umemHandle *handle, umemTrust trust) {
  UMEM_ENTER();
  umem_defer_cancel();
  umemHandle mine = {0};
  Came came = {-1, 0, false};
  uintptr_t null = umem_null(ctx), adr = null;
  if (handle) memset(handle, 0, sizeof *handle);
  umemVirtual *self = umem_check(ctx);
  if (!self) return null;
  if (receive(self, socket, &mine, &came))
    adr = umem_attach_trusting(&mine, came.fd, ctx, trust);
  else if (came.count)
    close(came.fd);
  if (handle && adr != null) *handle = mine;
  return adr;
}

uintptr_t umem_receive(int socket, void *ctx, umemHandle *handle) {
  UMEM_ENTER();
  return umem_receive_trusting(socket, ctx, handle, umemTrustDefault);
}
