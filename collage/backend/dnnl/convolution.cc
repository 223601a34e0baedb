#include <array>
#include <utility>

#include "collage/backend/dnnl/attributes.h"
#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;
using Descriptor = dnnl::convolution_forward::primitive_desc;

struct Problem {
  memory::dims data, weight, result;
  memory::dims strides, dilation, padding_before, padding_after;
};

Result<Problem> ProblemOf(const Chain& chain) {
  const OpSequence::Step& step = *chain.base;
  Problem problem{Dims(chain.ShapeOf(step.inputs[0])), Dims(chain.ShapeOf(step.inputs[1])), Dims(chain.ShapeOf(step.outputs[0]))};
  problem.strides = COLLAGE_TRY(step.attributes.Ints("strides", {1, 1}));
  problem.dilation = COLLAGE_TRY(step.attributes.Ints("dilation", {1, 1}));
  std::vector<int64_t> padding = COLLAGE_TRY(step.attributes.Ints("padding", {0, 0, 0, 0}));
  const int64_t groups = COLLAGE_TRY(step.attributes.Int("groups", 1));
  if (padding.size() == 1) padding.resize(4, padding[0]);
  if (padding.size() == 2) padding.insert(padding.end(), {padding[0], padding[1]});
  if (problem.strides.size() == 1) problem.strides.resize(2, problem.strides[0]);
  if (problem.dilation.size() == 1) problem.dilation.resize(2, problem.dilation[0]);
  if (problem.data.size() != 4 || padding.size() != 4) return Fail("oneDNN: four dimensions are wanted");
  for (int64_t& extent : problem.dilation) --extent;  // the library counts the gaps
  problem.padding_before = {padding[0], padding[1]};
  problem.padding_after = {padding[2], padding[3]};
  if (groups > 1) {
    problem.weight[0] /= groups;
    problem.weight.insert(problem.weight.begin(), groups);
  }
  return problem;
}

std::vector<std::pair<std::string, std::string>> LayoutPairs() {
  const std::string& blocked = BlockedTag();
  return {{kAny, kAny}, {blocked, blocked}, {kChannelsLast, kChannelsLast}, {kPlain, kPlain}, {kPlain, blocked}};
}

using Operation = dnnl::convolution_forward::desc;

std::optional<Operation> OperationOf(const Problem& problem, const Chain& chain, dnnl::algorithm algorithm,
                                     const std::pair<std::string, std::string>& tags) {
  try {
    const memory::desc bias = chain.bias ? Describe({problem.result[1]}, kAny) : memory::desc();
    return Operation(dnnl::prop_kind::forward_inference, algorithm, Describe(problem.data, tags.first, chain.DataType()),
                     Describe(problem.weight, kAny, chain.WeightType()), bias, Describe(problem.result, tags.second, chain.ResultType()),
                     problem.strides, problem.dilation, problem.padding_before, problem.padding_after);
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
}

Plan MakePlan(const Chain& chain, const Descriptor& primitive, const std::string& in, const std::string& out, const Attached& attached) {
  Plan plan{{}, primitive, attached.arguments, attached.accumulated};
  const memory::desc data = primitive.src_desc();
  const memory::desc result = primitive.dst_desc();
  plan.arguments.push_back({DNNL_ARG_SRC, chain.DataValue(), data, PhysicalLayout(data.dims(), in, chain.stored)});
  for (Argument& argument : ConstantArguments(chain, primitive.weights_desc(), primitive.bias_desc()))
    plan.arguments.push_back(std::move(argument));
  plan.arguments.push_back({DNNL_ARG_DST, chain.ResultValue(), result, PhysicalLayout(result.dims(), out, chain.stored_result)});
  return plan;
}

// How many implementations of one layout are worth pricing: generated code differs for channels last and for Winograd (tiles of 2x3
// and 4x3), otherwise the library's first is the one.
size_t MostOf(dnnl::algorithm algorithm, const std::string& tag) {
  return algorithm == dnnl::algorithm::convolution_winograd || tag == kChannelsLast ? 2 : 1;
}

/// oneDNN 2.6.3 takes the wrong elements of another tensor there, found where a WaveNet multiplies what a dilated convolution gives.
bool MisplacesOperands(const std::string& implementation, const std::string& in, const Attached& attached) {
  if (in != kChannelsLast || implementation.find("gemm") == std::string::npos) return false;
  const dnnl::post_ops operations = attached.attributes.get_post_ops();
  for (int i = 0; i < operations.len(); ++i) {
    if (operations.kind(i) == dnnl::primitive::kind::binary) return true;
  }
  return false;
}

// The iterator of the library points to `operation` as long as it goes on.
void AddImplementations(const Chain& chain, const Operation& operation, const char* algorithm, size_t most, const Attached& attached,
                        std::vector<Found>& found) {
  Descriptor primitive(operation, attached.attributes, Engine(), /*allow_empty=*/true);
  if (!primitive.get(/*allow_empty=*/true)) return;
  for (size_t rank = 0; rank < most; ++rank) {
    if (rank > 0 && !primitive.next_impl()) return;
    const std::string in = TagOf(primitive.src_desc());
    const std::string out = TagOf(primitive.dst_desc());
    if (in.empty() || out.empty()) return;
    const std::string implementation = ImplementationOf(primitive);
    if (MisplacesOperands(implementation, in, attached)) continue;
    const std::string layouts = in == out ? in : in + "-" + out;
    Plan plan = MakePlan(chain, primitive, in, out, attached);
    plan.name = std::string(algorithm) + "/" + implementation + "/" + layouts;
    found.push_back({std::move(plan), implementation, layouts, rank});
  }
}

}  // namespace

std::vector<Plan> ConvolutionPlans(const Chain& chain) {
  const Result<Problem> problem = ProblemOf(chain);
  if (!problem || !chain.IsConstant(chain.base->inputs[1])) return {};
  constexpr std::array<std::pair<const char*, dnnl::algorithm>, 2> kAlgorithms = {
      {{"direct", dnnl::algorithm::convolution_direct}, {"winograd", dnnl::algorithm::convolution_winograd}}};
  std::vector<Found> found;
  for (const auto& [name, algorithm] : kAlgorithms) {
    // Winograd rounds transformed integers to 8 bits again.
    if (chain.quantised && algorithm == dnnl::algorithm::convolution_winograd) continue;
    for (const auto& tags : LayoutPairs()) {
      const std::optional<Attached> attached =
          AttachPostOps(chain, AlignedTo(chain.ShapeOf(chain.result)), tags.second, /*allow_sum=*/true);
      if (!attached) continue;
      const std::optional<Operation> operation = OperationOf(*problem, chain, algorithm, tags);
      if (operation) AddImplementations(chain, *operation, name, MostOf(algorithm, tags.first), *attached, found);
    }
  }
  constexpr size_t kMostOfOneLayout = 2;
  return WorthOffering(std::move(found), kMostOfOneLayout);
}

}  // namespace collage::dnnl_backend
