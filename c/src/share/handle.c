/* handle.c - shares bytes of contexts, attaches those of other processes, and passes handles
 * through sockets.
 *
 *   segment.c        checks segments
 *   process.c        what the process has mapped */
#include "base/files.h"
#include "core/context.h"
#include "share/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <umem/handle.h>
#include <unistd.h>

/* ==== whether a handle can be one ==== */

/* Whether the bytes are memory of a GPU. */
static bool is_of_gpu(umemHandle const *handle) {
  return handle->kind == umemHandleCuda || handle->kind == umemHandleCudaPool;
}

_Static_assert(sizeof(umemHandle) == 512, "handles go to programs with other versions of umem");

/* "/" and a name, and zeros up to the end; or nothing but zeros. */
static bool is_name(char const *text, bool wanted) {
  size_t const room = sizeof((umemHandle *)0)->name;
  size_t length = strnlen(text, room);
  if (length == room) return false;
  for (size_t i = length; i < room; i++)
    if (text[i]) return false;
  if (!wanted) return !length;
  bool up = !strcmp(text, "/.") || !strcmp(text, "/..");
  return length > 1 && length <= 251 && *text == '/' && !strchr(text + 1, '/') && !up;
}

static bool is_zero(uint64_t const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (words[i]) return false;
  return true;
}

#define IS_ZERO(member) is_zero((member), sizeof(member) / sizeof *(member))

/* NULL, or what is wrong with it. Looks at nothing but the handle. */
static char const *check_words(umemHandle const *handle) {
  if (handle->version != UMEM_HANDLE_VERSION) return "its version is not that of this umem";
  if (handle->kind < umemHandleNamed || handle->kind > umemHandleCudaPool)
    return "its kind is not known";
  if (!handle->length) return "it has no bytes";
  if (handle->length > handle->size || handle->offset > handle->size - handle->length ||
      handle->size > INT64_MAX)
    return "its bytes are not in its memory";
  bool segment = handle->kind == umemHandleNamed || handle->kind == umemHandleUnnamed;
  if (segment && handle->offset < umemSegmentHeader) return "its bytes are those of the tables";
  if (handle->flags & ~UMEM_HANDLE_READ_ONLY || handle->zero) return "it has unknown flags";
  if (!is_name(handle->name, handle->kind == umemHandleNamed)) return "its name is malformed";
  bool plain = IS_ZERO(handle->memory) && IS_ZERO(handle->event) && IS_ZERO(handle->gpu);
  if (!IS_ZERO(handle->reserved)) return "it is of a newer umem";
  if (is_of_gpu(handle) && handle->flags) return "memory of a GPU is never read-only";
  return plain || is_of_gpu(handle) ? NULL : "it names a GPU";
}

/* ==== share and attach ==== */

/* ---- share ---- */

umemStatusType umem_share_with(void *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle,
                               int *fd) {
  UMEM_ENTER();
  if (!handle || !fd)
    return umemVirtual_fail(ctx, umemValueError, "the handle or the descriptor is NULL");
  memset(handle, 0, sizeof *handle);
  *fd = -1;
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_thread.last;
  if (adr == umem_null_of(self) || !nbytes || nbytes - 1 > UINTPTR_MAX - adr)
    return umemVirtual_fail(self, umemValueError, "%zu bytes at 0x%jx cannot be shared", nbytes,
                            (uintmax_t)adr);
  uint64_t before = umem_thread.failures;
  umemVirtual *layer = UMEM_LAYER_WITH(self, share);
  if (umem_thread.failures != before) return umem_thread.last;
  if (!layer)
    return umemVirtual_fail(self, umemNotSupportedError,
                            "the memory of a %s cannot be shared with other processes",
                            umem_get_device_name(umem_innermost(self)));
  handle->version = UMEM_HANDLE_VERSION;
  handle->length = nbytes;
  if (layer->vptr->share(layer, adr, nbytes, handle, fd)) return umemOK;
  memset(handle, 0, sizeof *handle);
  *fd = -1;
  return layer == self ? umem_result(before) : umem_record_on_layers(layer, self, before);
}

umemStatusType umem_share(void *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle) {
  UMEM_ENTER();
  int fd;
  return umem_share_with(ctx, adr, nbytes, handle, &fd);
}

/* ---- attach ---- */

static void *refuse(umemVirtual *ctx, umemStatusType type, char const *why) {
  return UMEM_FAIL_NULL(ctx, type, "the handle cannot be attached: %s", why);
}

