#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collage/runtime/kernel.h"

namespace collage::native {

/// An argument of a part of the kernel: a tensor of the whole kernel, of which it sees the rows of the panel.
struct PanelArgument {
  size_t port = 0;          ///< of the whole kernel's inputs
  size_t bytes_of_row = 0;  ///< zero: all panels see the same
};

/// The two kernels for panels of so many rows.
struct PanelCode {
  std::unique_ptr<Kernel> library;
  std::unique_ptr<Kernel> rest;  ///< generated; its first input is what the library gives
};

/// What a kernel that calls a library is made of.
struct PanelParts {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  int64_t rows = 0;           ///< of the whole
  int64_t rows_of_panel = 0;  ///< of every panel but the last, if that is shorter
  std::vector<PanelArgument> library_arguments;
  std::vector<PanelArgument> rest_arguments;
  std::vector<size_t> bytes_of_output_row;  ///< one an output
  std::vector<PanelCode> workers;           ///< one a thread, each for whole panels; empty where all rows are one short panel
  PanelCode last;                           ///< for the last panel, where it is shorter
  std::function<std::string()> serialize;
};

int64_t PanelCount(const PanelParts& parts);

/// Runs through panels of rows: the library's kernel gives a panel, generated code makes the results of it while it lies in the cache.
/// Each thread has its own share of the panels, and kernels of its own.
std::unique_ptr<Kernel> MakePanelKernel(PanelParts parts);

}  // namespace collage::native
