// A worker whose only backend is the one that fails in every way.

#include <unistd.h>

#include "collage/measure/worker_server.h"
#include "tests/measure/fault_backend.h"

int main() {
  static const collage::FaultBackend backend;
  collage::ServeKernelJobs(STDIN_FILENO,
                           [](const std::string&, const collage::Device&) -> collage::Result<const collage::Backend*> { return &backend; });
  return 0;
}
