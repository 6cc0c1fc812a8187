#include "texts.hpp"

#include "failure.hpp"
#include "output.hpp"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <umem.h>
#include <vector>

namespace umem::tool {

/* ---- what the command line has ---- */

/* Calls visit for the program, "" , and each command: "/trace", "/trace/run", ... */
static void
walk(Command const &top, std::string const &path,
     std::function<void(std::string const &path, Command const &command)> const &visit) {
  visit(path, top);
  for (Command const &command : top.commands()) walk(command, path + '/' + command.name(), visit);
}

/* ---- manual pages ---- */

static std::string roff(std::string const &text) {
  std::string escaped;
  for (char const c : text) {
    bool const begins = escaped.empty() || escaped.back() == '\n';
    if (begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  return escaped;
}

/* The first sentence of a help, as man shows it after the name. */
static std::string summary_of(Command const &command) {
  std::string text = command.description();
  text = text.substr(0, text.find_first_of(".:"));
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

static std::string synopsis(std::string const &words, Command const &command) {
  return ".B " + roff(words) + '\n' + roff(command.arguments()) + '\n';
}

static std::string list_of_options(Command const &command) {
  std::string text;
  for (bool const positional : {true, false})
    for (Option const &option : command.options(positional)) {
      std::string const value = option.value();
      text += ".TP\n.B " + roff(option.words()) + (value.empty() ? "" : ' ' + roff(value));
      text += '\n' + roff(option.help()) + '\n';
    }
  return text;
}

static std::string section_of(Command const &command, std::string const &words) {
  return ".SS " + roff(words) + '\n' + synopsis(words, command) + ".PP\n" +
         roff(command.description()) + '\n' + list_of_options(command);
}

std::string man_page(Command const &program, Command const *command) {
  Command const &shown = command ? *command : program;
  std::string const words = command ? "umem " + command->name() : "umem";
  std::string const name = command ? "umem-" + command->name() : "umem";
  std::string text = ".TH " + upper(name) + " 1 \"\" \"umem " UMEM_VERSION "\" \"User Commands\"\n";
  text += ".SH NAME\n" + name + " \\- " + roff(summary_of(shown)) + '\n';
  text += ".SH SYNOPSIS\n" + synopsis(words, shown);
  text += ".SH DESCRIPTION\n" + roff(shown.description()) + '\n';
  text += ".SH OPTIONS\n" + list_of_options(shown);
  std::vector<Command> const commands = shown.commands();
  if (!commands.empty()) text += ".SH COMMANDS\n";
  for (Command const &one : commands)
    if (command)
      text += section_of(one, words + ' ' + one.name());
    else
      text += ".TP\n.B " + roff(one.name()) + '\n' + roff(one.description()) + '\n';
  text += ".SH EXIT STATUS\n" + roff(program.footer()) + '\n';
  text += ".SH SEE ALSO\n";
  std::string others;
  for (Command const &one : program.commands())
    if (!command || one.name() != command->name())
      others += (others.empty() ? "" : ", ") + ("umem-" + one.name()) + "(1)";
  if (command) others = "umem(1)" + (others.empty() ? "" : ", " + others);
  return text + roff(others) + '\n';
}

/* ---- completions ---- */

/* Writes a word and what it means into a list of a shell. */
using ShellWord = std::function<std::string(std::string const &word, std::string const &help)>;

static std::string command_words(Command const &top, ShellWord const &shell_word) {
  std::string text;
  for (Command const &command : top.commands())
    text += (text.empty() ? "" : " ") + shell_word(command.name(), summary_of(command));
  return text;
}

static std::string option_words(Command const &command, ShellWord const &shell_word) {
  std::string text;
  for (Option const &option : command.options(false))
    for (std::string const &word : option.spellings())
      text += (text.empty() ? "" : " ") + shell_word(word, option.description());
  return text;
}

static std::string all_commands(Command const &program) {
  std::string paths;
  walk(program, "", [&](std::string const &path, Command const &) {
    paths += path.empty() ? "" : (paths.empty() ? "" : " | ") + path;
  });
  return paths;
}

/* A program behind "--" has the completion of its own. */
std::string bash_completion(Command const &program) {
  ShellWord const word_only = [](auto const &word, auto const &) { return word; };
  std::string cases;
  walk(program, "", [&](std::string const &path, Command const &command) {
    std::string const commands = command_words(command, word_only);
    cases += "    '" + path + "') known='" + commands + (commands.empty() ? "" : " ") +
             option_words(command, word_only) + "' ;;\n";
  });
  return "# Completion of umem and umem-trace for bash, written by umem itself.\n"
         "_umem() {\n"
         "  local command= known= i word=${COMP_WORDS[COMP_CWORD]}\n"
         "  [ \"${COMP_WORDS[0]##*/}\" != umem-trace ] || command=/trace\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case $command/${COMP_WORDS[i]} in\n"
         "      " +
         all_commands(program) +
         ") command+=/${COMP_WORDS[i]} ;;\n"
         "      /trace/run/--)\n"
         "        if ((i + 1 == COMP_CWORD)); then\n"
         "          mapfile -t COMPREPLY < <(compgen -c -f -- \"$word\")\n"
         "        elif declare -F _command_offset > /dev/null; then\n"
         "          _command_offset $((i + 1))\n"
         "        else\n"
         "          mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "        fi\n"
         "        return ;;\n"
         "    esac\n"
         "  done\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$known\" -- \"$word\"; [[ $word == -* ]] || "
         "compgen -f -- \"$word\")\n"
         "}\n"
         "complete -o filenames -F _umem umem umem-trace\n";
}

/* 'word:help' in quotes. */
static std::string described(std::string const &word, std::string const &help) {
  std::string text = "'";
  std::string whole = word;
  whole.append(1, ':').append(help);
  for (char const c : whole) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + '\'';
}

/* Files are also completed behind the colon of a name. */
std::string zsh_completion(Command const &program) {
  std::string cases;
  walk(program, "", [&](std::string const &path, Command const &command) {
    cases += "  ('" + path + "')\n    commands=(" + command_words(command, described) +
             ")\n    options=(" + option_words(command, described) + ") ;;\n";
  });
  return "#compdef umem umem-trace\n"
         "# Completion of umem and umem-trace for zsh, written by umem itself.\n"
         "local command= i\n"
         "local -a commands options\n"
         "[[ $service != umem-trace ]] || command=/trace\n"
         "for ((i = 2; i < CURRENT; i++)); do\n"
         "  case $command/${words[i]} in\n"
         "    (" +
         all_commands(program) +
         ") command+=/${words[i]} ;;\n"
         "    (/trace/run/--)\n"
         "      shift $i words\n"
         "      ((CURRENT -= i))\n"
         "      _normal\n"
         "      return ;;\n"
         "  esac\n"
         "done\n"
         "case $command in\n" +
         cases +
         "esac\n"
         "if [[ $PREFIX == -* ]]; then\n"
         "  _describe -o option options\n"
         "else\n"
         "  _describe command commands\n"
         "  compset -P '*:'\n"
         "  _files\n"
         "fi\n";
}

/* ---- files ---- */

static void write_file(std::filesystem::path const &path, std::string const &text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw Failure("cannot write " + path.string());
}

void write_texts(Command const &program, std::string const &folder) {
  std::filesystem::path const root(folder);
  write_file(root / "man1/umem.1", man_page(program, nullptr));
  for (Command const &command : program.commands())
    write_file(root / ("man1/umem-" + command.name() + ".1"), man_page(program, &command));
  for (char const *name : {"umem", "umem-trace"})
    write_file(root / "bash" / name, bash_completion(program));
  write_file(root / "zsh/_umem", zsh_completion(program));
}

} // namespace umem::tool
