/* compile_in_c MODEL PROGRAM [OPTIONS]: compiles an ONNX model; options are JSON, such as {"budget": 60, "threads": 2}. */
#include <collage.h>
#include <stdio.h>
#include <string.h>

/* COLLAGE_FINISH would stop measuring with the best plan so far. */
static int show(void* user, const char* stage, uint64_t done, uint64_t total, const char* detail) {
  char* last = user;
  (void)detail;
  if (strncmp(last, stage, 31) != 0) fprintf(stderr, "%s (%llu of %llu)\n", stage, (unsigned long long)done, (unsigned long long)total);
  strncpy(last, stage, 31);
  return COLLAGE_GO_ON;
}

int main(int argc, char** argv) {
  char last_stage[32] = "";
  if (argc < 3) return 2;
  collage_error* error = collage_compile(argv[1], argv[2], argc > 3 ? argv[3] : NULL, show, last_stage);
  if (!error) return 0;
  fprintf(stderr, "%s\n", collage_error_message(error));
  collage_error_free(error);
  return 1;
}
