/* Prints all schemes of umem_open and their options. */
#include <stdio.h>
#include <umem.h>

/* What a value looks like. */
static void print_kind(umemOption const *option) {
  static char const *const kinds[] = {
      [umemTextOption] = "TEXT",     [umemNumberOption] = "NUMBER",
      [umemSizeOption] = "SIZE",     [umemShareOption] = "SHARE",
      [umemWordOption] = "WORD",     [umemWordsOption] = "WORD[,WORD]...",
      [umemDeviceOption] = "NUMBER", [umemPathOption] = "PATH",
      [umemUrlOption] = "URL"};
  fputs(kinds[option->kind], stdout);
}

static void print_option(umemOption const *option) {
  printf("    %s=", option->name);
  print_kind(option);
  printf("\n        %s%s\n", option->help, option->required ? "; required" : "");
  if (option->words) printf("        WORD: %s\n", option->words);
}

static void print_scheme(umemScheme const *scheme) {
  printf("%s%s", scheme->name, scheme->decorates ? "+...:" : ":");
  if (scheme->place) {
    fputs("[", stdout);
    print_kind(scheme->place);
    fputs("]", stdout);
  }
  printf("\n    %s\n", scheme->help);
  if (scheme->place) printf("    %s: %s\n", scheme->place->name, scheme->place->help);
  for (size_t i = 0; i < scheme->option_count; i++) print_option(&scheme->options[i]);
}

int main(void) {
  umemScheme const *scheme;
  for (size_t i = 0; (scheme = umem_scheme(i)); i++) print_scheme(scheme);
  return 0;
}
