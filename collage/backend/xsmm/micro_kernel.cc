#include "collage/backend/xsmm/micro_kernel.h"

#include <libxsmm.h>

#include <array>
#include <csignal>
#include <cstdlib>

namespace collage::xsmm {
namespace {

// The library's own constructor takes SIGABRT and SIGSEGV, which belong to the program, and whose handler lets a fault in another thread
// than the first come again for ever. So it is started before that, and what it took is given back. Its messages are turned off.
// It also asks OpenMP, by the environment, to bind threads to processors. The OpenMP of a process that is started later, or opened later,
// then keeps its first thread on one processor, with all threads of other libraries that this one starts: they ran at half speed.
__attribute__((constructor(101))) void Start() {
  constexpr const char* kBinding = "OMP_PROC_BIND";
  const bool is_bound = std::getenv(kBinding) != nullptr;
  constexpr std::array<int, 2> kTaken = {SIGABRT, SIGSEGV};
  std::array<struct sigaction, kTaken.size()> before{};
  for (size_t i = 0; i < kTaken.size(); ++i) sigaction(kTaken[i], nullptr, &before[i]);
  libxsmm_init();
  libxsmm_set_verbosity(0);
  if (!is_bound) ::unsetenv(kBinding);
  for (size_t i = 0; i < kTaken.size(); ++i) sigaction(kTaken[i], &before[i], nullptr);
}

std::vector<unsigned long long> InBytes(const std::vector<int64_t>& elements) {
  std::vector<unsigned long long> bytes;
  for (const int64_t count : elements) bytes.push_back(static_cast<unsigned long long>(count) * sizeof(float));
  return bytes;
}

}  // namespace

Result<InstructionSet> DetectInstructionSet() {
  const int target = libxsmm_get_target_archid();
  // Of the registers the library fills 4 x 6 with AVX-512 and 3 x 4 with AVX2, where a panel holds two such blocks: enough rows pass by a
  // panel of 64 or 48 columns for what a call costs.
  if (target >= LIBXSMM_X86_AVX512) return InstructionSet{16, 64};
  if (target >= LIBXSMM_X86_AVX2) return InstructionSet{8, 48};
  return Fail("libxsmm generates code for AVX2 and AVX-512, which this processor has not");
}

std::string LibraryVersion() { return std::to_string(LIBXSMM_VERSION_MAJOR) + "." + std::to_string(LIBXSMM_VERSION_MINOR); }

// To the library, which counts in columns, a panel is the left operand, and rows are columns.
Result<MicroKernel> MicroKernel::Make(const MicroShape& shape) {
  const auto m = static_cast<libxsmm_blasint>(shape.columns);
  const auto n = static_cast<libxsmm_blasint>(shape.rows);
  const auto k = static_cast<libxsmm_blasint>(shape.depth);
  const auto panel_stride = static_cast<libxsmm_blasint>(shape.panel_stride);
  const auto row_stride = static_cast<libxsmm_blasint>(shape.row_stride);
  const auto result_stride = static_cast<libxsmm_blasint>(shape.result_stride);
  const float alpha = 1;
  const float beta = shape.adds ? 1 : 0;
  const int flags = LIBXSMM_GEMM_FLAG_NONE;
  // Said, because the environment could choose another.
  const int prefetch = shape.fetches ? LIBXSMM_GEMM_PREFETCH_AL2 : LIBXSMM_GEMM_PREFETCH_NONE;
  MicroKernel kernel;
  if (shape.row_terms.size() == 1) {
    kernel.panel_begin_ = shape.panel_terms[0];
    kernel.row_begin_ = shape.row_terms[0];
    kernel.plain_ =
        reinterpret_cast<Plain>(libxsmm_smmdispatch(m, n, k, &panel_stride, &row_stride, &result_stride, &alpha, &beta, &flags, &prefetch));
  } else {
    kernel.panel_terms_ = InBytes(shape.panel_terms);
    kernel.row_terms_ = InBytes(shape.row_terms);
    kernel.sum_ =
        libxsmm_smmdispatch_reducebatch_offs(m, n, k, &panel_stride, &row_stride, &result_stride, &alpha, &beta, &flags, &prefetch);
  }
  if (kernel.plain_ || kernel.sum_) return kernel;
  return Fail("libxsmm generates no kernel for " + std::to_string(shape.rows) + " rows, " + std::to_string(shape.columns) +
              " columns and depth " + std::to_string(shape.depth));
}

// The library leaves the upper parts of vector registers in use, and every instruction of plain code that writes a lower part then waits
// for the product.
__attribute__((target("avx"))) void MicroKernel::operator()(const float* rows, const float* panel, float* result, const float* next) const {
  if (plain_) {
    plain_(panel + panel_begin_, rows + row_begin_, result, next + panel_begin_, rows, result);
  } else {
    const unsigned long long terms = row_terms_.size();
    sum_(panel, rows, result, &terms, panel_terms_.data(), row_terms_.data());
  }
  __builtin_ia32_vzeroupper();
}

}  // namespace collage::xsmm
