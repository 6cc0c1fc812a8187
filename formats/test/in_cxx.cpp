/* in_cxx.cpp - umem/formats.hpp; and memory that is missing at any allocation, which this program
 * can refuse. */
#include <umem/formats.hpp>

#include <umem.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <unistd.h>

/* ---- allocations of C++ that fail ---- */

static long fails_at = -1; /* this allocation from now on, and those after it; negative: none */

void *operator new(std::size_t size, std::nothrow_t const &) noexcept {
  if (fails_at == 0) return nullptr;
  if (fails_at > 0) fails_at--;
  return std::malloc(size ? size : 1);
}
void *operator new(std::size_t size) {
  if (void *memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::nothrow_t const &) noexcept { std::free(memory); }

namespace {

class FormatsTest : public testing::Test {
protected:
  FormatsTest() {
    char name[] = "/tmp/umem-test-formats-XXXXXX";
    path_ = std::string(mkdtemp(name)) + "/x.safetensors";
    umem::Array<float, 2> w({2, 3});
    umem::Array<int, 1> v({4});
    auto guard = w.host(umem::write);
    for (int i = 0; i < 6; i++) guard[i] = static_cast<float>(i);
    guard.release();
    umem::fill(v, 7);
    umem::save_archive(path_, {{"w", umem::c_array(w)}, {"v", umem::c_array(v)}}, {{"by", "me"}});
  }
  ~FormatsTest() override {
    unlink(path_.c_str());
    rmdir(path_.substr(0, path_.rfind('/')).c_str());
  }

  std::string path_;
};

TEST_F(FormatsTest, lists_what_a_file_holds) {
  umem::Archive const archive(path_);
  EXPECT_EQ(archive.size(), 2u);
  EXPECT_EQ(archive.names(), (std::vector<std::string>{"w", "v"}));
  EXPECT_EQ(archive.metadata(), (std::map<std::string, std::string>{{"by", "me"}}));
  umemArchiveInfo const info = archive.info("w");
  EXPECT_EQ(info.type, umemElementType{umemFloat});
  EXPECT_EQ(info.nbytes, 24u);
  EXPECT_EQ(info.file, path_);
  EXPECT_THROW(archive.info("u"), umem::index_error);
  EXPECT_THROW(static_cast<void>(archive["u"]), umem::index_error);
  EXPECT_THROW(umem::Archive("/nowhere/x.safetensors"), umem::io_error);
}

TEST_F(FormatsTest, arrays_outlive_the_archive) {
  auto archive = std::make_unique<umem::Archive>(path_);
  umem::Array<float const, 2> const w = archive->get<float, 2>("w");
  umem::CArray const v = (*archive)["v"];
  EXPECT_THROW((archive->get<double, 2>("w")), umem::type_error);
  EXPECT_THROW((archive->get<float, 1>("w")), umem::value_error);
  archive.reset();
  EXPECT_EQ(w.get(1, 2), 5);
  EXPECT_EQ((umem::view<int const, 1>(v)(3)), 7);
}

TEST_F(FormatsTest, arrays_are_loaded) {
  umem::Archive const archive(path_);
  umem::Array<float, 2> const w = archive.load<float, 2>("w");
  EXPECT_EQ(w.get(1, 1), 4);
  umem::File const file = umem::File::scratch();
  std::vector<umem::CArray> const all = archive.load(archive.names(), file);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(umemArray_context(all[1].get()), file.c_context());
  EXPECT_THROW(archive.load({"w", "u"}, file), umem::index_error);
}

TEST_F(FormatsTest, arrays_are_loaded_into_arrays) {
  umem::Archive const archive(path_);
  umem::Host const host;
  std::vector<umem::CArray> const ram = archive.load({"v", "w"}, host);
  umem::fill(umem::to_array<int, 1>(ram[0]), 0);
  std::vector<std::uint64_t> dones;
  archive.load_into({"v"}, {ram[0]}, [&](std::uint64_t done, std::uint64_t) {
    dones.push_back(done);
    return true;
  });
  EXPECT_EQ(dones, (std::vector<std::uint64_t>{0, umemArray_nbytes(ram[0].get())}));
  EXPECT_EQ((umem::view<int const, 1>(ram[0])(3)), 7);
  EXPECT_THROW(archive.load_into({"v", "w"}, {ram[0]}), umem::value_error);
  EXPECT_THROW(archive.load_into({"w"}, {ram[0]}), umem::type_error);
  EXPECT_THROW(archive.load_into({"u"}, {ram[0]}), umem::index_error);
}

TEST_F(FormatsTest, a_file_in_memory_is_read) {
  umem::File const file(path_, "r");
  umem::Archive const archive(file, 0, file.info().capacity);
  EXPECT_EQ((archive.load<int, 1>("v").get(2)), 7);
  EXPECT_STREQ(archive.info("v").file, "");
}

TEST_F(FormatsTest, progress_is_reported_and_cancels) {
  umem::Array<char, 1> large({4 << 20});
  umem::fill(large, 'x');
  std::string const path = path_.substr(0, path_.rfind('/')) + "/large.npz";
  std::vector<std::uint64_t> dones;
  std::uint64_t wanted = 0; /* bytes of the whole call */
  auto const note = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, wanted);
    dones.push_back(done);
    return true;
  };
  auto const expect_all = [&] {
    EXPECT_GT(dones.size(), 2u);
    EXPECT_TRUE(std::is_sorted(dones.begin(), dones.end()));
    EXPECT_EQ(dones.back(), wanted);
    dones.clear();
  };
  auto const stop = [](std::uint64_t, std::uint64_t) { return false; };
  auto const throws = [](std::uint64_t done, std::uint64_t) -> bool {
    if (done > 0) throw std::out_of_range("mine");
    return true;
  };
  wanted = 2 * std::uint64_t(large.size()); /* each byte is read for the checksum, too */
  umem::save_archive(path, {{"x", umem::c_array(large)}}, {}, note, 1 << 20);
  expect_all();
  EXPECT_THROW(umem::save_archive(path, {{"y", umem::c_array(large)}}, {}, throws, 1 << 20),
               std::out_of_range);
  umem::Archive const archive(path);
  wanted = std::uint64_t(large.size());
  EXPECT_EQ(archive.load({"x"}, umem::Host(), note, 1 << 20).size(), 1u);
  expect_all();
  EXPECT_THROW(archive.load({"x"}, umem::Host(), stop), umem::cancelled_error);
  EXPECT_THROW(archive.load({"x"}, umem::Host(), throws, 1 << 20), std::out_of_range);
  EXPECT_THROW(archive.load({"x"}, umem::Host(), throws), std::out_of_range);
  EXPECT_THROW(archive.load({"y"}, umem::Host(), stop), umem::index_error);
  wanted = archive.info("x").nbytes + 128; /* with the header of .npy */
  archive.check({"x"}, note, 1 << 20);
  EXPECT_EQ(dones.back(), wanted);
  EXPECT_THROW(archive.check({"x"}, stop), umem::cancelled_error);
  EXPECT_EQ(umem_thread_status(), umemOK); /* nothing is left of what was thrown */
  unlink(path.c_str());
}

