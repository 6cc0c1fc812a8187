/* main.cpp - umem: what this machine can open, how fast it copies, copies by name, and what logs
 * hold. */
#include "commands.hpp"
#include "failure.hpp"
#include "help.hpp"
#include "output.hpp"
#include "texts.hpp"

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <sstream>
#include <string>
#include <trace.h>
#include <umem.h>
#include <unistd.h>
#include <vector>

namespace umem::tool {

static char const exit_codes[] =
    "Exit codes: 0 success, 1 an operation failed, 2 the command line is wrong,\n"
    "130 interrupted, 141 the reader of the output ended.";

static void add_commands(Command const &program) {
  program.require_commands(1);
  add_info(program);
  add_bw(program);
  add_cp(program);
  add_trace(program);
  /* For the build, which installs manual pages and completions. */
  program.add_hidden("--write-texts",
                     [program](std::string const &folder) { write_texts(program, folder); });
}

/* Names of files and contexts may hold anything: what would act on a terminal is escaped. */
static int complain(std::string const &why) {
  std::fflush(stdout); /* what is known so far goes first */
  std::fputs("umem: ", stderr);
  std::istringstream lines(why);
  for (std::string line; std::getline(lines, line); std::fputc('\n', stderr))
    trace_write_message(stderr, line.c_str());
  return failure;
}

/* Whether what was called is umem-trace, which stands for umem trace. */
static bool is_trace(std::string const &called) {
  return called.substr(called.find_last_of('/') + 1) == "umem-trace";
}

/* Lines of help are readable from 40 columns on, also where nobody knows how wide they will be
 * shown. */
static std::size_t columns_of_help() {
  std::size_t const columns = columns_of(STDOUT_FILENO);
  return columns == no_limit ? 80 : std::max<std::size_t>(columns, 40);
}

static int run(std::vector<std::string> const &words) {
  CommandLine line("umem", "Show where umem can keep arrays, measure copies, copy, and read logs.",
                   exit_codes);
  add_commands(line.program());
  try {
    CommandLine::Wanted const wanted = line.parse(words);
    if (wanted == CommandLine::Wanted::help) print(help_text(line.program(), columns_of_help()));
    if (wanted == CommandLine::Wanted::version) print("umem " UMEM_VERSION "\n");
  } catch (WrongUse const &why) {
    complain(why.what());
    std::fputs("umem: --help lists the commands, and after a command its options\n", stderr);
    return misuse;
  }
  flush_output();
  return success;
}

/* What a command throws becomes a message and an exit code. */
static int run_safely(int argc, char **argv) {
  try {
    std::vector<std::string> words(argv + (argc > 0), argv + argc);
    bool const is_version = words == std::vector<std::string>{"--version"};
    if (argc > 0 && is_trace(argv[0]) && !is_version) words.insert(words.begin(), "trace");
    return run(words);
  } catch (ClosedPipe const &gone) {
    return gone.status;
  } catch (Failure const &why) {
    complain(why.what());
    return why.status;
  } catch (std::exception const &why) {
    return complain(why.what());
  }
}

/* Opens what was closed of the descriptors 0 to 2: a file of a command would get such a number, and
 * messages would go to the file. Only reads are allowed, so that a write to it fails as to a closed
 * one. */
static void fill_standard_descriptors() {
  int descriptor;
  do descriptor = open("/dev/null", O_RDONLY);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

} // namespace umem::tool

int main(int argc, char **argv) {
  umem::tool::fill_standard_descriptors();
  std::setlocale(LC_CTYPE, "");  /* that of the C language stays where it cannot be had */
  std::signal(SIGPIPE, SIG_IGN); /* a write then fails with EPIPE */
  return umem::tool::run_safely(argc, argv);
}