static void *refuse_for(umemVirtual *ctx, int error) {
  return refuse(ctx, error == ENOMEM ? umemMemoryError : umemIOError, UMEM_WORDS(error));
}

/* Whether no process can make the memory of a descriptor shorter. */
static bool is_sealed(int fd) {
  int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK);
}

/* NULL, or why the bytes of the handle are not in the segment of fd, which is so long. */
static char const *check_segment(umemHandle const *handle, int fd, uint64_t length) {
  umemShmHeader header;
  char const *wrong = umemSegment_check(fd, &header, length);
  if (wrong) return wrong;
  return umemSegment_check_handle(handle, header.id, umemSegment_data(header.blocks, header.pages),
                                  header.total);
}

/* NULL, or why the descriptor is not that of the handle. */
static char const *check_descriptor(umemHandle const *handle, int fd, struct stat const *st,
                                    umemTrust trust) {
  if (!S_ISREG(st->st_mode) || handle->identity[0] != st->st_dev ||
      handle->identity[1] != st->st_ino)
    return "it is not there any more, and something else is in its place";
  if ((uint64_t)st->st_size < handle->size) return "its file is shorter now";
  if (handle->kind == umemHandleFile) return NULL;
  char const *wrong = umemSegment_distrust(st, trust);
  if (!wrong && handle->kind == umemHandleUnnamed && !is_sealed(fd))
    wrong = "the size of its memory is not sealed";
  return wrong ? wrong : check_segment(handle, fd, (uint64_t)st->st_size);
}

/* Takes fd over. */
static umemMapped *map(umemVirtual *ctx, umemHandle const *handle, int fd, umemTrust trust) {
  struct stat st;
  bool writable = !(handle->flags & UMEM_HANDLE_READ_ONLY);
  int mode = fcntl(fd, F_GETFL);
  if (mode < 0 || fstat(fd, &st) != 0) {
    umem_close_failed(fd);
    return refuse_for(ctx, errno);
  }
  char const *wrong = check_descriptor(handle, fd, &st, trust);
  if (!wrong && (mode & O_ACCMODE) != O_RDWR && (writable || (mode & O_ACCMODE) != O_RDONLY))
    wrong = "its descriptor is not open for that";
  if (wrong) {
    close(fd);
    return refuse(ctx, umemIOError, wrong);
  }
  /* A file may have grown since it was mapped: the bytes of the handle keep their address. */
  umemMapped *mapped = umemMapped_find(handle->identity[0], handle->identity[1],
                                       (size_t)handle->size, writable, umemMappedByHandle);
  if (mapped)
    close(fd);
  else
    mapped = umemMapped_open(fd, (size_t)st.st_size, 64 << 10, writable, umemMappedByHandle);
  return mapped ? mapped : refuse_for(ctx, errno);
}

/* A segment that is mapped already. Everybody can know device and inode of a file: so only a
 * descriptor shows that a process may have it, also if it is mapped. What was attached as a file
 * can be cut, and is no memory without a name, although it may look like that. */
static umemMapped *find(umemHandle const *handle) {
  if (handle->kind == umemHandleFile) return NULL;
  bool writable = !(handle->flags & UMEM_HANDLE_READ_ONLY);
  umemMapped *mapped = umemMapped_find(handle->identity[0], handle->identity[1],
                                       (size_t)handle->size, writable, umemMappedByHandle);
  if (!mapped) return NULL;
  bool sealed = handle->kind != umemHandleUnnamed || is_sealed(mapped->fd);
  if (sealed && !check_segment(handle, mapped->fd, mapped->size)) return mapped;
  umemMapped_close(mapped, umemMappedByHandle);
  return NULL;
}

/* *fd becomes -1 if the result has taken it over. A name says enough without it. */
static umemMapped *open_object(umemVirtual *ctx, umemHandle const *handle, int *fd,
                               umemTrust trust) {
  umemMapped *mapped = find(handle);
  if (mapped) return mapped;
  int own = *fd;
  if (handle->kind == umemHandleNamed) {
    int const access = handle->flags & UMEM_HANDLE_READ_ONLY ? O_RDONLY : O_RDWR;
    own = UMEM_AGAIN(shm_open(handle->name, access, 0));
    if (own < 0) return refuse_for(ctx, errno);
  } else {
    *fd = -1;
  }
  if (own >= 0) return map(ctx, handle, own, trust);
  return refuse(ctx, umemValueError,
                "it needs its descriptor, with which umem_send and umem_receive pass it");
}

