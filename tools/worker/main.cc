#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "collage/backend/registry.h"
#include "collage/measure/worker_server.h"
#include "collage/runtime/parallel.h"
#include "collage/support/log.h"

int main() {
  collage::InitialiseLogging();
  collage::PrepareThreadPool();
  // Ctrl-C is for the compile, which ends its worker itself; and when the compile is killed the worker must not go on.
  ::signal(SIGINT, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  collage::ServeKernelJobs(STDIN_FILENO, collage::FindBackend);
  return 0;
}
