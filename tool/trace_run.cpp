/* trace_run.cpp - see trace_run.hpp.
 *
 * The program inherits a variable UMEM_DEFAULT with a log over what it named before. The log is in a folder of its own,
 * which goes afterwards, unless it is to be kept. */
#include "trace_run.hpp"

#include "failure.hpp"
#include "name.hpp"
#include "trace_log.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
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
    std::string pattern = (fs::temp_directory_path() / "umem-trace-XXXXXX").string();
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

/* The name of the default context of the program. */
static std::string name_with_log(TraceRun const &wanted, std::string const &log) {
  char const *variable = std::getenv(UMEM_DEFAULT);
  std::string const below = !wanted.on.empty()      ? wanted.on
                            : variable && *variable ? variable
                                                    : "host:";
  std::optional<Name> name = parse_name(below);
  if (!name) throw Failure("not the name of a context: " + below, misuse);
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

/* While the program runs, the terminal interrupts only the program, and what is to end this process ends the program. */
class Signals {
public:
  Signals() {
    for (std::size_t i = 0; i < numbers.size(); i++) {
      struct sigaction action = {};
      action.sa_handler = numbers[i] == SIGINT || numbers[i] == SIGQUIT ? SIG_IGN : pass_on;
      action.sa_flags = SA_RESTART;
      sigaction(numbers[i], &action, &before_[i]);
    }
  }
  ~Signals() {
    for (std::size_t i = 0; i < numbers.size(); i++) sigaction(numbers[i], &before_[i], nullptr);
  }
  Signals(Signals const &) = delete;
  Signals &operator=(Signals const &) = delete;

  static constexpr std::array<int, 4> numbers = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

private:
  std::array<struct sigaction, 4> before_ = {};
};

static pid_t start(std::vector<std::string> words) {
  std::vector<char *> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string &word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE); /* ignored by this program */
  for (int const number : Signals::numbers) sigaddset(&defaults, number);
  posix_spawnattr_t attributes;
  int error = posix_spawnattr_init(&attributes);
  if (error) throw Failure(std::string("cannot run a program: ") + std::strerror(error));
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t process = 0;
  error = posix_spawnp(&process, arguments[0], nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error) throw Failure("cannot run " + words[0] + ": " + std::strerror(error));
  return process;
}

/* Returns the status as of waitpid. */
static int run_program(std::vector<std::string> const &words) {
  Signals const signals;
  child = start(words);
  int status = 0;
  pid_t ended;
  do ended = waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  child = 0;
  if (ended < 0) throw Failure(std::string("cannot wait for the program: ") + std::strerror(errno));
  return status;
}

static void check_status(std::string const &program, int status) {
  if (WIFSIGNALED(status))
    throw Failure(program + " was ended by signal " + std::to_string(WTERMSIG(status)),
                  128 + WTERMSIG(status));
  if (WEXITSTATUS(status))
    throw Failure(program + " ended with status " + std::to_string(WEXITSTATUS(status)),
                  WEXITSTATUS(status));
}

void run_traced(TraceRun const &wanted) {
  Folder const folder;
  std::string const log =
      wanted.keep.empty() ? (folder.path / wanted.program[0]).filename().string() : wanted.keep;
  fs::path const file = wanted.keep.empty() ? folder.path / log : fs::absolute(log);
  if (setenv(UMEM_DEFAULT, name_with_log(wanted, file.string()).c_str(), 1) != 0)
    throw Failure("no memory for the environment");
  auto const old = fs::exists(file) ? fs::last_write_time(file) : fs::file_time_type::min();
  int const status = run_program(wanted.program);
  bool const has_log =
      fs::exists(file) && (wanted.keep.empty() || fs::last_write_time(file) != old);
  if (has_log) Log(file.string(), 0).write_chrome(wanted.out, wanted.flows);
  check_status(wanted.program[0], status);
  if (!has_log)
    throw Failure(wanted.program[0] +
                  " has not used the default context of umem: nothing to trace");
}

} // namespace umem::tool
