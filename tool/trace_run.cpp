/* The program and all that it starts inherit a variable UMEM_DEFAULT with a log over what it named
 * before. Each process has its log, in a folder that goes afterwards; logs that are to be kept are
 * moved out of it. */
#include "trace_run.hpp"

#include "failure.hpp"
#include "interrupt.hpp"
#include "name.hpp"
#include "new_text.hpp"
#include "output.hpp"
#include "place.hpp"
#include "trace_log.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

namespace umem::tool {

namespace fs = std::filesystem;

/* ---- the log ---- */

class Folder {
public:
  explicit Folder(fs::path const &parent) {
    std::string pattern = (parent / ".umem-trace-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw Failure("cannot create " + pattern + ": " + std::strerror(errno));
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Folder(Folder const &) = delete;
  Folder &operator=(Folder const &) = delete;

  fs::path path;
};

/* Fails before the program runs if a file cannot be written afterwards. It creates and changes no
 * file. */
static void check_writable(std::string const &path) {
  if (path.empty() || path == "-") return;
  fs::path const folder = fs::path(path).parent_path();
  std::error_code ignored;
  auto const refuses = [](std::string const &one, int what) {
    return access(one.c_str(), what) != 0;
  };
  if (fs::is_directory(path, ignored))
    errno = EISDIR;
  else if (!(refuses(path, F_OK) ? errno != ENOENT : refuses(path, W_OK)) &&
           (is_stream(path) || !refuses(folder.empty() ? "." : folder.string(), W_OK | X_OK)))
    return;
  throw Failure("cannot write " + path + ": " + std::strerror(errno));
}

/* What can be known to be wrong with the size of a log, by a log that goes at once. */
static void check_size(std::string const &size, Folder const &folder) {
  if (size.empty()) return;
  std::string const probe = (folder.path / "size").string();
  Context const log("log+host:?file=" + encoded(probe) + "&max=" + size);
  fs::remove(probe);
}

/* The name of the default context of the program. */
static std::string name_with_log(TraceRun const &wanted, std::string const &log) {
  char const *variable = std::getenv(UMEM_DEFAULT);
  std::string const below = !wanted.on.empty()      ? wanted.on
                            : variable && *variable ? variable
                                                    : "host:";
  std::optional<Name> name = parse_name(below);
  if (!name) throw Failure("not the name of a context: " + below, misuse);
  std::string const unknown = name->unknown_part();
  if (!unknown.empty()) throw Failure("there is no " + unknown + " in " + below, misuse);
  for (std::string const &layer : name->layers)
    if (layer == "log")
      throw Failure(below + " writes a log already: read it by umem trace FILE", misuse);
  name->put_over("log");
  name->options.emplace_back("log.file", encoded(log));
  name->options.emplace_back("log.each-process", "yes");
  if (!wanted.size.empty()) name->options.emplace_back("log.max", wanted.size);
  return name->text();
}

/* ---- the program ---- */

static volatile pid_t child;

static void pass_on(int signal) {
  if (child > 0)
    kill(child, signal);
  else
    Interrupt::note(signal);
}

/* While the program runs, the terminal interrupts only the program, and what is to end this process
 * ends the program. Signals that are ignored, as SIGHUP after nohup, stay so in both. */
class Signals {
public:
  Signals() {
    sigemptyset(&changed);
    for (std::size_t i = 0; i < numbers.size(); i++) {
      sigaction(numbers[i], nullptr, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN) continue;
      struct sigaction action = {};
      action.sa_handler = numbers[i] == SIGINT || numbers[i] == SIGQUIT ? SIG_IGN : pass_on;
      action.sa_flags = SA_RESTART;
      sigaction(numbers[i], &action, nullptr);
      sigaddset(&changed, numbers[i]);
    }
  }
  ~Signals() {
    for (std::size_t i = 0; i < numbers.size(); i++) sigaction(numbers[i], &before_[i], nullptr);
  }
  Signals(Signals const &) = delete;
  Signals &operator=(Signals const &) = delete;

  sigset_t changed; /* the program gets their usual meaning */

private:
  static constexpr std::array<int, 4> numbers = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 4> before_ = {};
};

/* Holds these signals back. Those that come meanwhile arrive at the end. */
class Held {
public:
  explicit Held(sigset_t const &signals) { sigprocmask(SIG_BLOCK, &signals, &before); }
  ~Held() { sigprocmask(SIG_SETMASK, &before, nullptr); }
  Held(Held const &) = delete;
  Held &operator=(Held const &) = delete;

  sigset_t before; /* what was held before */
};

/* How a process begins: attributes and descriptors of posix_spawn. */
class Beginning {
public:
  Beginning() {
    check(posix_spawnattr_init(&attributes));
    if (int const error = posix_spawn_file_actions_init(&files)) {
      posix_spawnattr_destroy(&attributes);
      check(error);
    }
  }
  ~Beginning() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  Beginning(Beginning const &) = delete;
  Beginning &operator=(Beginning const &) = delete;

  static void check(int error) {
    if (error) throw Failure(std::string("cannot run a program: ") + std::strerror(error));
  }

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
};

/* The program gets the usual meaning of the signals in defaults, and holds back those in mask.
 * hides_output: what the program prints goes to the standard error, because the trace is on the
 * standard output. */
static pid_t start(std::vector<std::string> words, sigset_t defaults, sigset_t const &mask,
                   bool hides_output) {
  std::vector<char *> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string &word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  sigaddset(&defaults, SIGPIPE); /* ignored by this program */
  Beginning begin;
  Beginning::check(posix_spawnattr_setsigdefault(&begin.attributes, &defaults));
  Beginning::check(posix_spawnattr_setsigmask(&begin.attributes, &mask));
  Beginning::check(
      posix_spawnattr_setflags(&begin.attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  if (hides_output)
    Beginning::check(posix_spawn_file_actions_adddup2(&begin.files, STDERR_FILENO, STDOUT_FILENO));
  pid_t process = 0;
  int const error = posix_spawnp(&process, arguments[0], &begin.files, &begin.attributes,
                                 arguments.data(), environ);
  if (error) throw Failure("cannot run " + words[0] + ": " + std::strerror(error));
  return process;
}

/* Returns the status as of waitpid. */
static int run_program(std::vector<std::string> const &words, bool hides_output) {
  Signals const signals;
  {
    Held const held(signals.changed); /* until pass_on knows the program */
    Interrupt::check();
    child = start(words, signals.changed, held.before, hides_output);
  }
  int status = 0;
  pid_t ended;
  do ended = waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  child = 0;
  if (ended < 0) throw Failure(std::string("cannot wait for the program: ") + std::strerror(errno));
  return status;
}

/* Nothing for a success. */
static std::optional<Failure> failure_of(std::string const &program, int status) {
  if (WIFSIGNALED(status))
    return Failure(program + " was ended by signal " + std::to_string(WTERMSIG(status)),
                   128 + WTERMSIG(status));
  if (WEXITSTATUS(status))
    return Failure(program + " ended with status " + std::to_string(WEXITSTATUS(status)),
                   WEXITSTATUS(status));
  return {};
}

/* ---- what it has left ---- */

/* The log of one process. */
struct ProcessLog {
  long process;
  fs::path file;
};

/* The logs NAME.NUMBER in the folder, by number. Each becomes NUMBER/NAME: a trace has the name of
 * its file. */
static std::vector<ProcessLog> logs_in(fs::path const &folder, std::string const &name) {
  std::vector<ProcessLog> logs;
  for (fs::directory_entry const &entry : fs::directory_iterator(folder)) {
    std::string const number = entry.path().extension().string();
    if (entry.path().stem() == name && number.size() > 1 &&
        number.find_first_not_of("0123456789", 1) == std::string::npos)
      logs.push_back({std::stol(number.substr(1)), entry.path()});
  }
  for (ProcessLog &log : logs) {
    fs::path const home = folder / std::to_string(log.process);
    fs::create_directory(home);
    fs::rename(log.file, home / name);
    log.file = home / name;
  }
  std::sort(logs.begin(), logs.end(),
            [](auto const &one, auto const &other) { return one.process < other.process; });
  return logs;
}

/* "trace.json" -> "trace.123.json" where there are several processes. */
static std::string path_for(std::string const &path, ProcessLog const &log, bool is_one) {
  if (is_one) return path;
  fs::path const whole(path);
  std::string const name =
      whole.stem().string() + '.' + std::to_string(log.process) + whole.extension().string();
  return (whole.parent_path() / name).string();
}

static void write_traces(TraceRun const &wanted, std::vector<ProcessLog> const &logs) {
  bool const is_one = logs.size() == 1;
  if (!is_one && wanted.out == "-")
    throw Failure(std::to_string(logs.size()) +
                  " processes have a log, but the standard output takes one trace: use -o FILE");
  for (ProcessLog const &log : logs) {
    Interrupt::check();
    std::string const out = path_for(wanted.out, log, is_one);
    Log(log.file.string(), 0).write_chrome(out, wanted.flows);
    if (!is_one) std::fprintf(stderr, "umem: process %ld: %s\n", log.process, plain(out).c_str());
  }
  Interrupt::check();
}

/* Gives a log the permissions and the owner of the file that it replaces, as far as the system lets
 * it. A group that cannot be kept gets what all others get. */
static void take_attributes(fs::path const &log, struct stat const &old) {
  mode_t mode = old.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  if (chown(log.c_str(), old.st_uid, old.st_gid) != 0 &&
      chown(log.c_str(), static_cast<uid_t>(-1), old.st_gid) != 0)
    mode &= S_IRWXU | S_IRWXO | (mode & S_IRWXO) << 3;
  if (chmod(log.c_str(), mode) != 0)
    throw Failure("cannot keep the permissions of " + log.string() + ": " + std::strerror(errno));
}

/* Whoever may write to the folder of a log can have made the file while the program ran. */
static void check_owner(fs::path const &log, struct stat const &old) {
  struct stat folder = {};
  if (stat(log.parent_path().c_str(), &folder) != 0) return;
  bool const is_shared = (folder.st_mode & S_ISVTX) && (folder.st_mode & S_IWOTH);
  if (is_shared && old.st_uid != geteuid() && old.st_uid != folder.st_uid)
    throw Failure("cannot write " + log.string() +
                  ": another user has put it into a folder that everybody may write to");
}

/* Gives a log its name, which is on the same disk. A symbolic link stays: what it leads to is
 * replaced. */
static void keep_log(fs::path const &log, std::string const &path) {
  std::error_code missing;
  fs::path const there = fs::canonical(path, missing);
  struct stat old = {};
  if (!missing && stat(there.c_str(), &old) == 0) {
    check_owner(there, old);
    take_attributes(log, old);
  }
  fs::rename(log, missing ? fs::path(path) : there);
}

static void keep_logs(TraceRun const &wanted, std::vector<ProcessLog> const &logs) {
  if (wanted.keep.empty()) return;
  for (ProcessLog const &log : logs)
    keep_log(log.file, path_for(wanted.keep, log, logs.size() == 1));
}

/* Logs are kept also where no trace can be written. */
static void write_results(TraceRun const &wanted, std::vector<ProcessLog> const &logs) {
  try {
    write_traces(wanted, logs);
  } catch (...) {
    keep_logs(wanted, logs);
    throw;
  }
  keep_logs(wanted, logs);
}

/* ---- the command ---- */

void run_traced(TraceRun const &wanted) {
  check_writable(wanted.out);
  check_writable(wanted.keep);
  if (!wanted.keep.empty()) NewText const probe(wanted.keep); /* refuses what no file can replace */
  if (!wanted.keep.empty() && wanted.out != "-" &&
      fs::weakly_canonical(fs::absolute(wanted.out)) ==
          fs::weakly_canonical(fs::absolute(wanted.keep)))
    throw Failure("the trace and the log are the same file: " + wanted.out, misuse);
  Interrupt const interrupt; /* the folder goes first */
  /* The program may change its working directory before it opens the log. */
  Folder const folder(wanted.keep.empty()
                          ? fs::absolute(scratch_folder())
                          : fs::weakly_canonical(fs::absolute(wanted.keep)).parent_path());
  check_size(wanted.size, folder);
  std::string const name = fs::path(wanted.program[0]).filename().string();
  if (setenv(UMEM_DEFAULT, name_with_log(wanted, (folder.path / name).string()).c_str(), 1) != 0)
    throw Failure("no memory for the environment");
  int const status = run_program(wanted.program, wanted.out == "-");
  std::optional<Failure> const failed = failure_of(wanted.program[0], status);
  std::vector<ProcessLog> const logs = logs_in(folder.path, name);
  try {
    if (!logs.empty()) write_results(wanted, logs);
  } catch (Failure const &why) {
    /* The status of the program tells more. */
    if (!failed || why.status != failure) throw;
    throw Failure(std::string(failed->what()) + '\n' + why.what(), failed->status);
  }
  if (failed) throw *failed;
  if (logs.empty())
    throw Failure(wanted.program[0] +
                  " has not used the default context of umem: nothing to trace");
}

} // namespace umem::tool
