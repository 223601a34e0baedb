#pragma once

#include <cublasLt.h>

#include <memory>
#include <vector>

#include "collage/backend/cublas/cublas_lt.h"
#include "collage/backend/cublas/layer.h"

namespace collage::cublas {

/// A way of the library to compute a product.
struct Algorithm {
  cublasLtMatmulAlgo_t configuration;
  size_t workspace_bytes;
};

/// Where the tensors of a product are; addresses of the device.
struct Addresses {
  const void* a;
  const void* b;
  const void* added;  ///< null: nothing is added
  void* result;
  void* workspace;  ///< aligned to kWorkspaceAlignment
};

/// As the documentation of cublasLtMatmul demands.
inline constexpr size_t kWorkspaceAlignment = 256;

/// A layer as the library is told of it: the operation and where the elements of its matrices lie. It does not change once it is made, so
/// any number of threads may use it at the same time.
///
/// The library's matrices have their columns one after another, so it sees each row-major matrix transposed, and computes the transposed
/// result: b takes the place of its first operand. A bias for each row of that result is one for each column of ours.
class Matmul {
 public:
  /// `bias`: the layer's, an address of the device; where there is none yet, any that is aligned as it will be. Null without one. Errors
  /// are the library's.
  static Result<Matmul> Describe(const Layer& layer, const void* bias);

  /// What the library deems fastest, the best first; each runs on addresses that are aligned as kernels are promised. Empty where it has
  /// none. Errors are the library's.
  [[nodiscard]] Result<std::vector<Algorithm>> Algorithms(const Session& session) const;
  /// Whether the library runs it with this algorithm, and how much workspace that takes, bytes.
  [[nodiscard]] Result<size_t> Check(const Session& session, const Algorithm& algorithm) const;
  /// Gives it to the device's stream. Allocates nothing and waits for nothing.
  [[nodiscard]] Status Run(const Session& session, const Algorithm& algorithm, const Addresses& at) const;

 private:
  struct Destroy {
    void operator()(cublasLtMatmulDescOpaque_t* description) const;
    void operator()(cublasLtMatrixLayoutOpaque_t* description) const;
    void operator()(cublasLtMatmulPreferenceOpaque_t* description) const;
  };
  template <class Opaque>
  using Owned = std::unique_ptr<Opaque, Destroy>;
  using Operation = Owned<cublasLtMatmulDescOpaque_t>;
  using Matrices = Owned<cublasLtMatrixLayoutOpaque_t>;
  using Preference = Owned<cublasLtMatmulPreferenceOpaque_t>;

  Matmul() = default;
  static Result<Operation> DescribeOperation(const Layer& layer, const void* bias);
  static Result<Matrices> DescribeMatrices(const Layer& layer, int64_t rows, int64_t columns, int64_t step);
  static Result<Matrices> DescribeOperand(const Layer& layer, const Layer::Operand& operand, int64_t rows, int64_t columns);
  static Result<Preference> MakePreference();

  Operation operation_;
  Matrices a_;
  Matrices b_;
  Matrices result_;
  float factor_ = 1;
  float kept_ = 0;  ///< of what is added
};

}  // namespace collage::cublas
