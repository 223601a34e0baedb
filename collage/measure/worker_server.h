#pragma once

#include <functional>
#include <string>

#include "collage/backend/backend.h"

namespace collage {

/// The worker's side of WorkerTimer: does jobs from `socket` until the other side closes it. Before each stage it says which.
void ServeKernelJobs(int socket, const std::function<Result<const Backend*>(const std::string& name, const Device& device)>& find_backend);

}  // namespace collage
