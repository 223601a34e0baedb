/* run_in_c PROGRAM [INPUT...]: runs a compiled file on inputs given as files of bytes (zeros where none is given), prints float32 outputs. */
#include <collage.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

/* The library uses memory at multiples of 64 bytes where it is. */
static void* buffer_of(size_t bytes) {
  void* data = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  if (data) memset(data, 0, bytes);
  return data;
}

static int read_into(const char* path, void* data, size_t bytes) {
  FILE* file = fopen(path, "rb");
  if (!file) return 0;
  const size_t count = fread(data, 1, bytes, file);
  fclose(file);
  return count == bytes;
}

int main(int argc, char** argv) {
  if (argc < 2) return fail("run_in_c PROGRAM [INPUT...]");
  if (collage_abi_version() != COLLAGE_ABI_VERSION) return fail("collage.h and the library do not fit");

  collage_program* program = NULL;
  collage_session* session = NULL;
  collage_error* error = collage_program_load(argv[1], NULL, &program);
  if (!error) error = collage_session_create(program, &session);
  if (error) return fail(collage_error_message(error));

  const size_t input_count = collage_program_input_count(program);
  const size_t output_count = collage_program_output_count(program);
  collage_input* inputs = calloc(input_count + 1, sizeof *inputs);
  collage_output* outputs = calloc(output_count + 1, sizeof *outputs);
  if (!inputs || !outputs) return fail("out of memory");
  for (size_t i = 0; i < input_count; ++i) {
    const collage_tensor_info info = collage_program_input(program, 0, i);
    void* data = buffer_of(info.bytes);
    if (!data) return fail("out of memory");
    if (i + 2 < (size_t)argc && !read_into(argv[i + 2], data, info.bytes)) return fail("an input cannot be read, or is too short");
    inputs[i].data = data;
    inputs[i].bytes = info.bytes;
  }
  for (size_t i = 0; i < output_count; ++i) {
    outputs[i].bytes = collage_program_output(program, 0, i).bytes;
    outputs[i].data = buffer_of(outputs[i].bytes);
    if (!outputs[i].data) return fail("out of memory");
  }

  error = collage_session_run(session, inputs, input_count, outputs, output_count);
  if (error) return fail(collage_error_message(error));
  for (size_t i = 0; i < output_count; ++i) {
    const float* values = outputs[i].data;
    if (strcmp(collage_program_output(program, 0, i).type, "float32") != 0) continue;
    for (size_t j = 0; j < outputs[i].bytes / sizeof *values; ++j) printf("%.9g\n", (double)values[j]);
  }

  for (size_t i = 0; i < input_count; ++i) free((void*)inputs[i].data);
  for (size_t i = 0; i < output_count; ++i) free(outputs[i].data);
  free(inputs);
  free(outputs);
  collage_session_free(session);
  collage_program_free(program);
  return 0;
}
