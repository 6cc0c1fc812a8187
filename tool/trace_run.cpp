/* trace_run.cpp - see trace_run.hpp.
 *
 * The program inherits a variable UMEM_DEFAULT with a log over what it named before. The log is in a folder of its own,
 * which goes afterwards, unless it is to be kept. */
#include "trace_run.hpp"

#include "failure.hpp"
#include "interrupt.hpp"
#include "name.hpp"
#include "place.hpp"
#include "trace_log.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

namespace umem::tool {

namespace fs = std::filesystem;

/* ---- the log ---- */

class Folder {
public:
  Folder() {
    std::string pattern = scratch_folder() + "/umem-trace-XXXXXX";
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

/* Fails before the program runs if a file cannot be written afterwards. It creates and changes no file. */
static void check_writable(std::string const &path) {
  if (path.empty() || path == "-") return;
  fs::path const folder = fs::path(path).parent_path();
  bool const exists = access(path.c_str(), F_OK) == 0;
  std::string const asked = exists ? path : folder.empty() ? "." : folder.string();
  std::error_code ignored;
  if (exists && fs::is_directory(path, ignored))
    errno = EISDIR;
  else if (access(asked.c_str(), exists ? W_OK : W_OK | X_OK) == 0)
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
  if (!wanted.size.empty()) name->options.emplace_back("log.max", wanted.size);
  return name->text();
}

/* ---- the program ---- */

static volatile pid_t child;

static void pass_on(int signal) {
  if (child > 0) kill(child, signal);
}

/* While the program runs, the terminal interrupts only the program, and what is to end this process ends the program.
 * Signals that are ignored, as SIGHUP after nohup, stay so in both. */
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

/* hides_output: what the program prints goes to the standard error, because the trace is on the standard output. */
static pid_t start(std::vector<std::string> words, sigset_t defaults, bool hides_output) {
  std::vector<char *> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string &word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  sigaddset(&defaults, SIGPIPE); /* ignored by this program */
  Beginning begin;
  Beginning::check(posix_spawnattr_setsigdefault(&begin.attributes, &defaults));
  Beginning::check(posix_spawnattr_setflags(&begin.attributes, POSIX_SPAWN_SETSIGDEF));
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
  child = start(words, signals.changed, hides_output);
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

/* ---- the command ---- */

/* The time of the last change; nothing if there is no such file. */
static std::optional<fs::file_time_type> change_of(fs::path const &file) {
  std::error_code error;
  fs::file_time_type const time = fs::last_write_time(file, error);
  return error ? std::optional<fs::file_time_type>() : time;
}

static void write_trace(TraceRun const &wanted, fs::path const &log) {
  Interrupt::check();
  Log(log.string(), 0).write_chrome(wanted.out, wanted.flows);
  Interrupt::check();
}

void run_traced(TraceRun const &wanted) {
  check_writable(wanted.out);
  check_writable(wanted.keep);
  Interrupt const interrupt; /* the folder goes first */
  Folder const folder;
  check_size(wanted.size, folder);
  fs::path const log = wanted.keep.empty() ? folder.path / fs::path(wanted.program[0]).filename()
                                           : fs::absolute(wanted.keep);
  if (setenv(UMEM_DEFAULT, name_with_log(wanted, log.string()).c_str(), 1) != 0)
    throw Failure("no memory for the environment");
  std::optional<fs::file_time_type> const old = change_of(log);
  int const status = run_program(wanted.program, wanted.out == "-");
  std::optional<Failure> const failed = failure_of(wanted.program[0], status);
  bool const has_log = change_of(log) && change_of(log) != old;
  try {
    if (has_log) write_trace(wanted, log);
  } catch (Failure const &why) {
    /* The status of the program tells more. */
    if (!failed || why.status != failure) throw;
    throw Failure(std::string(failed->what()) + '\n' + why.what(), failed->status);
  }
  if (failed) throw *failed;
  if (!has_log)
    throw Failure(wanted.program[0] +
                  " has not used the default context of umem: nothing to trace");
}

} // namespace umem::tool
