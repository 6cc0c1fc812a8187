/* help.cpp - see help.hpp. */
#include "help.hpp"

#include "output.hpp"

#include <CLI/CLI.hpp>

namespace umem::tool {

/* ---- what the command line has ---- */

std::vector<CLI::App const *> commands_of(CLI::App const &app) {
  return app.get_subcommands([](CLI::App const *) { return true; });
}

std::vector<CLI::Option const *> options_of(CLI::App const &app, bool positional) {
  return app.get_options([&](CLI::Option const *option) {
    return option->get_positional() == positional && !option->get_group().empty();
  });
}

std::vector<std::string> spellings(CLI::Option const &option) {
  std::vector<std::string> words;
  for (std::string const &name : option.get_snames()) words.push_back("-" + name);
  for (std::string const &name : option.get_lnames()) words.push_back("--" + name);
  return words;
}

std::string words_of(CLI::Option const &option) {
  std::string text = option.get_positional() ? option.get_name(true) : "";
  for (std::string const &word : spellings(option)) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/* CLI11 adds checks to the name of the type: "N:INT in [1 - 255]". */
std::string value_of(CLI::Option const &option) {
  if (option.get_positional() || option.get_expected_max() == 0) return "";
  std::string const type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string help_of(CLI::Option const &option) {
  std::string text = option.get_description();
  if (!option.get_positional() && !option.get_default_str().empty())
    text += " (default: " + option.get_default_str() + ')';
  for (CLI::Option const *needed : option.get_needs())
    text += " (needs " + needed->get_name() + ')';
  return text;
}

std::string arguments_of(CLI::App const &app) {
  std::string text = "[OPTIONS]";
  for (CLI::Option const *option : options_of(app, true)) {
    std::string const name =
        option->get_name(true) + (option->get_expected_max() > 1 ? " ..." : "");
    text += option->get_required() ? ' ' + name : " [" + name + ']';
  }
  if (!commands_of(app).empty())
    text += app.get_require_subcommand_min() ? " COMMAND ..." : " [COMMAND ...]";
  return text;
}

/* ---- the text ---- */

static constexpr std::size_t column = 28; /* where descriptions begin */

static std::string list_of_options(CLI::App const &app, bool positional, std::size_t columns) {
  std::string text;
  for (CLI::Option const *option : options_of(app, positional)) {
    std::string const value = value_of(*option);
    std::string const head = "  " + words_of(*option) + (value.empty() ? "" : ' ' + value);
    text += entry(head, help_of(*option), column, columns);
  }
  return text.empty() ? text : (positional ? "\nPositionals:\n" : "\nOptions:\n") + text;
}

std::string help_text(CLI::App const &app, std::size_t columns) {
  CLI::App const *shown = &app;
  std::string words = app.get_name();
  while (!shown->get_subcommands().empty()) {
    shown = shown->get_subcommands().front();
    words += ' ' + shown->get_name();
  }
  std::string text = wrapped(shown->get_description(), 0, columns) +
                     wrapped("Usage: " + words + ' ' + arguments_of(*shown), 4, columns);
  for (bool const positional : {true, false}) text += list_of_options(*shown, positional, columns);
  std::vector<CLI::App const *> const commands = commands_of(*shown);
  if (!commands.empty()) text += "\nSubcommands:\n";
  for (CLI::App const *command : commands)
    text += entry("  " + command->get_name(), command->get_description(), column, columns);
  return text + '\n' + wrapped(app.get_footer(), 0, columns);
}

} // namespace umem::tool
