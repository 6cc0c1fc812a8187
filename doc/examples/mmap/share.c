/* One process sends an array in memory to another process, which changes it in place. Nothing is copied. */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

enum { count = 5 };

/* A Unix socket sends a descriptor together with at least one byte; here the bytes are the offset. */
typedef union {
  struct cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int))];
} Control;

static struct msghdr message(struct iovec *part, Control *control) {
  return (struct msghdr){.msg_iov = part,
                         .msg_iovlen = 1,
                         .msg_control = control->bytes,
                         .msg_controllen = sizeof control->bytes};
}

static int send_array(int socket, int fd, uint64_t offset) {
  Control control;
  memset(&control, 0, sizeof control);
  struct iovec part = {&offset, sizeof offset};
  struct msghdr whole = message(&part, &control);
  struct cmsghdr *head = CMSG_FIRSTHDR(&whole);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return sendmsg(socket, &whole, 0) == sizeof offset ? 0 : -1;
}

static int receive_array(int socket, uint64_t *offset) {
  Control control;
  struct iovec part = {offset, sizeof *offset};
  struct msghdr whole = message(&part, &control);
  int fd = -1;
  if (recvmsg(socket, &whole, MSG_CMSG_CLOEXEC) != sizeof *offset) return -1;
  struct cmsghdr *head = CMSG_FIRSTHDR(&whole);
  if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return fd;
}

/* [receiver] */
static int receiver(int socket) {
  uint64_t offset;
  int fd = receive_array(socket, &offset);
  umemMMap shared;
  if (umemMMap_adopt(&shared, fd) != umemOK) { /* from here on shared owns fd */
    fprintf(stderr, "receiver: %s\n", umem_get_message(&shared));
    return 1;
  }
  double *x = (double *)umemMMap_address(&shared, offset);
  for (int i = 0; x && i < count; i++) x[i] *= 10;
  umem_dtor(&shared);
  return x ? 0 : 1;
}
/* [/receiver] */

/* [sender] */
static int sender(int socket, pid_t other) {
  int fd = memfd_create("shared array", MFD_CLOEXEC); /* a file in RAM; any file would do */
  umemMMap shared;
  if (umemMMap_adopt(&shared, fd) != umemOK) {
    fprintf(stderr, "sender: %s\n", umem_get_message(&shared));
    return 1;
  }
  uintptr_t array = umem_alloc(&shared, count * sizeof(double));
  double *x = (double *)array;
  for (int i = 0; x && i < count; i++) x[i] = i;

  int status = send_array(socket, fd, umemMMap_offset(&shared, array));
  int exit_status = 1;
  waitpid(other, &exit_status, 0);
  for (int i = 0; x && i < count; i++) printf("%g ", x[i]);
  printf("\n");
  umem_dtor(&shared);
  return status || exit_status ? 1 : 0;
}
/* [/sender] */

int main(void) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) return 1;
  pid_t other = fork();
  if (other < 0) return 1;
  if (!other) return receiver(sockets[1]);
  close(sockets[1]); /* otherwise a dead receiver would not be noticed */
  return sender(sockets[0], other);
}
