/* The C ABI as C99 sees it. */
#include <stdio.h>
#include <string.h>
#include <tilewright/c_api.h>
#include <tilewright/version.h>

int main(void) {
  tw_program* program = NULL;
  tw_error* error = tw_program_parse("program p {", "p.tile", &program);
  tw_error_info info;
  if (!error || tw_abi_version() != TW_ABI_VERSION || strcmp(tw_version(), TILEWRIGHT_VERSION) != 0) return 1;
  tw_error_get(error, &info);
  printf("right, with ABI %d: %s\n", tw_abi_version(), info.area);
  tw_error_release(error);
  return 0;
}
