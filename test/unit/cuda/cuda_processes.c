/* cuda_processes.c - memory of a GPU in two processes: this one shares it, and a new one of the
 * same program attaches it. On a double of the runtime, whose memory is in files that both map;
 * with the environment variable UMEM_TEST_GPU on the real one, with one GPU or two. */
#include "cuda_help.h"

#include <sys/socket.h>

#include "settings.h"

enum { nbytes = 3 << 20, late_answer = 'l', done_answer = 'd' };

static unsigned char bytes[nbytes];
static bool takes_number_0; /* the other process receives a descriptor whose number is 0 */

static bool all_are(unsigned char value, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != value) return false;
  return true;
}

/* ---- the other process ---- */

/* What the exit status of the other process means. */
enum { allWell, noContext, noAddress, wrongBytes, noDetach, wrongRefusal, noAnswer };

static bool open_context(Any *any, char const *kind, int device) {
  if (!strcmp(kind, "cuda")) return umemCuda_ctor(&any->cuda, device) == umemOK;
  return umemCudaAsync_ctor(&any->async, device, UMEM_STREAM_NEW) == umemOK;
}

static bool answer(int socket, char what) { return write(socket, &what, 1) == 1; }

/* Reads the bytes, which the first process has set to 5, and sets them to 7. */
static int use(umemVirtual *ctx, umemHost *host, int socket, uintptr_t adr) {
  umemVirtual *result = ctx; /* in whose order the bytes are read */
  uintptr_t copy = umem_alloc(ctx, nbytes);
  if (umem_copy_to(ctx, adr, result, copy, nbytes) != umemOK) return wrongBytes;
  if (!answer(socket, late_answer)) return noAnswer; /* the bytes may come only now */
  if (umem_copy_to(result, copy, host, (uintptr_t)bytes, nbytes) != umemOK) return wrongBytes;
  if (umem_synchronize(ctx) != umemOK || !all_are(5, nbytes)) return wrongBytes;
  umem_free(ctx, copy);
  if (umem_set(ctx, adr, 7, nbytes) != umemOK || umem_detach(ctx, adr) != umemOK) return noDetach;
  if (umem_detach(ctx, adr) != umemValueError) return noDetach;
  return answer(socket, done_answer) ? allWell : noAnswer;
}

static int receive(char const *kind, int device, int socket, char const *refusal, bool zero) {
  Any any;
  umemHost host;
  umemHost_ctor(&host);
  if (!setting_gpu()) umemCudaRt_replace(fake_cudart());
  if (!open_context(&any, kind, device)) return noContext;
  if (zero) close(0);
  uintptr_t adr = umem_receive(socket, &any, NULL);
  int result = wrongRefusal;
  if (*refusal && !adr && strstr(umem_thread_message(), refusal)) result = allWell;
  if (!*refusal) result = adr ? use(&any.super, &host, socket, adr) : noAddress;
  if (result != allWell) fprintf(stderr, "%s: %s\n", kind, umem_thread_message());
  DESTRUCT(&any, &host);
  if (setting_gpu() || result != allWell) return result;
  umemCudaRt_replace(NULL);
  return fake_cudart_misuse() || !fake_cudart_is_clean() ? wrongBytes : allWell;
}

/* ---- this process ---- */

static void begin(void **state) {
  if (!setting_gpu()) cuda_set_up(state);
}
static void end(void **state) {
  if (!setting_gpu()) cuda_tear_down(state);
}

#define TEST_OF_TWO(name) TEST_CASE_WITH(name, begin, end)

static pid_t start(char const *kind, int device, char const *refusal, int *socket) {
  int ends[2];
  char number[16], ordinal[16];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  snprintf(number, sizeof number, "%d", ends[1]);
  snprintf(ordinal, sizeof ordinal, "%d", device);
  pid_t child = fork();
  if (!child) {
    fcntl(ends[1], F_SETFD, 0);
    execl("/proc/self/exe", "unit_cuda_processes", number, kind, ordinal, refusal,
          takes_number_0 ? "zero" : "", (char *)NULL);
    _exit(99);
  }
  close(ends[1]);
  *socket = ends[0];
  return child;
}

