/* kinds.cpp - handles for each kind of context: what only that kind can do. */
#include "places.h"

#include "url_server.h"

#include <umem/adaptors.hpp>
#include <umem/open.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/* A file for one test. */
struct FileTest : testing::Test, protected TempFile {
  template <class Place> void write_and_read() {
    {
      Place file(path, "w");
      umem::copy("umem", file, file.allocate(4), 4);
      file.flush();
    }
    {
      Place file(path, "r");
      EXPECT_EQ(bytes_at(file, file.allocate(4), 4), "umem");
      EXPECT_THROW(file.allocate(1), umem::memory_error);
      EXPECT_THROW(file.allocate_zeroed(1), umem::not_supported_error);
      EXPECT_EQ(file.info().name, std::string(path));
    }
    {
      Place file(path, "a+");
      umem::copy("more", file, file.allocate(4), 4);
    }
    {
      Place file(path, "r+");
      EXPECT_EQ(bytes_at(file, file.allocate(20), 20), "umem" + std::string(12, '\0') + "more");
      EXPECT_THROW(Place(path, "r+"), umem::io_error) << "it has a writer";
    }
    EXPECT_THROW(Place(path, "q"), umem::value_error);
    EXPECT_THROW(Place(path, nullptr), umem::value_error);
    EXPECT_THROW(Place("", "w"), umem::value_error);
    EXPECT_THROW(Place(std::string(path) + '\0', "w"), umem::value_error);
    EXPECT_THROW(Place("/nonexistent/file", "r"), std::runtime_error);
  }

  template <class Place> void adopt() {
    { Place(path, "w").allocate_zeroed(4); }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    {
      Place file = Place::adopt(fd);
      umem::copy("umem", file, file.allocate(4), 4);
    }
    EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "it is closed with the context";
    EXPECT_THROW(Place::adopt(-1), umem::io_error);
    fd = open(path, O_RDONLY | O_APPEND | O_CLOEXEC);
    EXPECT_THROW(Place::adopt(fd), umem::value_error);
    EXPECT_EQ(close(fd), 0) << "it is still the caller's";
    Place file(path, "r");
    EXPECT_EQ(bytes_at(file, file.allocate(4), 4), "umem");
  }
};

TEST_F(FileTest, modes_of_files) { write_and_read<umem::File>(); }
TEST_F(FileTest, modes_of_mapped_files) { write_and_read<umem::MMap>(); }
TEST_F(FileTest, descriptors_of_files) { adopt<umem::File>(); }
TEST_F(FileTest, descriptors_of_mapped_files) { adopt<umem::MMap>(); }

TEST_F(FileTest, offsets_and_addresses) {
  umem::MMap mmap(path, "w+");
  mmap.allocate(16);
  umem::address adr = mmap.allocate(16);
  EXPECT_EQ(mmap.offset(adr), 16u);
  EXPECT_EQ(mmap.at_offset(16), adr);
  EXPECT_THROW(mmap.offset(1), umem::index_error);
  EXPECT_THROW(mmap.at_offset(1000), umem::index_error);
}

/* ---- RAM on nodes ---- */

TEST(Host, takes_nodes_or_says_why_not) {
  umemHostOptions options = UMEM_HOST_OPTIONS_INIT;
  options.policy = umemHostInterleave;
  try {
    umem::Host host(options);
    umem::address adr = host.allocate(100);
    EXPECT_EQ(host.node(adr), -1);
    *reinterpret_cast<char *>(adr) = 1;
    EXPECT_NE(host.info().nodes >> host.node(adr) & 1, 0u);
    EXPECT_EQ(umem::Host::of(umem::Limit(host, 1000)).info().nodes, host.info().nodes);
    host.deallocate(adr);
    EXPECT_THROW(host.deallocate(adr), umem::value_error);
  } catch (umem::not_supported_error const &error) {
    EXPECT_NE(std::string(error.what()).find("container"), std::string::npos);
  }
  options.policy = umemHostFirstTouch;
  options.nodes = 1;
  EXPECT_THROW(umem::Host{options}, umem::value_error);
}

/* ---- shared memory ---- */

