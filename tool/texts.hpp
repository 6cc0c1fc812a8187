/* texts.hpp - manual pages and completions, made of the command line that the program knows itself. */
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace umem::tool {

/* Writes man1/umem.1 and a page for each command, bash/umem and zsh/_umem below folder. Throws Failure. */
void write_texts(CLI::App const &app, std::string const &folder);

std::string man_page(CLI::App const &app, CLI::App const *command); /* NULL: that of the program */
std::string bash_completion(CLI::App const &app);
std::string zsh_completion(CLI::App const &app);

} // namespace umem::tool
