/* npy_save.cpp - save_npy replaces a file whole or not at all: what people expect of names,
 * permissions and links, arrays that are views of the file itself, and saves that fail. */
#include "arrays.hpp"
#include "npy_folder.hpp"

#include <umem/adaptors.hpp>

#include <sys/resource.h>
#include <sys/wait.h>

namespace {

using umem::load_npy;
using umem::save_npy;

struct NpySave : testing::Test {
  Folder folder;
};
using FileReplace = NpySave;

constexpr std::size_t header = 128; /* bytes of it in the files of these tests */

struct stat about(std::string const &path) {
  struct stat found = {};
  EXPECT_EQ(lstat(path.c_str(), &found), 0) << path;
  return found;
}

unsigned mode_of(std::string const &path) { return about(path).st_mode & 07777u; }

/* What the exception of a save says. */
template <class Error = umem::io_error>
std::string refusal(std::string const &path, Array<double, 1> const &array = full_of(2)) {
  std::string const text = thrown_by<Error>([&] { save_npy(path, array); });
  umem_thread_clear();
  return text;
}

/* Runs f in a child, which must end with status 0. */
template <class F> void in_child(F const &f) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int status = 1;
    try {
      status = f() ? 0 : 2;
    } catch (std::exception const &exception) {
      fprintf(stderr, "%s\n", exception.what());
    }
    _exit(status);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/* ---- names ---- */

TEST_F(NpySave, leaves_nothing_but_the_file) {
  save_npy(folder / "u.npy", full_of(1));
  save_npy(folder / "u.npy", full_of(2));
  EXPECT_EQ(folder.names(), Names{"u.npy"});
  EXPECT_EQ(value_in(folder / "u.npy"), 2);
  std::string const longest(255, 'x');
  save_npy(folder / longest.c_str(), full_of(3));
  EXPECT_EQ(value_in(folder / longest.c_str()), 3);
}

TEST_F(FileReplace, takes_options) {
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  options.reserve = umemReserveNone;
  umem::File const file = umem::File::replace(folder / "new", options);
  umem::address const adr = file.allocate(1 << 20);
  file.commit();
  EXPECT_EQ(about(folder / "new").st_size, 1 << 20);
  EXPECT_LT(about(folder / "new").st_blocks, 1 << 10); /* not reserved: the file is sparse */
  file.deallocate(adr);
  options.size = 1; /* no struct is as small */
  EXPECT_THROW(umem::File::replace(folder / "other", options), umem::value_error);
  EXPECT_EQ(folder.names(), Names{"new"});
}

TEST_F(FileReplace, has_a_draft_that_others_can_write) {
  umem::File const file = umem::File::replace(folder / "new");
  std::string const draft = file.draft();
  EXPECT_EQ(mode_of(draft), 0600u);
  write_bytes(draft, "written by its name");
  file.commit();
  EXPECT_EQ(bytes_of(folder / "new"), "written by its name");
  EXPECT_EQ(folder.names(), Names{"new"});
  EXPECT_THROW(file.draft(), umem::value_error);
}

TEST_F(NpySave, takes_names_relative_to_the_folder_of_the_program) {
  in_child([&] {
    if (chdir(folder.path().c_str()) != 0) return false;
    save_npy("u.npy", full_of(1));
    save_npy("./u.npy", full_of(2));
    return value_in(folder / "u.npy") == 2;
  });
  EXPECT_EQ(folder.names(), Names{"u.npy"});
}

TEST_F(NpySave, refuses_what_is_no_regular_file) {
  Folder inner(folder.path());
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(symlink("fifo", (folder / "link").c_str()), 0);
  for (char const *name : {"fifo", "link"}) {
    expect_words(refusal(folder / name), "a device, a pipe or a socket, not a regular file");
    EXPECT_TRUE(S_ISFIFO(about(folder / "fifo").st_mode));
  }
  expect_words(refusal(inner.path()), "is a directory, not a regular file");
  expect_words(refusal(folder / "new/"), "directory");
  expect_words(refusal(folder / "missing/u.npy"), "No such file or directory");
  expect_words(refusal(folder / "fifo/u.npy"), "Not a directory");
  expect_words(refusal(folder / std::string(256, 'x').c_str()), "File name too long");
  expect_words(refusal(folder / std::string(5000, 'x').c_str()), "File name too long");
  expect_words(refusal<umem::value_error>(""), "the file name is empty");
  EXPECT_EQ(folder.names().size(), 3u);
}

TEST_F(NpySave, refuses_a_pipe_behind_a_link_of_proc) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  expect_words(refusal("/proc/self/fd/" + std::to_string(ends[1])), "not a regular file");
  close(ends[0]);
  close(ends[1]);
}

