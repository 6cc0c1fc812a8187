/* npy_kill.cpp - save_npy in processes that are killed, and whose system calls fail: the file is
 * the complete old one or the complete new one. A tracer stops the process at each of its system
 * calls. */
#include "npy_folder.hpp"

#include <cerrno>
#include <csignal>
#include <elf.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

namespace {

using umem::save_npy;

/* ---- a traced process ---- */

/* How it ended, as of waitpid. */
bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

[[noreturn]] void run_and_end(std::function<void()> const &f) {
  try {
    f();
    _exit(0);
  } catch (std::exception const &) {
    _exit(1);
  }
}

/* f in a process that stops at its system calls: with 0 when it has come to its end, 1 after an
 * exception. */
class Traced {
public:
  explicit Traced(std::function<void()> const &f) : child_(fork()) {
    if (child_ == 0) {
      if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(not_permitted);
      raise(SIGSTOP);
      run_and_end(f);
    }
    wait();
    permitted_ = WIFSTOPPED(status_) && ptrace(PTRACE_SETOPTIONS, child_, 0,
                                               PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0;
  }
  Traced(Traced const &) = delete;
  Traced &operator=(Traced const &) = delete;
  ~Traced() { kill_now(); }

  /* Whether this machine lets processes be traced; under qemu, for one, it does not. */
  bool is_permitted() const { return permitted_; }

  /* Goes on to the beginning or the end of a system call; false when the process has ended. */
  bool next() {
    do {
      if (ptrace(PTRACE_SYSCALL, child_, 0, 0) != 0) return false;
      wait();
    } while (WIFSTOPPED(status_) && WSTOPSIG(status_) != (SIGTRAP | 0x80));
    return WIFSTOPPED(status_);
  }

  /* The number of the call that is about to begin, and one of its arguments; -1 at the end of
   * one. */
  long call(int argument = -1, std::uint64_t *value = nullptr) const {
    __ptrace_syscall_info info = {};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child_, sizeof info, &info) <= 0) return -1;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return -1;
    if (value) *value = info.entry.args[argument];
    return static_cast<long>(info.entry.nr);
  }

  /* At the beginning of a call: it is not made and fails with this errno. */
  bool fail(int error) {
    set_number(-1);
    if (!next()) return false;
    set_result(-error);
    return true;
  }

  /* Its end, without further stops. */
  int finish() {
    while (next()) {
    }
    return status_;
  }

  int kill_now() {
    if (!WIFSTOPPED(status_)) return status_;
    kill(child_, SIGKILL);
    do wait();
    while (WIFSTOPPED(status_));
    return status_;
  }

private:
  static constexpr int not_permitted = 77;

  void wait() {
    pid_t found;
    do found = waitpid(child_, &status_, 0);
    while (found < 0 && errno == EINTR);
    if (found != child_) status_ = 0;
  }

#if defined(__x86_64__)
  void set_number(long number) const {
    ptrace(PTRACE_POKEUSER, child_, offsetof(user_regs_struct, orig_rax), number);
  }
  void set_result(long result) const {
    ptrace(PTRACE_POKEUSER, child_, offsetof(user_regs_struct, rax), result);
  }
#elif defined(__aarch64__)
  void set_number(int number) const {
    iovec value = {&number, sizeof number};
    ptrace(PTRACE_SETREGSET, child_, NT_ARM_SYSTEM_CALL, &value);
  }
  void set_result(long result) const {
    user_regs_struct registers;
    iovec value = {&registers, sizeof registers};
    ptrace(PTRACE_GETREGSET, child_, NT_PRSTATUS, &value);
    registers.regs[0] = static_cast<std::uint64_t>(result);
    ptrace(PTRACE_SETREGSET, child_, NT_PRSTATUS, &value);
  }
#endif

  pid_t child_;
  int status_ = 0;
  bool permitted_ = false;
};

/* Few enough elements that no thread is started for them. */
constexpr umem::index_t small = 1000;

struct NpyTraced : testing::Test {
  void SetUp() override {
    if (!Traced([] {}).is_permitted()) GTEST_SKIP() << "processes cannot be traced here";
  }

