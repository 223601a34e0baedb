#include "tests/candidate/small_graphs.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "collage/support/hash.h"

namespace collage {
namespace {

constexpr size_t kMostArguments = 12;
const Type& Vector() {
  static const Type type = TensorType{{2}, DType::kFloat32};
  return type;
}

/// Different for each operator, for each position of an argument and for each output, so that whatever is mixed up shows.
OpDef::ReferenceKernel MixingKernel(double salt) {
  return [salt](std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
    for (size_t k = 0; k < outputs.size(); ++k) {
      for (int64_t i = 0; i < 2; ++i) {
        double mixed = salt + static_cast<double>(k);
        for (size_t j = 0; j < inputs.size(); ++j)
          mixed += std::sin(static_cast<double>(inputs[j].Data<float>()[i]) * (2.0 + 3.0 * static_cast<double>(j)));
        outputs[k].MutableData<float>()[i] = static_cast<float>(mixed);
      }
    }
  };
}

/// Operators of every kind and number of arguments, all from vectors to a vector; "join" takes a tuple, "split" gives one. What
/// they compute tells them apart.
const OpTable& Table() {
  static const OpTable table = [] {
    OpTable made;
    const auto to_vector = [](std::span<const Type>, const Attributes&) { return Result<Type>(Vector()); };
    for (const OpKind kind : {OpKind::kElementwise, OpKind::kBroadcast, OpKind::kInjective, OpKind::kCommReduce,
                              OpKind::kOutElementwiseFusable, OpKind::kOpaque}) {
      for (size_t arity = 1; arity <= kMostArguments; ++arity) {
        OpDef op;
        op.name = std::string(Name(kind)) + std::to_string(arity);
        op.argument_names.resize(arity, "x");
        op.kind = kind;
        op.infer_type = to_vector;
        op.reference = MixingKernel(static_cast<double>(kind) + 0.01 * static_cast<double>(arity));
        made.Add(std::move(op));
      }
    }
    OpDef join;
    join.name = "join";
    join.argument_names = {"fields"};
    join.kind = OpKind::kInjective;
    join.infer_type = to_vector;
    join.reference = MixingKernel(0.5);
    made.Add(std::move(join));
    OpDef split;
    split.name = "split";
    split.argument_names = {"x"};
    split.kind = OpKind::kInjective;
    split.infer_type = [](std::span<const Type>, const Attributes&) { return Result<Type>(Type(TupleType{{Vector(), Vector()}})); };
    split.reference = MixingKernel(0.25);
    made.Add(std::move(split));
    return made;
  }();
  return table;
}

Expr BuildDag(const std::vector<uint32_t>& inputs, uint64_t seed) {
  const auto draw = [&](size_t node, size_t what, uint64_t count) { return HashCombine(HashCombine(seed, node), what) % count; };
  const Expr parameter = MakeVar("x", Vector());
  std::vector<Expr> values;
  uint32_t read = 0;
  for (size_t node = 0; node < inputs.size(); ++node) {
    std::vector<Expr> args;
    for (size_t i = 0; i < node; ++i) {
      if (inputs[node] >> i & 1) args.push_back(values[i]);
    }
    read |= inputs[node];
    if (args.empty()) args.push_back(parameter);
    if (args.size() >= 2 && args.size() <= 3 && draw(node, 0, 6) == 0) {
      values.push_back(MakeCall(Table().Find("join"), {MakeTuple(args)}).value());
      continue;
    }
    if (args.size() == 1 && draw(node, 1, 8) == 0) {
      values.push_back(MakeTupleGetItem(MakeCall(Table().Find("split"), args).value(), draw(node, 2, 2)).value());
      continue;
    }
    if (draw(node, 3, 5) == 0) args.push_back(MakeConstant(Tensor(*Vector().AsTensor())));
    constexpr OpKind kKinds[] = {OpKind::kElementwise, OpKind::kElementwise,           OpKind::kBroadcast, OpKind::kInjective,
                                 OpKind::kCommReduce,  OpKind::kOutElementwiseFusable, OpKind::kOpaque};
    const OpKind kind = kKinds[draw(node, 4, std::size(kKinds))];
    values.push_back(MakeCall(Table().Find(std::string(Name(kind)) + std::to_string(args.size())), args).value());
  }
  std::vector<Expr> sinks;
  for (size_t node = 0; node < values.size(); ++node) {
    if (!(read >> node & 1)) sinks.push_back(values[node]);
  }
  const Expr body = sinks.size() == 1 ? sinks.front() : MakeTuple(sinks);
  return MakeFunction({parameter}, body).value();
}

bool IsConnected(const std::vector<uint32_t>& inputs) {
  uint32_t reached = 1;
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t node = 0; node < inputs.size(); ++node) {
      const uint32_t together = inputs[node] | 1u << node;
      if ((together & reached) == 0 || (together & ~reached) == 0) continue;
      reached |= together;
      grown = true;
    }
  }
  return reached + 1 == 1u << inputs.size();
}

}  // namespace

void ForEveryConnectedDag(size_t operators, uint64_t seed, const std::function<void(const Expr&)>& visit) {
  std::vector<uint32_t> inputs(operators, 0);
  for (uint64_t number = 0;; ++number) {
    if (IsConnected(inputs)) visit(BuildDag(inputs, HashCombine(seed, number)));
    size_t node = 0;
    while (node < operators && ++inputs[node] == 1u << node) inputs[node++] = 0;
    if (node == operators) return;
  }
}

Expr RandomDag(size_t operators, uint64_t seed) {
  std::vector<uint32_t> inputs(operators, 0);
  for (size_t node = 1; node < operators; ++node) {
    const size_t reads = 1 + HashCombine(seed, node * 2) % 3;
    for (size_t i = 0; i < reads; ++i) {
      const size_t back = 1 + HashCombine(seed, node * 64 + i) % std::min<size_t>(node, 6);
      inputs[node] |= 1u << (node - back);
    }
  }
  return BuildDag(inputs, HashCombine(seed, 77));
}

}  // namespace collage