TEST_F(NpySave, refuses_a_file_whose_name_is_gone) {
  int fd = open((folder / "u.npy").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(unlink((folder / "u.npy").c_str()), 0);
  expect_words(refusal("/proc/self/fd/" + std::to_string(fd)), "No such file or directory");
  EXPECT_EQ(folder.names(), Names());
  close(fd);
}

/* ---- permissions ---- */

TEST_F(NpySave, keeps_the_permissions_of_the_old_file) {
  for (unsigned mode : {0600u, 0640u, 0666u, 0755u}) {
    write_bytes(folder / "u.npy", "old");
    ASSERT_EQ(chmod((folder / "u.npy").c_str(), mode), 0);
    save_npy(folder / "u.npy", full_of(mode));
    EXPECT_EQ(mode_of(folder / "u.npy"), mode);
    EXPECT_EQ(value_in(folder / "u.npy"), mode);
  }
}

TEST_F(NpySave, gives_a_new_file_the_permissions_of_new_files) {
  for (unsigned mask : {022u, 027u, 077u, 0u})
    in_child([&] {
      std::string const path = folder / std::to_string(mask).c_str();
      umask(mask);
      save_npy(path, full_of(1));
      return mode_of(path) == (0666 & ~mask);
    });
}

TEST_F(NpySave, keeps_the_owner_where_root_saves) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  write_bytes(folder / "u.npy", "old");
  ASSERT_EQ(chown((folder / "u.npy").c_str(), 65534, 65533), 0);
  ASSERT_EQ(chmod((folder / "u.npy").c_str(), 0640), 0);
  save_npy(folder / "u.npy", full_of(1));
  struct stat found = about(folder / "u.npy");
  EXPECT_EQ(found.st_uid, 65534u);
  EXPECT_EQ(found.st_gid, 65533u);
  EXPECT_EQ(found.st_mode & 07777, 0640u);
}

/* As an ordinary user, which root becomes in a child. */
template <class F> void as_user(Folder const &folder, F const &f) {
  uid_t user = geteuid() ? geteuid() : 65534;
  if (!geteuid()) {
    for (std::string const &name : folder.names())
      ASSERT_EQ(lchown((folder / name.c_str()).c_str(), user, user), 0);
    ASSERT_EQ(chown(folder.path().c_str(), user, user), 0);
  }
  in_child([&] {
    if (!geteuid() && (setresgid(user, user, user) || setresuid(user, user, user))) return false;
    return f();
  });
}