TEST(Shm, has_names_blocks_and_owners) {
  std::string const name = "umem-test-" + std::to_string(getpid()) + "-cxx";
  EXPECT_THROW(umem::Shm{name}, umem::io_error);
  umem::Shm one(name, 1 << 20), other(name);
  umem::Shm::remove(name);
  EXPECT_THROW(umem::Shm::remove(name), umem::io_error);
  umem::address adr = one.allocate(100);
  EXPECT_EQ(other.at_offset(one.offset(adr)), adr);
  EXPECT_THROW(one.offset(1), umem::index_error);
  EXPECT_THROW(one.at_offset(0), umem::index_error);
  std::vector<umemShmBlock> blocks = other.blocks();
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].address, adr);
  EXPECT_EQ(blocks[0].pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(one.reclaim(), 0u);
  one.own(adr);
  EXPECT_THROW(one.own(adr + 64), umem::value_error);
  EXPECT_TRUE(other.is_complete(adr));
  other.complete(adr);
  EXPECT_THROW(other.complete(adr + 128), umem::value_error);
  EXPECT_THROW(static_cast<void>(other.is_complete(adr + 128)), umem::value_error);
  umem::Shm again = umem::Shm::adopt(dup(one.descriptor()));
  again.deallocate(adr);
  EXPECT_TRUE(one.blocks().empty());
  EXPECT_THROW(umem::Shm::adopt(-1), umem::io_error);
  ASSERT_EQ(fchmod(one.descriptor(), 0666), 0); // others may write it now
  EXPECT_THROW(umem::Shm::adopt(dup(one.descriptor())), umem::io_error);
  umemShmOptions trusting = UMEM_SHM_OPTIONS_INIT;
  trusting.trust = umemTrustAll;
  EXPECT_NO_THROW(umem::Shm::adopt(dup(one.descriptor()), trusting));
  EXPECT_THROW(umem::Shm(0), umem::value_error);
  umemShmOptions options = UMEM_SHM_OPTIONS_INIT;
  options.capacity = 4096;
  options.blocks = 1;
  umem::Shm few("", options);
  few.allocate(1);
  EXPECT_THROW(few.allocate(1), umem::memory_error);
  EXPECT_STREQ(umem::Shm::of(few).name(), "Shm");
}

TEST(Attachment, lives_as_long_as_the_object) {
  umem::Shm shm(1 << 16);
  umem::address adr = shm.allocate_zeroed(100);
  umemHandle handle = umem::share(shm, adr, 100);
  umem::Attachment none, one(handle), own(handle, shm);
  EXPECT_EQ(one.adr(), adr);
  EXPECT_EQ(own.adr(), adr);
  EXPECT_EQ(one.size(), 100u);
  umem::Attachment moved = std::move(one);
  none = std::move(moved);
  EXPECT_EQ(reinterpret_cast<umem::address>(none.data()), adr);
  none = umem::Attachment();
  EXPECT_EQ(umem_detach(umem::Host().c_context(), adr), umemValueError); /* all are gone */
  umem_thread_clear();
  handle.version++;
  EXPECT_THROW(static_cast<void>(umem::Attachment{handle}), umem::value_error);
  EXPECT_THROW(static_cast<void>(umem::Attachment(umem::share(shm, adr, 1), umem::File::scratch())),
               umem::type_error);
  EXPECT_THROW(umem::share(umem::Host(), adr, 100), umem::not_supported_error);
}

TEST(Attachment, comes_through_a_socket) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  umem::Shm shm(1 << 16);
  umem::address adr = shm.allocate_zeroed(8);
  pid_t child = fork();
  if (!child) {
    umem::Attachment block = umem::receive(ends[1]);
    std::memcpy(block.data(), "answer", 7);
    _exit(block.size() == 8 ? 0 : 1);
  }
  umem::send(ends[0], shm, adr, 8);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(bytes_at(shm, adr, 6), "answer");
  umem::Attachment here;
  umem::send(ends[0], shm, adr, 8);
  here = umem::receive(ends[1]);
  EXPECT_EQ(here.adr(), adr);
  umem::send(ends[0], shm, adr, 8);
  EXPECT_EQ(umem::receive(ends[1], umem::Host(), umemTrustAll).adr(), adr);
  EXPECT_EQ(umem::Attachment(umem::share(shm, adr, 8), -1, umem::Host(), umemTrustUser).adr(), adr);
  close(ends[0]);
  EXPECT_THROW(static_cast<void>(umem::receive(ends[1])), umem::io_error);
  close(ends[1]);
}

TEST(Url, reads_an_object) {
  if (!url_has_libcurl()) GTEST_SKIP() << "there is no libcurl";
  std::string const object(100000, 'x');
  UrlServer *server = url_server_start(object.data(), object.size(), nullptr, nullptr);
  {
    umem::Url url(url_server_url(server));
    EXPECT_STREQ(url.name(), "Url");
    EXPECT_EQ(url.info().capacity, object.size());
    EXPECT_EQ(bytes_at(url, 0, object.size()), object);
    EXPECT_GE(url.stats().requests, 2u);
    EXPECT_EQ(url.stats().nbytes, object.size());
    EXPECT_THROW(umem::copy("umem", url, 0, 4), umem::not_supported_error);
    umem::Url const named = umem::Url::of(
        umem::open(std::string("limit+") + url_server_url(server) + "#limit.limit=1G"));
    EXPECT_EQ(named.stats().requests, 1u);
    std::string const address = "127.0.0.1:" + std::to_string(url_server_port(server));
    EXPECT_TRUE(umem::open("http://" + address, {{}, {}, {"example.org", address}}));
    EXPECT_THROW(umem::open("http://" + address, {{}, {}, {"example.org"}}), umem::value_error);
    EXPECT_THROW(umem::open("http://" + address, umem::OpenOptions()), umem::value_error);
    umemUrlOptions options = UMEM_URL_OPTIONS_INIT;
    options.connections = 0;
    EXPECT_THROW(umem::Url(url_server_url(server), options), umem::value_error);
  }
  url_server_stop(server);
  EXPECT_THROW(umem::Url("ftp://127.0.0.1/x"), umem::value_error);
}

