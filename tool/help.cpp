#include "help.hpp"

#include "output.hpp"

namespace umem::tool {

static constexpr std::size_t help_column = 28; /* where descriptions begin */

static std::string list_of_options(Command const &command, bool positional, std::size_t columns) {
  std::string text;
  for (Option const &option : command.options(positional)) {
    std::string const value = option.value();
    std::string const head = "  " + option.words() + (value.empty() ? "" : ' ' + value);
    text += entry(head, option.help(), help_column, columns);
  }
  return text.empty() ? text : (positional ? "\nPositionals:\n" : "\nOptions:\n") + text;
}

std::string help_text(Command const &program, std::size_t columns) {
  Command shown = program;
  std::string words = program.name();
  while (std::optional<Command> const next = shown.parsed()) {
    shown = *next;
    words += ' ' + shown.name();
  }
  std::string text = wrapped(shown.description(), 0, columns) +
                     wrapped("Usage: " + words + ' ' + shown.arguments(), 4, columns);
  for (bool const positional : {true, false}) text += list_of_options(shown, positional, columns);
  std::vector<Command> const commands = shown.commands();
  if (!commands.empty()) text += "\nSubcommands:\n";
  for (Command const &command : commands)
    text += entry("  " + command.name(), command.description(), help_column, columns);
  return text + '\n' + wrapped(program.footer(), 0, columns);
}

} // namespace umem::tool