TEST_F(NpySave, refuses_files_and_folders_that_may_not_be_written) {
  write_bytes(folder / "u.npy", "old");
  ASSERT_EQ(chmod((folder / "u.npy").c_str(), 0444), 0);
  as_user(folder,
          [&] { return refusal(folder / "u.npy").find("Permission denied") != std::string::npos; });
  ASSERT_EQ(chmod((folder / "u.npy").c_str(), 0644), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  as_user(folder, [&] {
    std::string const text = refusal(folder / "u.npy");
    return text.find("cannot create a file beside") != std::string::npos &&
           text.find("Permission denied") != std::string::npos;
  });
  EXPECT_EQ(bytes_of(folder / "u.npy"), "old");
  ASSERT_EQ(chmod(folder.path().c_str(), 0300), 0); /* not readable: it works all the same */
  as_user(folder, [&] {
    save_npy(folder / "u.npy", full_of(1));
    return true;
  });
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
  EXPECT_EQ(value_in(folder / "u.npy"), 1);
  EXPECT_EQ(folder.names(), Names{"u.npy"});
}

/* ---- links ---- */

TEST_F(NpySave, replaces_what_symbolic_links_lead_to) {
  Folder other(folder.path());
  std::string const inside = other.path().substr(folder.path().size() + 1);
  struct {
    char const *link;
    std::string text;
  } const links[] = {{"near", "u.npy"},
                     {"far", inside + "/v.npy"},
                     {"whole", other / "v.npy"},
                     {"chain", "far"},
                     {"back", inside + "/../u.npy"}};
  write_bytes(folder / "u.npy", "old");
  write_bytes(other / "v.npy", "old");
  ASSERT_EQ(chmod((other / "v.npy").c_str(), 0640), 0);
  double value = 0;
  for (auto const &[link, text] : links) {
    ASSERT_EQ(symlink(text.c_str(), (folder / link).c_str()), 0);
    save_npy(folder / link, full_of(++value));
    EXPECT_TRUE(S_ISLNK(about(folder / link).st_mode));
    EXPECT_EQ(value_in(folder / link), value);
  }
  EXPECT_EQ(value_in(folder / "u.npy"), 5);
  EXPECT_EQ(value_in(other / "v.npy"), 4);
  EXPECT_EQ(mode_of(other / "v.npy"), 0640u);
  EXPECT_EQ(other.names(), Names{"v.npy"});
}

TEST_F(NpySave, creates_what_a_dangling_link_leads_to) {
  ASSERT_EQ(symlink("new.npy", (folder / "link").c_str()), 0);
  save_npy(folder / "link", full_of(1));
  EXPECT_TRUE(S_ISLNK(about(folder / "link").st_mode));
  EXPECT_EQ(value_in(folder / "new.npy"), 1);
  ASSERT_EQ(symlink("missing/new.npy", (folder / "nowhere").c_str()), 0);
  expect_words(refusal(folder / "nowhere"), "No such file or directory");
  ASSERT_EQ(symlink("itself", (folder / "itself").c_str()), 0);
  expect_words(refusal(folder / "itself"), "Too many levels of symbolic links");
}

TEST_F(NpySave, leaves_other_hard_links_as_they_were) {
  save_npy(folder / "u.npy", full_of(1));
  ASSERT_EQ(link((folder / "u.npy").c_str(), (folder / "other.npy").c_str()), 0);
  save_npy(folder / "u.npy", full_of(2));
  EXPECT_EQ(value_in(folder / "u.npy"), 2);
  EXPECT_EQ(value_in(folder / "other.npy"), 1);
}

/* ---- the file itself as source ---- */

constexpr umem::index_t many = 100000;

/* Saves elements of the file, which a context holds open, in its own place. */
template <class Saved> void save_own(char const *mode, Saved const &save) {
  Folder folder;
  std::string const path = folder / "u.npy";
  Array<double, 1> array({many});
  number(array);
  save_npy(path, array);
  save(path, mode);
  EXPECT_TRUE(memory_of(load_npy<double, 1>(path)) == memory_of(array));
  EXPECT_EQ(folder.names(), Names{"u.npy"});
}

TEST_F(NpySave, takes_a_mapping_of_the_file_as_source) {
  for (char const *mode : {"r", "r+"})
    save_own(mode, [](std::string const &path, char const *how) {
      umem::MMap mapping(path, how);
      auto *data = reinterpret_cast<double *>(mapping.at_offset(header));
      save_npy(path, umem::View<double const, 1>(data, {many}));
      EXPECT_EQ(data[many - 1], double(many)) << "the mapping keeps the old file";
    });
}

TEST_F(NpySave, takes_the_opened_file_as_source) {
  for (char const *mode : {"r", "r+"})
    save_own(mode, [](std::string const &path, char const *how) {
      umem::File file(path, how);
      save_npy(path, umem::Part<double const, 1>(file, header, {many}));
    });
}

/* ---- saves that fail ---- */

TEST_F(NpySave, of_a_context_that_fails_leaves_the_file_alone) {
  std::string const path = folder / "u.npy";
  for (char const *name : {"host", "fake", "file"}) {
    umem::Fault device(open_place(*backend_by_name(name)));
    Array<double, 2> array({100, 200}, device);
    number(array);
    array.sync_to_device();
    array.release_host();
    save_npy(path, full_of(1));
    umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
    plan.calls = umemFaultAll;
    int failed = 0;
    for (plan.nth = 1; failed < 100; plan.nth++) {
      device.set_plan(plan);
      try {
        save_npy(path, array.part().transpose());
        break;
      } catch (umem::error const &) {
        failed++;
        umem_clear_status(device.c_context());
        EXPECT_EQ(value_in(path), 1);
        EXPECT_EQ(folder.names(), Names{"u.npy"});
      }
    }
    EXPECT_LT(failed, 100);
    EXPECT_GT(failed, 0) << name;
    EXPECT_EQ((load_npy<double, 2>(path).extents()), (umem::Extents<2>{200, 100}));
    device.set_plan(UMEM_FAULT_PLAN_INIT);
  }
}

TEST_F(NpySave, beyond_the_limit_of_file_size_leaves_the_file_alone) {
  std::string const path = folder / "u.npy";
  save_npy(path, full_of(1));
  in_child([&] {
    rlimit const limit = {100000, 100000};
    if (setrlimit(RLIMIT_FSIZE, &limit)) return false;
    std::string const text = refusal<umem::memory_error>(path, full_of(2, 100000));
    std::string const fresh = refusal<umem::memory_error>(folder / "new.npy", full_of(2, 100000));
    return text.find("RLIMIT_FSIZE") != std::string::npos &&
           fresh.find("RLIMIT_FSIZE") != std::string::npos;
  });
  EXPECT_EQ(value_in(path), 1);
  EXPECT_EQ(folder.names(), Names{"u.npy"});
}

/* ---- beside others ---- */

TEST_F(NpySave, is_seen_by_readers_as_the_old_file_or_the_new_one) {
  std::string const path = folder / "u.npy";
  save_npy(path, full_of(0));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, loads{0};
  std::thread reader([&] {
    double last = 0;
    while (!stop) try {
        double value = value_in(path);
        wrong += value < last;
        last = value;
        loads++;
      } catch (std::exception const &) {
        wrong++;
        umem_thread_clear();
      }
  });
  for (int value = 1; value <= 200 || loads < 20; value++) save_npy(path, full_of(value));
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(NpySave, by_many_threads_leaves_the_file_of_one) {
  std::string const path = folder / "u.npy";
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; k++)
    threads.emplace_back([&, k] {
      for (int i = 0; i < 25; i++) save_npy(path, full_of(k));
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_GE(value_in(path), 0);
  EXPECT_EQ(folder.names(), Names{"u.npy"});
}

} // namespace