/* In RAM of this process. */
static uintptr_t attach_mapped(umemVirtual *ctx, umemHandle const *handle, int *fd,
                               umemTrust trust) {
  umemMapped *mapped = open_object(ctx, handle, fd, trust);
  return mapped ? (uintptr_t)mapped->base + (uintptr_t)handle->offset : 0;
}

static uintptr_t attach(umemVirtual *self, umemHandle const *handle, int *fd, umemTrust trust) {
  uintptr_t null = umem_null_of(self), adr = null;
  uint64_t before = umem_thread.failures;
  umemVirtual *layer = UMEM_LAYER_WITH(self, attach);
  umemVirtual *innermost = umem_innermost(self);
  if (umem_thread.failures != before) return null;
  if (layer && layer->vptr->attach(layer, handle, *fd, &adr)) return adr;
  if (umem_thread.failures != before) {
    umem_record_on_layers(layer, self, before);
    return null;
  }
  if (umem_is_plain_host(innermost) && !is_of_gpu(handle)) {
    adr = attach_mapped(innermost, handle, fd, trust);
    if (!adr && innermost != self) umem_record_on_layers(innermost, self, before);
    return adr;
  }
  return UMEM_FAIL_AS(null, self, umemTypeError,
                      "the bytes of the handle are not in this %s: attach them to a %s",
                      umem_get_device_name(innermost),
                      is_of_gpu(handle) ? "Cuda or a CudaAsync" : "Host without options");
}

uintptr_t umem_attach_trusting(umemHandle const *handle, int fd, void *ctx, umemTrust trust) {
  UMEM_ENTER();
  umem_defer_cancel();
  umemVirtual *self = umem_check(ctx);
  umemHandle copy; /* another thread, or process, may change the caller's */
  char const *wrong = "it is NULL";
  if (handle) {
    copy = *handle;
    wrong = check_words(&copy);
  }
  if ((unsigned)trust > umemTrustAll) wrong = "the trust has no meaning";
  uintptr_t adr = umem_null(ctx);
  if (self && !wrong)
    adr = attach(self, &copy, &fd, trust);
  else if (self)
    refuse(self, umemValueError, wrong);
  if (fd >= 0) close(fd);
  return adr;
}

uintptr_t umem_attach_with(umemHandle const *handle, int fd, void *ctx) {
  UMEM_ENTER();
  return umem_attach_trusting(handle, fd, ctx, umemTrustDefault);
}

uintptr_t umem_attach(umemHandle const *handle, void *ctx) {
  UMEM_ENTER();
  return umem_attach_with(handle, -1, ctx);
}

umemStatusType umem_detach(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umem_defer_cancel();
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_thread.last;
  uint64_t before = umem_thread.failures;
  umemVirtual *innermost = umem_innermost(self);
  if (umem_thread.failures != before) return umem_thread.last;
  umemVirtual *layer = UMEM_LAYER_WITH(self, attach);
  bool own = layer && adr != umem_null_of(self);
  if (own && UMEM_SLOT(layer, detach)) own = layer->vptr->detach(layer, adr);
  if (umem_thread.failures != before) return umem_record_on_layers(layer, self, before);
  if (own || (umem_is_plain_host(innermost) && umemMapped_detach(adr))) return umemOK;
  return umemVirtual_fail(self, umemValueError, "nothing is attached at 0x%jx", (uintmax_t)adr);
}

/* ==== handles through sockets ====
 *
 * pidfd_getfd would need no socket, but fails in containers. */

enum {
  descriptors = 8, /* of one message, that have room; what the kernel cuts off it closes */
  others = 512 /* bytes for what the program has made the socket add: who has sent the message */
};

#ifndef SCM_PIDFD
#define SCM_PIDFD 4 /* Linux 6.5: a descriptor of the process that has sent the message */
#endif

typedef union Control {
  struct cmsghdr aligned;
  char bytes[CMSG_SPACE(sizeof(int) * descriptors) + others];
} Control;

static bool fail(void *ctx, char const *what, int error) {
  return UMEM_FAIL(ctx, umemIOError, "cannot %s the handle: %s", what, UMEM_WORDS(error));
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
  size_t expected = handle->kind == umemHandleUnnamed || handle->kind == umemHandleFile ||
                    handle->kind == umemHandleCudaPool;
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