static void expect_answer(int socket, char what) {
  char got = 0;
  assert_int_equal(read(socket, &got, 1), 1);
  assert_int_equal(got, what);
}

/* The work that fills the block is queued only, until the other process waits for it. */
static void pass(void *ctx, char const *kind, int device) {
  SCOPED(umem_dtor) umemHost host;
  int socket;
  umemHost_ctor(&host);
  uintptr_t adr = block_of(ctx, nbytes);
  pid_t child = start(kind, device, "", &socket);
  expect_ok(umem_set(ctx, adr, 5, nbytes));
  expect_ok(umem_send(socket, ctx, adr, nbytes));
  expect_answer(socket, late_answer);
  expect_ok(umem_synchronize(ctx));
  expect_answer(socket, done_answer);
  assert_int_equal(child_wait(child), allWell);
  close(socket);
  memset(bytes, 0, nbytes);
  expect_ok(umem_copy_to(ctx, adr, &host, (uintptr_t)bytes, nbytes));
  expect_ok(umem_synchronize(ctx));
  assert_true(all_are(7, nbytes));
  umem_free(ctx, adr);
}

static void open_shared(umemCudaAsync *ctx) {
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  options.share = 1;
  expect_ok(umemCudaAsync_ctor_with(ctx, 0, UMEM_STREAM_NEW, &options));
}

TEST_OF_TWO(blocks_of_cuda_pass) {
  CONTEXT(umemCuda, ctx, 0);
  pass(&ctx, "cuda-async", 0); /* which waits on its stream, and not in the call */
}

TEST_OF_TWO(blocks_of_a_stream_pass) {
  SCOPED(umem_dtor) umemCudaAsync ctx;
  open_shared(&ctx);
  pass(&ctx, "cuda-async", 0);
  takes_number_0 = true;
  pass(&ctx, "cuda-async", 0);
  takes_number_0 = false;
}

/* On one machine with two GPUs that reach each other. */
TEST_OF_TWO(another_gpu_attaches_them) {
  SCOPED(umem_dtor) umemCudaAsync ctx;
  umemCuda cuda;
  int count = 0, can = 0;
  umemCudaRt const *table = umemCudaRt_get();
  expect_ok(umemCuda_ctor(&cuda, 0));
  if (table->device_count(&count) || count < 2 || table->can_access_peer(&can, 1, 0) || !can) {
    umem_dtor(&cuda);
    skip();
  }
  pass(&cuda, "cuda-async", 1);
  umem_dtor(&cuda);
  open_shared(&ctx);
  pass(&ctx, "cuda-async", 1);
}

TEST_OF_TWO(a_block_that_is_freed_is_refused) {
  umemHandle handle;
  SCOPED(close_fd) int socket;
  if (setting_gpu()) skip(); /* CUDA does not promise to find it */
  CONTEXT(umemCuda, ctx, 0);
  uintptr_t adr = block_of(&ctx, nbytes);
  expect_ok(umem_share(&ctx, adr, nbytes, &handle));
  umem_free(&ctx, adr);
  pid_t child = start("cuda", 0, "has its process freed the memory", &socket);
  assert_int_equal(write(socket, &handle, sizeof handle), sizeof handle);
  assert_int_equal(child_wait(child), allWell);
}

TEST_OF_TWO(a_gpu_without_access_is_refused) {
  SCOPED(close_fd) int socket;
  if (setting_gpu()) skip();
  CONTEXT(umemCuda, ctx, 0);
  uintptr_t adr = block_of(&ctx, nbytes);
  pid_t child = start("cuda", 2, "GPU 2 cannot reach the memory of GPU 0", &socket);
  expect_ok(umem_send(socket, &ctx, adr, nbytes));
  assert_int_equal(child_wait(child), allWell);
  umem_free(&ctx, adr);
}

int main(int count, char **words) {
  if (count == 6)
    return receive(words[2], atoi(words[3]), atoi(words[1]), words[4], *words[5] != 0);
  return run_cases(NULL, NULL);
}
