/* command.hpp - the command line: commands and their options. CLI11 is in command.cpp alone: its
 * headers take seconds to compile. */
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace umem::tool {

/* The command line is wrong; what() is the reason. */
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/* An option of a command, which owns it; or an argument without a name of its own, which is called
 * positional. */
class Option {
public:
  explicit Option(CLI::Option *option) : option_(option) {}

  /* ---- more of it; each returns the option again ---- */

  Option const &named(char const *value) const; /* the name of its value in --help; "" shows none */
  Option const &required() const;
  Option const &showing_default() const; /* the value that the variable has now is in --help */
  Option const &needing(Option const &other) const;
  Option const &between(int least, int most) const;

  /* why_wrong returns why a value is wrong, or "". */
  Option const &checked(std::function<std::string(std::string const &)> const &why_wrong) const;

  /* ---- what --help and the manual say of it ---- */

  std::vector<std::string> spellings() const; /* "-o", "--output" */
  std::string words() const;                  /* "-o, --output", and the name of a positional one */
  std::string value() const; /* the name of the value; "" for a flag and for a positional option */
  std::string argument() const;    /* of a positional one: "SRC", "[NAME ...]" */
  std::string description() const; /* as add_option has it */
  std::string help() const; /* the description with the default and the option that it needs */

private:
  CLI::Option *option_; /* borrowed */
};

/* A command of a command line, which owns it, or the program itself. */
class Command {
public:
  explicit Command(CLI::App *app) : app_(app) {}

  Command add_command(char const *name, char const *description) const;

  /* names: "-o,--output", or "FILE" for a positional one. The parse writes value, which must live
   * as long. */
  Option add_option(char const *names, std::string &value, char const *description) const;
  Option add_option(char const *names, std::optional<std::string> &value,
                    char const *description) const;
  Option add_option(char const *names, std::vector<std::string> &value,
                    char const *description) const; /* one or more */
  Option add_option(char const *names, unsigned &value, char const *description) const;
  Option add_option(char const *names, double &value, char const *description) const;
  Option add_flag(char const *names, bool &value, char const *description) const;

  /* An option for the build, which --help does not show. It runs act with its value, and ends the
   * parse. */
  void add_hidden(char const *name, std::function<void(std::string const &)> const &act) const;

  /* How many commands must follow this one at least; at most one may if there are any. */
  void require_commands(std::size_t least) const;

  /* What the command does, once the whole command line is parsed. */
  void runs(std::function<void()> const &act) const;

  std::string name() const;
  std::string description() const;
  std::string footer() const;
  std::string arguments() const; /* what may stand behind the command: "[OPTIONS] SRC DST" */
  std::vector<Command> commands() const;
  std::vector<Option> options(bool positional) const; /* without the hidden ones */
  std::optional<Command> parsed() const; /* the command that the user has given behind it */

private:
  CLI::App *app_; /* borrowed */
};

/* The whole of it. */
class CommandLine {
public:
  /* name and description: of the program; footer: the last lines of each help. */
  CommandLine(char const *name, char const *description, char const *footer);
  ~CommandLine();
  CommandLine(CommandLine const &) = delete;
  CommandLine &operator=(CommandLine const &) = delete;

  Command program() const { return Command(app_.get()); }

  enum class Wanted { nothing, help, version };

  /* Runs the commands that words name, without the name of the program. Returns what the user wants
   * to read instead. Throws WrongUse, and what the commands throw. */
  Wanted parse(std::vector<std::string> const &words);

private:
  std::unique_ptr<CLI::App> app_;
};

} // namespace umem::tool