TEST(Kinds, have_their_names) {
  EXPECT_STREQ(umem::Host().name(), "Host");
  EXPECT_STREQ(umem::File::scratch().name(), "File");
  EXPECT_STREQ(umem::MMap::scratch().name(), "MMap");
  EXPECT_TRUE(umem::Host().is_same_device(umem::Host()));
  EXPECT_FALSE(umem::Host().is_same_device(umem::File::scratch()));
}

TEST(Kinds, of_cuda_have_their_names) {
  try {
    EXPECT_STREQ(umem::Cuda().name(), "Cuda");
    EXPECT_STREQ(umem::CudaHost(UMEM_WRITE_COMBINED).name(), "CudaHost");
    EXPECT_STREQ(umem::CudaManaged(0, UMEM_READ_MOSTLY | UMEM_OVERSUBSCRIBE).name(), "CudaManaged");
    EXPECT_STREQ(umem::CudaAsync(0, 0).name(), "CudaAsync");
    EXPECT_EQ(umem::CudaAsync(0, 0).stream(), 0u);
    umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
    options.maximum_size = 1 << 20;
    EXPECT_NE(umem::CudaAsync(0, UMEM_STREAM_NEW, &options).stream(), 0u);
  } catch (umem::not_supported_error const &error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_THROW(umem::Cuda(99), umem::value_error);
  EXPECT_THROW(umem::CudaHost(1u << 31), umem::value_error);
  EXPECT_THROW(umem::CudaManaged(99), umem::value_error);
  EXPECT_THROW(umem::CudaAsync(99), umem::value_error);
}

/* Answers the first bytes of an object, and nothing to what writes one. */
bool is_silent(void *silent, UrlRequest *request) {
  if (!std::strcmp(request->method, "GET") && !request->number) return url_serve(nullptr, request);
  while (*static_cast<std::atomic<bool> *>(silent))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return false;
}

struct Thrown {};

/* No request, lock or memory of the call is left: the bytes that were lent may go. */
TEST(Kinds, what_progress_throws_ends_what_waits_for_a_silent_server) {
  if (!url_has_libcurl()) GTEST_SKIP();
  std::vector<char> object(1 << 20, 'o'), bytes(20 << 20, 'x');
  std::atomic<bool> silent(true);
  UrlServer *server = url_server_start(object.data(), object.size(), is_silent, &silent);
  umem::Host host;
  umem::Url url(url_server_url(server));
  umemS3Options options = UMEM_S3_OPTIONS_INIT;
  umemUrlOptions requests = UMEM_URL_OPTIONS_INIT;
  std::string const endpoint = "http://127.0.0.1:" + std::to_string(url_server_port(server));
  requests.connections = 2, requests.retries = 0;
  options.endpoint = endpoint.c_str(), options.url = &requests, options.part = 5 << 20;
  setenv("AWS_ACCESS_KEY_ID", "key", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  umemS3 s3;
  bool const writes = umemS3_ctor_with(&s3, "s3://bucket/key", "w", &options) == umemOK;
  EXPECT_TRUE(writes || umem_thread_status() == umemNotSupportedError) << umem_thread_message();
  umemCopyOptions copying = UMEM_COPY_OPTIONS_INIT;
  int calls = 0;
  copying.user = &calls;
  copying.progress = [](void *user, std::uint64_t, std::uint64_t) {
    if (++*static_cast<int *>(user) > 2) throw Thrown();
    return true;
  };
  auto const adr = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::size_t const extents[] = {100};
  std::ptrdiff_t const strides[] = {200}, packed[] = {100};
  umemLayout const layout = {sizeof layout, 100, 1, extents, strides, packed};
  EXPECT_THROW(umem_copy_strided_with(url.c_context(), 0, host.c_context(), adr, &layout, &copying),
               Thrown);
  if (writes) {
    EXPECT_EQ(umem_alloc(&s3, bytes.size()), 0u);
    std::vector<char> lent = bytes;
    calls = 0;
    EXPECT_THROW(umem_copy_to_with(host.c_context(), reinterpret_cast<std::uintptr_t>(lent.data()),
                                   &s3, 0, lent.size(), &copying),
                 Thrown);
    EXPECT_EQ(umem_get_status(&s3), umemOK) << umem_get_message(&s3);
  }
  silent = false;
  umem_dtor(&s3);
  umem_thread_clear();
  url_server_stop(server);
}

} // namespace