  /* The old file, or none. */
  void begin(bool exists) {
    for (std::string const &name : folder.names()) unlink((folder / name.c_str()).c_str());
    if (exists) save_npy(path, full_of(1, small));
    exists_ = exists;
  }

  void expect_old() {
    bool there = access(path.c_str(), F_OK) == 0;
    EXPECT_EQ(there, exists_);
    EXPECT_EQ(there ? value_in(path, small) : 1, 1);
  }

  bool is_new() { return access(path.c_str(), F_OK) == 0 && value_in(path, small) == 2; }

  /* Between linkat and rename the new file has a name of its own. */
  void expect_at_most_one_left() {
    for (std::string const &name : folder.names())
      EXPECT_TRUE(name == "u.npy" || name.compare(0, 6, ".umem-") == 0) << name;
    EXPECT_LE(folder.names().size(), 2u);
  }

  Folder folder;
  std::string const path = folder / "u.npy";
  std::function<void()> const save = [this] { save_npy(path, full_of(2, small)); };

private:
  bool exists_ = false;
};

TEST_F(NpyTraced, killed_at_any_system_call_leaves_the_old_file_or_the_new_one) {
  for (bool exists : {true, false}) {
    bool ended = false, was_old = false, was_new = false;
    int left = 0;
    for (int stops = 0; !ended; stops++) {
      begin(exists);
      Traced process(save);
      for (int i = 0; i < stops && !ended; i++) ended = !process.next();
      if (!ended) {
        EXPECT_TRUE(was_killed(process.kill_now()));
      }
      if (!is_new()) expect_old();
      was_new |= is_new();
      was_old |= !is_new();
      expect_at_most_one_left();
      left += folder.names().size() == (exists || is_new() ? 2u : 1u);
    }
    EXPECT_TRUE(was_old && was_new);
    EXPECT_LE(left, 3); /* from the end of linkat to the beginning of renameat */
  }
}

TEST_F(NpyTraced, writes_the_data_to_the_disk_before_the_name_and_then_the_name) {
  for (bool exists : {true, false}) {
    begin(exists);
    Traced process(save);
    std::vector<std::string> order;
    std::uint64_t fd = 0, written = 0;
    while (process.next()) switch (process.call(0, &fd)) {
      case SYS_pwrite64:
        order.push_back("write");
        written = fd;
        break;
      case SYS_fsync:
        order.push_back(fd == written ? "sync the file" : "sync the folder");
        break;
      case SYS_linkat:
        order.push_back("link");
        break;
#ifdef SYS_renameat
      case SYS_renameat:
#endif
      case SYS_renameat2:
        order.push_back("rename");
        break;
      default:
        break;
      }
    order.erase(std::unique(order.begin(), order.end()), order.end());
    /* A file system without O_TMPFILE has no need of links. */
    order.erase(std::remove(order.begin(), order.end(), "link"), order.end());
    if (!exists && order.size() == 3) order.insert(order.begin() + 2, "rename");
    EXPECT_EQ(order,
              (std::vector<std::string>{"write", "sync the file", "rename", "sync the folder"}));
    EXPECT_TRUE(is_new());
  }
}

#if defined(__x86_64__) || defined(__aarch64__)

/* Calls about files: other failures are those of malloc and of threads, which libc does not all
 * survive. */
bool is_about_files(long call) {
  static long const calls[] = {
#ifdef SYS_open
      SYS_open,      SYS_stat,       SYS_access,   SYS_unlink,     SYS_rename,
#endif
#ifdef SYS_renameat
      SYS_renameat,
#endif
      SYS_openat,    SYS_newfstatat, SYS_fstat,    SYS_readlinkat, SYS_linkat,    SYS_renameat2,
      SYS_fchmod,    SYS_fchown,     SYS_getxattr, SYS_fsetxattr,  SYS_faccessat, SYS_faccessat2,
      SYS_fallocate, SYS_ftruncate,  SYS_pwrite64, SYS_fsync,      SYS_fdatasync, SYS_flock,
      SYS_fcntl,     SYS_close,      SYS_fstatfs,  SYS_statfs};
  return std::find(std::begin(calls), std::end(calls), call) != std::end(calls);
}