/* Each call either succeeds, or fails with a memory error and leaves nothing behind. */
template <class Call> void fail_at_each(Call const &call) {
  long at = 0;
  for (bool succeeds = false; !succeeds; at++) {
    umemStatusType status = umemOK;
    fails_at = at;
    call(&status);
    fails_at = -1;
    succeeds = status == umemOK;
    ASSERT_TRUE(succeeds || status == umemMemoryError) << umem_thread_message();
    umem_thread_clear();
  }
  EXPECT_GT(at, 3);
}

TEST_F(FormatsTest, missing_memory_is_a_status) {
  std::string const index = path_ + ".index.json";
  std::FILE *const file = std::fopen(index.c_str(), "w");
  std::fputs("{\"weight_map\":{\"w\":\"x.safetensors\",\"v\":\"x.safetensors\"}}", file);
  std::fclose(file);
  for (std::string const &path : {path_, index})
    fail_at_each([&](umemStatusType *status) {
      umemArchive *const archive = umemArchive_open(path.c_str(), status);
      EXPECT_EQ(archive != nullptr, *status == umemOK);
      umemArchive_release(archive);
    });
  unlink(index.c_str());
  umem::Archive const archive(path_);
  umem::Host const host;
  fail_at_each([&](umemStatusType *status) {
    umemArray *arrays[2];
    umemArchive_load(archive.c_archive(), 2, nullptr, host.c_context(), arrays, nullptr, status);
    EXPECT_EQ(arrays[1] != nullptr, *status == umemOK);
    for (umemArray *array : arrays) umemArray_release(array);
  });
  std::string const other = path_ + "-other";
  umem::CArray const w = archive["w"];
  fail_at_each([&](umemStatusType *status) {
    char const *const name = "w";
    umemArray *const array = w.get();
    umemArchive_save(other.c_str(), 1, &name, &array, nullptr, status);
    EXPECT_EQ(access(other.c_str(), F_OK) == 0, *status == umemOK);
  });
  unlink(other.c_str());
}

} // namespace
