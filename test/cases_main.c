/* cases_main.c - the main of programs that have nothing to do before their tests. */
#include "cases.h"

int main(void) { return run_cases(NULL, NULL); }
