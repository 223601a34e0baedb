#include <algorithm>
#include <cmath>

#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

/// The number of classes that have so many pairs; 0 where none has. Of more pairs than a double counts no tensor has room.
int64_t ClassesOfPairs(int64_t pairs) {
  const auto classes = static_cast<int64_t>(std::llround((1 + std::sqrt(1 + 8 * static_cast<double>(pairs))) / 2));
  return pairs > 0 && classes * (classes - 1) / 2 == pairs ? classes : 0;
}

Result<Type> PairwiseCouplingType(TypeArguments arguments, const Attributes&) {
  const TensorType pairs = COLLAGE_TRY(TensorArgument(arguments, 0, "pairs"));
  COLLAGE_TRY_STATUS(ExpectFloat(pairs, "pairs"));
  COLLAGE_TRY_STATUS(ExpectRank(pairs, "pairs", 2));
  const int64_t classes = ClassesOfPairs(pairs.shape[1]);
  if (classes == 0) {
    return Fail("pairs has shape " + ToString(pairs.shape) + ", expected n * (n - 1) / 2 columns for some number of classes n above 1");
  }
  return Type(TensorType{{pairs.shape[0], classes}, pairs.dtype});
}

/// Of ten sweeps over all pairs, which is what usual models need.
Work PairwiseCouplingWork(TypeArguments arguments, const Type& result, const Attributes&) {
  constexpr double kSweeps = 10;
  const double classes = static_cast<double>(result.AsTensor()->shape[1]);
  return {kSweeps * 4 * classes * ElementCount(result), ByteCount(arguments[0]) + ByteCount(result)};
}

/// The second algorithm of the paper, with the criterion of its authors' library (LIBSVM).
class Coupling {
 public:
  explicit Coupling(int64_t classes)
      : n_(static_cast<size_t>(classes)), r_(n_ * n_), q_(n_ * n_), p_(n_), qp_(n_), enough_(0.005 / static_cast<double>(classes)) {}

  const std::vector<double>& Solve(std::span<const double> pairs) {
    Prepare(pairs);
    std::fill(p_.begin(), p_.end(), 1.0 / static_cast<double>(n_));
    const size_t most = std::max<size_t>(100, n_);
    for (size_t sweep = 0; sweep < most && !Improve(); ++sweep) {
    }
    return p_;
  }

 private:
  void Prepare(std::span<const double> pairs) {
    for (size_t i = 0, next = 0; i < n_; ++i) {
      for (size_t j = i + 1; j < n_; ++j, ++next) {
        r_[i * n_ + j] = pairs[next];
        r_[j * n_ + i] = 1 - pairs[next];
      }
    }
    for (size_t t = 0; t < n_; ++t) {
      q_[t * n_ + t] = 0;
      for (size_t j = 0; j < n_; ++j) {
        if (j == t) continue;
        q_[t * n_ + t] += r_[j * n_ + t] * r_[j * n_ + t];
        q_[t * n_ + j] = -r_[j * n_ + t] * r_[t * n_ + j];
      }
    }
  }

  /// One sweep; true where it would change too little.
  bool Improve() {
    double pqp = 0;
    for (size_t t = 0; t < n_; ++t) {
      qp_[t] = 0;
      for (size_t j = 0; j < n_; ++j) qp_[t] += q_[t * n_ + j] * p_[j];
      pqp += p_[t] * qp_[t];
    }
    double error = 0;
    for (size_t t = 0; t < n_; ++t) error = std::max(error, std::abs(qp_[t] - pqp));
    if (error < enough_) return true;
    for (size_t t = 0; t < n_; ++t) {
      const double diff = (pqp - qp_[t]) / q_[t * n_ + t];
      p_[t] += diff;
      pqp = (pqp + diff * (diff * q_[t * n_ + t] + 2 * qp_[t])) / ((1 + diff) * (1 + diff));
      for (size_t j = 0; j < n_; ++j) {
        qp_[j] = (qp_[j] + diff * q_[t * n_ + j]) / (1 + diff);
        p_[j] /= 1 + diff;
      }
    }
    return false;
  }

  size_t n_;
  std::vector<double> r_;
  std::vector<double> q_;
  std::vector<double> p_;
  std::vector<double> qp_;
  double enough_;
};

void PairwiseCouplingKernel(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
  const auto pairs = static_cast<size_t>(inputs[0].shape()[1]);
  const auto classes = static_cast<size_t>(outputs[0].shape()[1]);
  Coupling coupling(outputs[0].shape()[1]);
  VisitElementType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_floating_point_v<T>) {
      std::vector<double> row(pairs);
      for (int64_t n = 0; n < outputs[0].shape()[0]; ++n) {
        const T* given = inputs[0].Data<T>() + static_cast<size_t>(n) * pairs;
        std::copy(given, given + pairs, row.begin());
        T* made = outputs[0].MutableData<T>() + static_cast<size_t>(n) * classes;
        const std::vector<double>& probabilities = coupling.Solve(row);
        for (size_t i = 0; i < classes; ++i) made[i] = static_cast<T>(probabilities[i]);
      }
    }
  });
}

}  // namespace

void AddPairwiseCouplingOperators(OpTable& table) {
  Register(table,
           {.name = "pairwise_coupling",
            .summary = "Probabilities of classes from those of each pair of them: rows of pairs (0, 1), (0, 2), .., (1, 2), .., each "
                       "strictly between 0 and 1 and that of the first class of the pair (Wu, Lin and Weng, Probability Estimates for "
                       "Multi-class Classification by Pairwise Coupling, JMLR 2004, second algorithm).",
            .argument_names = {"pairs"},
            .attributes = {},
            .kind = OpKind::kOpaque,
            .infer_type = PairwiseCouplingType,
            .work = PairwiseCouplingWork,
            .reference = PairwiseCouplingKernel});
}

}  // namespace collage
