#include "collage/backend/native/codegen/emitter.h"

#include <algorithm>
#include <numeric>

#include "collage/backend/native/codegen/physical.h"

namespace collage::native {

using Halide::Expr;
using Halide::Func;
using Halide::ImageParam;
using Halide::Var;

std::optional<size_t> Stage::LoopsOf(int64_t count) const {
  int64_t inside = 1;
  for (size_t i = loops.size();; --i) {
    if (inside == count) return i;
    if (i == 0 || inside > count) return std::nullopt;
    inside *= loops[i - 1]->extent;
  }
}

const Tensor* Emitter::ConstantOf(size_t value) const {
  const auto& constant = sequence_.values[value].constant;
  return constant ? &*constant : nullptr;
}

int Emitter::VectorLanes(Halide::Type type) const {
  static const Halide::Target target = Halide::get_host_target();
  constexpr int kPercent = 100;
  return std::max(1, target.natural_vector_size(type.is_bool() ? Halide::UInt(8) : type) * options_.vector_percent / kPercent);
}

Loop* Emitter::NewLoop(Expr variable, int64_t extent) {
  loops_.push_back({std::move(variable), extent, {}});
  return &loops_.back();
}

Expr Emitter::At(size_t value, const Index& index) {
  ValueState& state = values_[value];
  const std::string key = Key(index);
  if (const auto found = state.memo.find(key); found != state.memo.end()) return found->second;
  Expr expr = state.body(index);
  const bool simple = Halide::Internal::is_const(expr) || expr.as<Halide::Internal::Variable>();
  if (!simple) {
    bindings_.emplace_back("element" + std::to_string(bindings_.size()), expr);
    expr = Halide::Internal::Variable::make(expr.type(), bindings_.back().first);
  }
  values_[value].memo.emplace(key, expr);
  return expr;
}

Expr Emitter::Evaluate(const std::function<Expr()>& body) {
  const auto forget = [&] {
    for (ValueState& state : values_) state.memo.clear();
    bindings_.clear();
  };
  forget();
  Expr result = body();
  for (size_t i = bindings_.size(); i-- > 0;) result = Halide::Internal::Let::make(bindings_[i].first, bindings_[i].second, result);
  forget();
  return Halide::Internal::common_subexpression_elimination(result);
}

void Emitter::Define(size_t value, Body body) { values_[value].body = std::move(body); }

std::shared_ptr<Emitter::Anchor> Emitter::AddAnchor(Anchor anchor) {
  anchors_.push_back(std::make_shared<Anchor>(std::move(anchor)));
  return anchors_.back();
}

Expr Emitter::CallAnchor(Anchor& anchor, const Index& index, const Shape& shape) {
  Shape extents;
  for (const Loop* loop : anchor.result.loops) extents.push_back(loop->extent);
  const Index own = Regroup(index, shape, extents);
  anchor.accesses.push_back(own);
  std::vector<Expr> arguments;
  for (size_t i = own.size(); i-- > 0;) arguments.push_back(ToExpr(own[i]));
  return anchor.result.func(arguments);
}

void Emitter::DefineAnchor(size_t value, Anchor anchor) {
  Define(value,
         [shared = AddAnchor(std::move(anchor)), shape = ShapeOf(value)](const Index& index) { return CallAnchor(*shared, index, shape); });
}

ImageParam Emitter::AddTable(Tensor table) {
  return AddConstant([table = std::move(table)](const OpSequence&) { return table; });
}

ImageParam Emitter::AddConstant(MakeConstant make) {
  const Tensor tensor = make(sequence_);
  ImageParam buffer(ElementType(tensor.dtype()).is_bool() ? Halide::UInt(8) : ElementType(tensor.dtype()), 1,
                    "constant" + std::to_string(constants_.size()));
  buffer.set_host_alignment(64);
  buffer.dim(0).set_bounds(0, static_cast<int>(tensor.ElementCount()));
  constants_.push_back(std::move(make));
  constant_buffers_.push_back(buffer);
  return buffer;
}

ImageParam Emitter::AddInput(const TensorType& type) {
  const Halide::Type element = ElementType(type.dtype);
  ImageParam buffer(element.is_bool() ? Halide::UInt(8) : element, 1, "input" + std::to_string(inputs_.size()));
  buffer.set_host_alignment(64);
  buffer.dim(0).set_bounds(0, static_cast<int>(type.ElementCount()));
  inputs_.push_back(buffer);
  return buffer;
}

void Emitter::DefineInput(size_t value, size_t parameter) {
  const TensorType& type = TypeOf(value);
  const Layout& layout = options_.inputs[parameter];
  ImageParam buffer = AddInput({PhysicalShape(type.shape, layout), type.dtype});
  Define(value, [buffer, type, layout](const Index& index) -> Expr {
    Expr element = layout.IsPlain() ? buffer(Address(index, type.shape))
                                    : buffer(Address(ToPhysical(index, type.shape, layout), PhysicalShape(type.shape, layout)));
    return type.dtype == DType::kBool ? element != Halide::cast<uint8_t>(0) : element;
  });
}

void Emitter::DefineConstant(size_t value) {
  const Tensor& tensor = *ConstantOf(value);
  if (tensor.ElementCount() == 1) {
    const bool integer = !IsFloatingPoint(tensor.dtype());
    const Expr element = integer
                             ? Halide::cast(ElementType(tensor.dtype()), Halide::Internal::make_const(Halide::Int(64), tensor.ToInt64()[0]))
                             : Immediate(tensor.ToDouble()[0], tensor.dtype());
    Define(value, [element](const Index&) { return element; });
    return;
  }
  // Made on first use: an operator may pack a constant its own way and never ask for elements.
  auto buffer = std::make_shared<std::optional<ImageParam>>();
  Define(value, [this, value, buffer, tensor](const Index& index) -> Expr {
    if (!*buffer) *buffer = AddConstant([value](const OpSequence& sequence) { return *sequence.values[value].constant; });
    Expr element = (**buffer)(Address(index, tensor.shape()));
    return tensor.dtype() == DType::kBool ? element != Halide::cast<uint8_t>(0) : element;
  });
}

Status Emitter::EmitSteps() {
  for (size_t i = 0; i < sequence_.parameters.size(); ++i) DefineInput(sequence_.parameters[i], i);
  for (size_t i = 0; i < sequence_.values.size(); ++i) {
    if (sequence_.values[i].constant) DefineConstant(i);
  }
  for (const OpSequence::Step& step : sequence_.steps) {
    const EmitOperator emit = FindEmitOperator(step.op->name);
    if (!emit) return Fail("native: no code for operator " + step.op->name);
    auto status = emit(*this, step);
    if (!status) return Fail(status.error().At("native: " + step.op->name));
  }
  return {};
}

Status Emitter::Build() {
  COLLAGE_TRY_STATUS(EmitSteps());
  for (size_t i = 0; i < sequence_.results.size(); ++i) BuildResult(i);
  ScheduleRootAnchors();
  return {};
}

namespace {

// The cuts that make a chain of divisors, so that the loop can be split at all of them; `preferred` ones go first.
std::set<int64_t> DivisorChain(const std::set<int64_t>& wanted, const std::set<int64_t>& preferred, int64_t extent) {
  std::set<int64_t> chain;
  const auto add = [&](int64_t cut) {
    if (cut <= 1 || cut >= extent || extent % cut != 0) return;
    for (int64_t other : chain) {
      if (std::max(cut, other) % std::min(cut, other) != 0) return;
    }
    chain.insert(cut);
  };
  for (int64_t cut : preferred) add(cut);
  for (int64_t cut : wanted) add(cut);
  return chain;
}

// Loop extents, outermost first, of a loop that is cut.
Shape ExtentsOf(const std::set<int64_t>& cuts, int64_t extent) {
  Shape extents;
  int64_t last = 1;
  for (int64_t cut : cuts) {
    extents.insert(extents.begin(), cut / last);
    last = cut;
  }
  extents.insert(extents.begin(), extent / last);
  return extents;
}

Index IdentityIndex(const std::vector<Loop*>& loops) {
  Index index;
  for (Loop* loop : loops) {
    DimensionIndex dimension;
    if (loop->extent > 1) dimension.digits.push_back({loop, 1, loop->extent, {}});
    index.push_back(dimension);
  }
  return index;
}

}  // namespace

Stage Emitter::MakeStage(const std::string& name, const Shape& domain, const Body& body, const std::set<int64_t>& cuts) {
  const int64_t count = ElementCount(domain);
  std::vector<size_t> accesses;
  for (const auto& anchor : anchors_) accesses.push_back(anchor->accesses.size());
  Loop* flat = NewLoop(Var("flat"), count);
  wish_.reset();
  wishes_open_ = true;
  Evaluate([&] { return body(Regroup(IdentityIndex({flat}), {count}, domain)); });
  wishes_open_ = false;
  for (size_t i = 0; i < anchors_.size(); ++i) anchors_[i]->accesses.resize(accesses[i]);

  Stage stage;
  const Shape extents = ExtentsOf(DivisorChain(flat->cuts, cuts, count), count);
  for (size_t i = 0; i < extents.size(); ++i) {
    // Not by +: GCC 12 sees an endless copy in what it makes of that.
    stage.vars.emplace_back(std::string("i").append(std::to_string(i)));
    stage.loops.push_back(NewLoop(stage.vars.back(), extents[i]));
  }
  Expr value = Evaluate([&] { return body(Regroup(IdentityIndex(stage.loops), extents, domain)); });
  if (value.type().is_bool()) value = Halide::cast<uint8_t>(value);
  stage.func = Func(name);
  std::vector<Var> arguments(stage.vars.rbegin(), stage.vars.rend());
  stage.func(arguments) = value;
  for (size_t i = 0; i < extents.size(); ++i) stage.func.bound(stage.vars[i], 0, static_cast<int>(extents[i]));
  stage.cost = ExpressionCost(value) * static_cast<double>(count) / VectorLanes(value.type());
  return stage;
}

void Emitter::BuildResult(size_t number) {
  const size_t value = sequence_.results[number];
  const Shape& shape = ShapeOf(value);
  const Layout& layout = options_.outputs[number];
  const Shape domain = PhysicalShape(shape, layout);
  const Body body = [&](const Index& index) { return At(value, layout.IsPlain() ? index : ToLogical(index, shape, layout)); };
  std::set<int64_t> cuts;
  if (!anchors_.empty()) {
    int64_t anchored = 1;
    for (const Loop* loop : anchors_.back()->result.loops) anchored *= loop->extent;
    if (anchored == ElementCount(domain)) cuts = anchors_.back()->cuts;
  }
  Stage stage = MakeStage("output" + std::to_string(number), domain, body, cuts);
  if (wish_ && BuildPieces(number, domain, body)) return;
  wish_.reset();
  outputs_.push_back(stage.func);
  Halide::OutputImageParam buffer = stage.func.output_buffer();
  buffer.set_host_alignment(64);
  int64_t stride = 1;
  for (size_t i = stage.loops.size(); i-- > 0;) {
    const int dimension = static_cast<int>(stage.loops.size() - 1 - i);
    buffer.dim(dimension).set_bounds(0, static_cast<int>(stage.loops[i]->extent)).set_stride(static_cast<int>(stride));
    stride *= stage.loops[i]->extent;
  }
  if (!FuseAnchor(stage)) SchedulePointwise(stage);
}

void Emitter::WishPieces(const DimensionIndex& axis, const std::vector<int64_t>& boundaries) {
  // Only an axis whose digits are one contiguous range of one loop can become loops of its own.
  if (!wishes_open_ || axis.digits.empty() || !axis.digits.back().loop) return;
  const Digit& last = axis.digits.back();
  int64_t extent = 1;
  for (size_t i = axis.digits.size(); i-- > 0;) {
    const Digit& digit = axis.digits[i];
    if (digit.loop != last.loop || digit.divisor != last.divisor * extent) return;
    extent *= digit.extent;
  }
  if (wish_ && (wish_->divisor != last.divisor || wish_->extent != extent)) return;
  if (!wish_) wish_ = PieceWish{last.divisor, extent, {0, extent}};
  for (int64_t boundary : boundaries) {
    const int64_t position = boundary - axis.offset;
    if (position > 0 && position < extent) wish_->boundaries.insert(position);
  }
}

bool Emitter::BuildPieces(size_t number, const Shape& domain, const Body& body) {
  const PieceWish wish = *std::exchange(wish_, std::nullopt);
  const std::vector<int64_t> strides = RowMajorStrides(domain);
  size_t axis = 0;
  while (axis < domain.size() && (domain[axis] != wish.extent || strides[axis] != wish.divisor)) ++axis;
  constexpr size_t kMostPieces = 16;
  if (axis == domain.size() || wish.boundaries.size() > kMostPieces + 1) return false;

  const std::vector<int64_t> boundaries(wish.boundaries.begin(), wish.boundaries.end());
  Func output("output" + std::to_string(number));
  Var position("position");
  const DType dtype = TypeOf(sequence_.results[number]).dtype;
  const Halide::Type type = dtype == DType::kBool ? Halide::UInt(8) : ElementType(dtype);
  output(position) = Halide::undef(type);
  for (size_t piece = 0; piece + 1 < boundaries.size(); ++piece) {
    Shape inner = domain;
    inner[axis] = boundaries[piece + 1] - boundaries[piece];
    const int64_t count = ElementCount(inner);
    const auto evaluate = [&](const Index& local, Expr& address) {
      Index index = local;
      index[axis].offset += boundaries[piece];
      address = Address(index, domain);
      const Expr value = Evaluate([&] { return body(index); });
      return value.type().is_bool() ? Halide::cast<uint8_t>(value) : value;
    };
    Loop* flat = NewLoop(Var("flat"), count);
    Expr address;
    evaluate(Regroup(IdentityIndex({flat}), {count}, inner), address);
    const Shape extents = ExtentsOf(DivisorChain(flat->cuts, {}, count), count);
    Halide::Region ranges;
    for (size_t i = extents.size(); i-- > 0;) ranges.emplace_back(0, static_cast<int>(extents[i]));
    Halide::RDom domain_loops(ranges);
    std::vector<Loop*> loops;
    for (size_t i = 0; i < extents.size(); ++i)
      loops.push_back(NewLoop(domain_loops[static_cast<int>(extents.size() - 1 - i)], extents[i]));
    const Expr value = evaluate(Regroup(IdentityIndex(loops), extents, inner), address);
    output(address) = value;
    Halide::Stage update = output.update(static_cast<int>(piece));
    const int lanes = VectorLanes(type);
    Halide::RVar innermost = domain_loops[0];
    Halide::RVar outside;
    const double cost = ExpressionCost(value) * static_cast<double>(count) / lanes;
    update.allow_race_conditions();
    if (extents.back() >= lanes) {
      Halide::RVar inside;
      outside = Halide::RVar();
      update.split(innermost, outside, inside, lanes, Halide::TailStrategy::GuardWithIf).vectorize(inside);
    } else if (extents.back() > 1) {
      update.vectorize(innermost);
    }
    constexpr double kWorthThreads = 8000;
    if (Parallel() && cost > kWorthThreads) {
      if (extents.size() > 1) {
        update.parallel(domain_loops[static_cast<int>(extents.size() - 1)]);
      } else if (extents.back() >= int64_t{lanes} * options_.threads) {
        const int chunk = static_cast<int>((extents.back() / lanes + options_.threads - 1) / options_.threads);
        update.parallel(outside, chunk);
      }
    }
  }
  Halide::OutputImageParam buffer = output.output_buffer();
  buffer.set_host_alignment(64);
  buffer.dim(0).set_bounds(0, static_cast<int>(ElementCount(domain))).set_stride(1);
  outputs_.push_back(output);
  return true;
}

bool Emitter::FuseAnchor(Stage& host) {
  if (anchors_.empty() || sequence_.results.size() != 1) return false;
  Anchor& anchor = *anchors_.back();
  for (const Index& access : anchor.accesses) {
    std::vector<Digit> digits;
    for (const DimensionIndex& dimension : access) {
      if (dimension.offset != 0) return false;
      digits.insert(digits.end(), dimension.digits.begin(), dimension.digits.end());
    }
    size_t at = 0;
    for (Loop* loop : host.loops) {
      for (int64_t left = loop->extent; left > 1; ++at) {
        if (at == digits.size() || digits[at].loop != loop || digits[at].divisor * digits[at].extent != left) return false;
        left = digits[at].divisor;
      }
    }
    if (at != digits.size()) return false;
  }
  if (anchor.accesses.empty() || !anchor.fits(host)) return false;
  anchor.schedule(host);
  anchors_.pop_back();
  return true;
}

void Emitter::ScheduleRootAnchors() {
  for (const auto& anchor : anchors_) {
    if (anchor->accesses.empty()) continue;
    anchor->result.func.compute_root();
    anchor->schedule(anchor->result);
  }
}

Halide::Pipeline Emitter::MakePipeline() const { return Halide::Pipeline(outputs_); }

std::vector<Halide::Argument> Emitter::Arguments() const {
  std::vector<Halide::Argument> arguments(inputs_.begin(), inputs_.end());
  arguments.insert(arguments.end(), constant_buffers_.begin(), constant_buffers_.end());
  return arguments;
}

}  // namespace collage::native
