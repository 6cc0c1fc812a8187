#include "command.hpp"

#include <CLI/CLI.hpp>

namespace umem::tool {

/* ---- options ---- */

Option const &Option::named(char const *value) const {
  option_->type_name(value);
  return *this;
}

Option const &Option::required() const {
  option_->required();
  return *this;
}

Option const &Option::showing_default() const {
  option_->capture_default_str();
  return *this;
}

Option const &Option::needing(Option const &other) const {
  option_->needs(other.option_);
  return *this;
}

Option const &Option::between(int least, int most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option const &
Option::checked(std::function<std::string(std::string const &)> const &why_wrong) const {
  option_->check(why_wrong, "");
  return *this;
}

std::vector<std::string> Option::spellings() const {
  std::vector<std::string> words;
  for (std::string const &name : option_->get_snames()) words.push_back("-" + name);
  for (std::string const &name : option_->get_lnames()) words.push_back("--" + name);
  return words;
}

std::string Option::words() const {
  std::string text = option_->get_positional() ? option_->get_name(true) : "";
  for (std::string const &word : spellings()) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/* CLI11 adds checks to the name of the type: "N:INT in [1 - 255]". */
std::string Option::value() const {
  if (option_->get_positional() || option_->get_expected_max() == 0) return "";
  std::string const type = option_->get_type_name();
  return type.substr(0, type.find(':'));
}

std::string Option::argument() const {
  std::string const name =
      option_->get_name(true) + (option_->get_expected_max() > 1 ? " ..." : "");
  return option_->get_required() ? name : '[' + name + ']';
}

std::string Option::description() const { return option_->get_description(); }

std::string Option::help() const {
  std::string text = description();
  if (!option_->get_positional() && !option_->get_default_str().empty())
    text += " (default: " + option_->get_default_str() + ')';
  for (CLI::Option const *needed : option_->get_needs())
    text += " (needs " + needed->get_name() + ')';
  return text;
}

/* ---- commands ---- */

Command Command::add_command(char const *name, char const *description) const {
  return Command(app_->add_subcommand(name, description));
}

Option Command::add_option(char const *names, std::string &value, char const *description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::add_option(char const *names, std::optional<std::string> &value,
                           char const *description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::add_option(char const *names, std::vector<std::string> &value,
                           char const *description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::add_option(char const *names, unsigned &value, char const *description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::add_option(char const *names, double &value, char const *description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::add_flag(char const *names, bool &value, char const *description) const {
  return Option(app_->add_flag(names, value, description));
}

void Command::add_hidden(char const *name,
                         std::function<void(std::string const &)> const &act) const {
  app_->add_option_function<std::string>(name,
                                         [act](std::string const &value) {
                                           act(value);
                                           throw CLI::Success();
                                         })
      ->group("");
}

void Command::require_commands(std::size_t least) const { app_->require_subcommand(least, 1); }

void Command::runs(std::function<void()> const &act) const { app_->callback(act); }

std::string Command::name() const { return app_->get_name(); }

std::string Command::description() const { return app_->get_description(); }

std::string Command::footer() const { return app_->get_footer(); }

std::string Command::arguments() const {
  std::string text = "[OPTIONS]";
  for (Option const &option : options(true)) text += ' ' + option.argument();
  if (!commands().empty())
    text += app_->get_require_subcommand_min() ? " COMMAND ..." : " [COMMAND ...]";
  return text;
}

std::vector<Command> Command::commands() const {
  std::vector<Command> commands;
  for (CLI::App *app : app_->get_subcommands([](CLI::App *) { return true; }))
    commands.emplace_back(app);
  return commands;
}

std::vector<Option> Command::options(bool positional) const {
  std::vector<Option> options;
  for (CLI::Option *option : app_->get_options())
    if (option->get_positional() == positional && !option->get_group().empty())
      options.emplace_back(option);
  return options;
}

std::optional<Command> Command::parsed() const {
  auto const commands = app_->get_subcommands();
  return commands.empty() ? std::nullopt : std::optional(Command(commands.front()));
}

/* ---- the whole ---- */

CommandLine::CommandLine(char const *name, char const *description, char const *footer)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version", "");
  app_->footer(footer);
}

CommandLine::~CommandLine() = default;

/* "command x" or "option -x" if there is none of this name; "" if there is. CLI11 complains first
 * about what is missing. */
static std::string unknown_word(CLI::App &app, std::string const &word) {
  auto const has_name = [&](CLI::App const *command) { return command->check_name(word); };
  if (word.substr(0, 1) != "-")
    return app.get_subcommands(has_name).empty() ? "command " + word : "";
  return app.get_option_no_throw(word.substr(0, word.find('='))) ? "" : "option " + word;
}

CommandLine::Wanted CommandLine::parse(std::vector<std::string> const &words) {
  try {
    /* CLI11 takes the words from the end of the vector. */
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (CLI::CallForHelp const &) {
    return Wanted::help;
  } catch (CLI::CallForVersion const &) {
    return Wanted::version;
  } catch (CLI::Success const &) {
    return Wanted::nothing;
  } catch (CLI::ParseError const &error) {
    std::string const unknown = words.empty() ? "" : unknown_word(*app_, words[0]);
    throw WrongUse(unknown.empty() ? error.what() : "there is no " + unknown);
  }
  return Wanted::nothing;
}

} // namespace umem::tool
