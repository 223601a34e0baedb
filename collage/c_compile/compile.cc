#include "collage/c/objects.h"
#include "collage/c_compile/compile_job.h"

using namespace collage::c_abi;

collage_error* collage_compile(const char* model, const char* output, const char* options, collage_progress progress, void* user) noexcept {
  return Guarded([&]() -> collage_error* {
    if (!model || !output) return Refuse("collage_compile: model and output must not be null");
    return RunCompiler({model, output, options ? options : "{}"}, progress, user);
  });
}