TEST_F(NpyTraced, leaves_the_file_alone_where_a_system_call_fails) {
  for (int error : {EIO, ENOSPC, EINTR, EPERM, EOPNOTSUPP})
    for (bool exists : {true, false}) {
      bool ended = false;
      int failed = 0;
      for (int nth = 0; !ended; nth++) {
        begin(exists);
        Traced process(save);
        int seen = 0;
        long call = -1;
        while (!ended) {
          ended = !process.next();
          call = ended ? -1 : process.call();
          if (is_about_files(call) && seen++ == nth) break;
        }
        ASSERT_TRUE(ended || process.fail(error));
        int status = process.finish();
        ASSERT_TRUE(WIFEXITED(status)) << status << " with " << strerror(error) << " of " << call;
        failed += WEXITSTATUS(status) != 0;
        /* What comes after the new name is in place does not take it back. */
        EXPECT_TRUE(is_new() || WEXITSTATUS(status) != 0);
        if (!is_new()) expect_old();
        EXPECT_LE(folder.names().size(), exists || is_new() ? 1u : 0u)
            << "with " << strerror(error) << " of " << call;
      }
      EXPECT_GT(failed, 0);
    }
}

#endif

/* ---- killed at random ---- */

/* Saves 2, 3, ... until it is killed. */
[[noreturn]] void save_for_ever(std::string const &path, umem::index_t size) {
  for (double value = 2;; value++) save_npy(path, full_of(value, size));
}

/* Moments up to twice the time of a save; where the machine is busy, more of them. */
TEST(NpyKill, at_random_moments_leaves_a_complete_file) {
  using clock = std::chrono::steady_clock;
  Folder folder;
  std::string const path = folder / "u.npy";
  for (umem::index_t size : {small, umem::index_t(100000)}) {
    auto const begun = clock::now();
    save_npy(path, full_of(1, size));
    auto const time = clock::now() - begun;
    double last = 1;
    for (int kills = 0; kills < 20 || (last == 1 && kills < 1000); kills++) {
      pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) run_and_end([&] { save_for_ever(path, size); });
      std::this_thread::sleep_for(time * (kills + 1) / 10);
      kill(child, SIGKILL);
      int status;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(was_killed(status));
      ASSERT_NO_THROW(last = std::max(last, value_in(path, size)));
    }
    EXPECT_GT(last, 1) << "no save was completed in all this time";
    for (std::string const &name : folder.names())
      EXPECT_TRUE(name == "u.npy" || name.compare(0, 6, ".umem-") == 0) << name;
  }
}

/* ---- a full disk ---- */

/* In a child that sees a small file system of its own: 77 where that is not permitted. */
int save_on_full_disk(std::string const &mount_point) {
  if (unshare(CLONE_NEWNS) || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
      mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=1m"))
    return 77;
  std::string const path = mount_point + "/u.npy";
  save_npy(path, full_of(1));
  int refused = 0;
  for (umem::index_t size : {200000, 131000}) try {
      save_npy(path, full_of(2, size));
    } catch (umem::memory_error const &) {
      refused++;
    }
  save_npy(mount_point + "/most.npy", full_of(3, 100000));
  try {
    save_npy(mount_point + "/most.npy", full_of(4, 100000)); /* both do not fit */
  } catch (umem::memory_error const &) {
    refused++;
  }
  bool good = value_in(path) == 1 && value_in(mount_point + "/most.npy", 100000) == 3;
  save_npy(path, full_of(5));
  return good && value_in(path) == 5 && refused == 3 ? 0 : 1;
}

TEST(NpyKill, a_full_disk_leaves_the_file_alone) {
  Folder folder;
  std::string const mount_point = folder / "disk";
  ASSERT_EQ(mkdir(mount_point.c_str(), 0700), 0);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int status = 2;
    try {
      status = save_on_full_disk(mount_point);
    } catch (std::exception const &exception) {
      fprintf(stderr, "%s\n", exception.what());
    }
    _exit(status);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  rmdir(mount_point.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "mounting is not permitted here";
  EXPECT_EQ(status, 0);
}

} // namespace
