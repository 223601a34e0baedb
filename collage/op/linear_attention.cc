#include <cmath>

#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

/// The state of each head is a matrix [key size, value size] that every step reads and adds to.
Result<Type> LinearAttentionType(TypeArguments arguments, const Attributes&) {
  const TensorType query = COLLAGE_TRY(TensorArgument(arguments, 0, "query"));
  const TensorType key = COLLAGE_TRY(TensorArgument(arguments, 1, "key"));
  const TensorType value = COLLAGE_TRY(TensorArgument(arguments, 2, "value"));
  const TensorType state = COLLAGE_TRY(TensorArgument(arguments, 3, "state"));
  const TensorType decay = COLLAGE_TRY(TensorArgument(arguments, 4, "decay"));
  const TensorType beta = COLLAGE_TRY(TensorArgument(arguments, 5, "beta"));
  COLLAGE_TRY_STATUS(ExpectFloat(query, "query"));
  COLLAGE_TRY_STATUS(ExpectRank(query, "query", 4));
  COLLAGE_TRY_STATUS(ExpectRank(key, "key", 4));
  COLLAGE_TRY_STATUS(ExpectRank(value, "value", 4));
  for (const TensorType* type : {&key, &value, &state, &decay, &beta})
    COLLAGE_TRY_STATUS(ExpectSameDType(*type, "an argument", query, "query"));
  const int64_t batch = query.shape[0];
  const int64_t heads = key.shape[1];
  const int64_t steps = query.shape[2];
  const int64_t size = query.shape[3];
  if (heads < 1 || query.shape[1] % heads != 0) {
    return Fail("query has shape " + ToString(query.shape) + ", expected a multiple of the heads of key, which has shape " +
                ToString(key.shape));
  }
  COLLAGE_TRY_STATUS(ExpectShape(key, "key", {batch, heads, steps, size}));
  COLLAGE_TRY_STATUS(ExpectShape(value, "value", {batch, heads, steps, value.shape[3]}));
  COLLAGE_TRY_STATUS(ExpectShape(state, "state", {batch, heads, size, value.shape[3]}));
  COLLAGE_TRY_STATUS(ExpectShape(decay, "decay", key.shape));
  COLLAGE_TRY_STATUS(ExpectShape(beta, "beta", {batch, heads, steps, 1}));
  return Type(TupleType{{TensorType{{batch, query.shape[1], steps, value.shape[3]}, query.dtype}, state}});
}

/// The decay, the product with the key where the rule corrects, the outer product, and the product with each query.
Work LinearAttentionWork(TypeArguments arguments, const Type& result, const Attributes& attributes) {
  const Shape& query = arguments[0].AsTensor()->shape;
  const double steps = static_cast<double>(query[2]) * ElementCount(arguments[3]);
  const double sharing = static_cast<double>(query[1]) / static_cast<double>(arguments[1].AsTensor()->shape[1]);
  const double update = BoolAttribute(attributes, "delta", false) ? 5 : 3;
  Work work{steps * (update + 2 * sharing), ByteCount(result)};
  for (const Type& argument : arguments) work.bytes += ByteCount(argument);
  return work;
}

/// One head of keys and values over all steps, and the heads of queries that share it.
template <class T>
class Head {
 public:
  Head(std::span<const Tensor> inputs, std::span<Tensor> outputs, bool delta)
      : inputs_(inputs),
        outputs_(outputs),
        delta_(delta),
        heads_(inputs[1].shape()[1]),
        steps_(inputs[1].shape()[2]),
        size_(inputs[1].shape()[3]),
        width_(inputs[2].shape()[3]),
        sharing_(inputs[0].shape()[1] / heads_) {}

  /// `index`: batch * heads + head.
  void Run(int64_t index) {
    const T* before = inputs_[3].Data<T>() + index * size_ * width_;
    state_.assign(before, before + size_ * width_);
    for (int64_t t = 0; t < steps_; ++t) {
      Update(index * steps_ + t);
      for (int64_t i = 0; i < sharing_; ++i) Read((index * sharing_ + i) * steps_ + t);
    }
    T* after = outputs_[1].MutableData<T>() + index * size_ * width_;
    for (size_t i = 0; i < state_.size(); ++i) after[i] = static_cast<T>(state_[i]);
  }

 private:
  void Update(int64_t place) {
    const T* key = inputs_[1].Data<T>() + place * size_;
    const T* value = inputs_[2].Data<T>() + place * width_;
    const T* decay = inputs_[4].Data<T>() + place * size_;
    const double beta = inputs_[5].Data<T>()[place];
    for (int64_t k = 0; k < size_; ++k) {
      for (int64_t v = 0; v < width_; ++v) At(k, v) *= std::exp(static_cast<double>(decay[k]));
    }
    for (int64_t v = 0; v < width_; ++v) {
      double known = 0;
      for (int64_t k = 0; delta_ && k < size_; ++k) known += At(k, v) * static_cast<double>(key[k]);
      const double added = beta * (static_cast<double>(value[v]) - known);
      for (int64_t k = 0; k < size_; ++k) At(k, v) += static_cast<double>(key[k]) * added;
    }
  }

  void Read(int64_t place) {
    const T* query = inputs_[0].Data<T>() + place * size_;
    T* result = outputs_[0].MutableData<T>() + place * width_;
    for (int64_t v = 0; v < width_; ++v) {
      double sum = 0;
      for (int64_t k = 0; k < size_; ++k) sum += At(k, v) * static_cast<double>(query[k]);
      result[v] = static_cast<T>(sum);
    }
  }

  double& At(int64_t k, int64_t v) { return state_[static_cast<size_t>(k * width_ + v)]; }

  std::span<const Tensor> inputs_;
  std::span<Tensor> outputs_;
  bool delta_;
  int64_t heads_;
  int64_t steps_;
  int64_t size_;
  int64_t width_;
  int64_t sharing_;
  std::vector<double> state_;
};

void LinearAttentionKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const bool delta = BoolAttribute(attributes, "delta", false);
  const int64_t heads = inputs[1].shape()[0] * inputs[1].shape()[1];
  VisitElementType(inputs[0].dtype(), [&](auto element) {
    if constexpr (std::is_floating_point_v<decltype(element)>) {
      Head<decltype(element)> head(inputs, outputs, delta);
      for (int64_t i = 0; i < heads; ++i) head.Run(i);
    }
  });
}

}  // namespace

void AddLinearAttentionOperators(OpTable& table) {
  Register(table,
           {.name = "nn.linear_attention",
            .summary = "Attention whose past is a matrix S for each head: S = exp(decay) S + beta key (x) value at each step, or with "
                       "delta exp(decay) S + beta key (x) (value - key exp(decay) S), and query S is the result. Query is [batch, "
                       "query heads, steps, key size], key [batch, heads, steps, key size] and decay like it, value [.., value "
                       "size], beta [.., 1]. The result is a tuple of [batch, query heads, steps, value size] and the last state.",
            .argument_names = {"query", "key", "value", "state", "decay", "beta"},
            .attributes = {{"delta", "bool", "only what the state does not know yet of a value is added, default False"}},
            .kind = OpKind::kOpaque,
            .infer_type = LinearAttentionType,
            .work = LinearAttentionWork,
            .reference = LinearAttentionKernel});
}

}  // namespace collage
