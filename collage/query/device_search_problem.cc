#include "collage/query/device_search_problem.h"

#include <algorithm>
#include <set>

namespace collage {
namespace {

/// Costs are whole picoseconds; prices without a unit are scaled to lie far from both ends of what they can hold. What cannot be is
/// dearer than all that can together, so that a cover that needs it is seen and no cover's cost overflows.
constexpr double kLargestTotal = 1e2;

size_t NumberOf(std::vector<VirtualDevice>& places, const VirtualDevice& place) {
  const auto at = std::find(places.begin(), places.end(), place);
  if (at != places.end()) return static_cast<size_t>(at - places.begin());
  places.push_back(place);
  return places.size() - 1;
}

/// Whether a candidate may lie on the device of a backend: everything that it makes may be there, for a target that the backend's is
/// or refines, and nothing is copied inside.
class Placement {
 public:
  Placement(const FunctionOnDevices& function, const TensorPlaces& places, const DevicePlan& plan)
      : function_(function), places_(places), plan_(plan) {}

  [[nodiscard]] bool MayLie(const SubGraph& sub_graph, const DeviceBackend& backend) const {
    bool may = true;
    std::optional<VirtualDevice> place;
    const IndexSet& inside = sub_graph.inside();
    inside.ForEach([&](PostDfsIndex node) { may = may && NodeMayLie(node, inside, backend, place); });
    return may;
  }

 private:
  bool NodeMayLie(PostDfsIndex node, const IndexSet& inside, const DeviceBackend& backend, std::optional<VirtualDevice>& place) const {
    if (function_.IsCopy(node)) return false;
    for (const size_t made : function_.made_at[node]) {
      const uint32_t tensor = function_.tensors[made].tensor;
      if (!places_.MayBe(tensor, *backend.device)) return false;
      const std::optional<Target> stated = plan_.flow().classes.Of(tensor).target;
      if (stated && !SameTarget(backend.target, *stated) && !Refines(backend.target, *stated)) return false;
      if (!CalledOp(function_.graph()[node].expr)) continue;
      const VirtualDevice here = places_.On(tensor, *backend.device);
      if (place && Join(*place, here).conflict) return false;
      place = here;
    }
    return std::all_of(function_.uses_at[node].begin(), function_.uses_at[node].end(), [&](const FunctionOnDevices::Use& use) {
      const FunctionOnDevices::Made& made = function_.tensors[use.tensor];
      if (!inside.Contains(made.node)) return true;
      const VirtualDevice to = use.place == TensorUse::kOnHost ? plan_.configuration().host() : places_.On(use.place, *backend.device);
      return !Join(places_.On(made.tensor, *backend.device), to).conflict;
    });
  }

  const FunctionOnDevices& function_;
  const TensorPlaces& places_;
  const DevicePlan& plan_;
};

class Builder {
 public:
  Builder(const FunctionOnDevices& function, const TensorPlaces& places, const DevicePlan& plan, const std::vector<DeviceBackend>& backends,
          const DevicePrices& prices, double penalty)
      : function_(function),
        places_(places),
        plan_(plan),
        backends_(backends),
        prices_(prices),
        penalty_(penalty),
        numbered_({plan.configuration().host()}),
        first_tensor_(function.graph().size()) {}

  Status Build() {
    const DataflowGraph& graph = function_.graph();
    problem_.node_count = graph.size();
    problem_.backend_count = backends_.size() + 1;
    // What waits for what, and behind it who reads which tensor.
    for (PostDfsIndex node = 0; node < graph.size(); ++node) problem_.tensors.push_back({node, graph[node].outputs.ToVector()});
    for (const FunctionOnDevices::Made& made : function_.tensors) problem_.tensors.push_back({made.node, {}});
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      for (const FunctionOnDevices::Use& use : function_.uses_at[node]) {
        std::vector<size_t>& consumers = problem_.tensors[first_tensor_ + use.tensor].consumers;
        if (consumers.empty() || consumers.back() != node) consumers.push_back(node);
      }
    }
    SetScale();
    for (size_t i = 0; i < function_.candidates.size(); ++i) AddKernels(i);
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (!function_.NeedsKernel(node)) AddHostNode(node);
    }
    constexpr size_t kMostPlaces = 16;
    if (numbered_.size() > kMostPlaces) {
      return Fail("tensors may be in " + std::to_string(numbered_.size()) + " places, expected at most " + std::to_string(kMostPlaces));
    }
    problem_.layout_count = numbered_.size();
    problem_.conversion = [this](size_t, size_t from, size_t to) { return CopyCost(numbered_[from], numbered_[to]); };
    return {};
  }

  [[nodiscard]] const SearchProblem& problem() const { return problem_; }
  [[nodiscard]] const std::vector<VirtualDevice>& places() const { return numbered_; }
  [[nodiscard]] Cost Impossible() const { return Cost::Seconds(impossible_); }

  struct Kernel {
    size_t candidate;
    size_t backend;
    double price;
  };
  [[nodiscard]] const std::vector<Kernel>& kernels() const { return kernels_; }
  [[nodiscard]] size_t first_tensor() const { return first_tensor_; }

 private:
  void SetScale() {
    double largest = prices_.DearestCopy() + penalty_;
    for (const CandidatePartition& candidate : function_.candidates) {
      for (const DeviceBackend& backend : backends_) largest = std::max(largest, PriceOf(candidate, backend).value_or(0) + penalty_);
    }
    const auto copies = static_cast<double>(function_.tensors.size() * plan_.configuration().devices().size());
    const double total = largest * (static_cast<double>(function_.graph().size()) + copies + 1);
    scale_ = total > kLargestTotal ? kLargestTotal / total : 1;
    impossible_ = total * scale_ + 1;
  }

  [[nodiscard]] std::optional<double> PriceOf(const CandidatePartition& candidate, const DeviceBackend& backend) const {
    if (backend.compiler != candidate.spec->name) return std::nullopt;
    return prices_.OfPartition(backend.compiler, *backend.device, candidate.sub_graph.operator_count());
  }

  [[nodiscard]] Cost CopyCost(const VirtualDevice& from, const VirtualDevice& to) const {
    if (!Join(from, to).conflict) return {};
    const std::optional<double> price = prices_.OfCopy(from, to);
    return Cost::Seconds(price ? *price * scale_ : impossible_);
  }

  size_t PlaceOf(uint32_t tensor, const ListedDevice& device) { return NumberOf(numbered_, places_.On(tensor, device)); }

  void AddKernels(size_t position) {
    const CandidatePartition& candidate = function_.candidates[position];
    const IndexSet& inside = candidate.sub_graph.inside();
    const Placement placement(function_, places_, plan_);
    // What breaks a condition that no rule may lift can be no function, so it has no price.
    if (!candidate.sub_graph.IsValid(function_.graph(), {.allow_taps = true})) return;
    for (size_t b = 0; b < backends_.size(); ++b) {
      const std::optional<double> price = PriceOf(candidate, backends_[b]);
      if (!price || !placement.MayLie(candidate.sub_graph, backends_[b])) continue;
      SearchCandidate searched{inside, b, {}, {}, {{Cost::Seconds((*price + penalty_) * scale_), {}, {}}}, true};
      inside.ForEach([&](PostDfsIndex node) { Connect(searched, searched.variants[0], node, *backends_[b].device, &inside); });
      problem_.candidates.push_back(std::move(searched));
      kernels_.push_back({position, b, *price});
    }
  }

  /// What a node reads and makes where it lies on `device`, as far as that is not fixed elsewhere.
  void Connect(SearchCandidate& candidate, SearchVariant& variant, PostDfsIndex node, const ListedDevice& device, const IndexSet* inside) {
    const bool first = &variant == &candidate.variants.front();
    const auto on = [&](uint32_t tensor) {
      const auto& possible = places_.DevicesFor(places_.ClassOf(tensor));
      return PlaceOf(tensor, possible.size() == 1 ? *possible.front() : device);
    };
    for (const FunctionOnDevices::Use& use : function_.uses_at[node]) {
      if (inside && inside->Contains(function_.tensors[use.tensor].node)) continue;
      if (first) candidate.inputs.push_back(first_tensor_ + use.tensor);
      variant.input_layouts.push_back(use.place == TensorUse::kOnHost ? 0 : on(use.place));
    }
    for (const size_t made : function_.made_at[node]) {
      if (first) candidate.outputs.push_back(first_tensor_ + made);
      variant.output_layouts.push_back(on(function_.tensors[made].tensor));
    }
  }

  /// What needs no kernel costs nothing, wherever it is; a copy costs what it copies.
  void AddHostNode(PostDfsIndex node) {
    std::vector<const ListedDevice*> devices = {&plan_.configuration().devices().front()};
    for (const size_t device_class : function_.ClassesAt(node, places_)) {
      const auto& possible = places_.DevicesFor(device_class);
      if (possible.size() > 1) devices = possible;
    }
    SearchCandidate candidate{IndexSet({node}), backends_.size(), {}, {}, {}, false};
    candidate.variants.reserve(devices.size());
    for (const ListedDevice* device : devices) {
      candidate.variants.emplace_back();
      SearchVariant& variant = candidate.variants.back();
      Connect(candidate, variant, node, *device, nullptr);
      for (size_t i = 0; function_.IsCopy(node) && i < variant.output_layouts.size(); ++i) {
        variant.cost += CopyCost(numbered_[variant.input_layouts[i]], numbered_[variant.output_layouts[i]]);
      }
    }
    problem_.candidates.push_back(std::move(candidate));
  }

  const FunctionOnDevices& function_;
  const TensorPlaces& places_;
  const DevicePlan& plan_;
  const std::vector<DeviceBackend>& backends_;
  const DevicePrices& prices_;
  double penalty_;
  std::vector<VirtualDevice> numbered_;  // place 0 is the host
  size_t first_tensor_;
  SearchProblem problem_;
  std::vector<Kernel> kernels_;
  double scale_ = 1;
  double impossible_ = 0;
};

std::string Uncovered(const FunctionOnDevices& function, const Builder& builder) {
  IndexSet covered;
  for (const SearchCandidate& candidate : builder.problem().candidates) covered |= candidate.inside;
  for (PostDfsIndex node = 0; node < function.graph().size(); ++node) {
    if (covered.Contains(node)) continue;
    const OpDef* op = CalledOp(function.graph()[node].expr);
    return "no valid candidate of any device's targets covers " + (op ? op->name : "an expression") + " (" +
           function.function().NameOf(node) + ") in @" + function.function().name();
  }
  return "the candidates allow no cover of @" + function.function().name() + " as a whole";
}

}  // namespace

TensorPlaces::TensorPlaces(const DevicePlan& plan, bool choose) : plan_(plan) {
  const TensorClasses& classes = plan.flow().classes;
  const DeviceConfiguration& configuration = plan.configuration();
  std::set<uint32_t> at_the_host;
  if (const Expr main = choose ? plan.module().Find("main") : nullptr) {
    for (const Expr& parameter : main->As<Function>()->parameters) {
      for (const TensorLeaf& leaf : plan.flow().Of(parameter.get())) at_the_host.insert(leaf.tensor);
    }
    for (const TensorLeaf& leaf : plan.flow().ResultOf(main.get())) at_the_host.insert(leaf.tensor);
  }
  devices_.resize(classes.size());
  for (uint32_t tensor = 0; tensor < classes.size(); ++tensor) devices_[ClassOf(tensor)] = configuration.Fitting({});
  for (uint32_t tensor = 0; tensor < classes.size(); ++tensor) {
    VirtualDevice known = classes.Of(tensor);
    if (at_the_host.contains(tensor) && !known.device_type) known = Default(known, configuration.host());
    std::erase_if(devices_[ClassOf(tensor)], [&](const ListedDevice* device) {
      return Join({known.device_type, known.virtual_device_id, std::nullopt, ""}, device->Place()).conflict ||
             (known.target && !device->Has(*known.target));
    });
  }
}

VirtualDevice TensorPlaces::On(uint32_t tensor, const ListedDevice& device) const {
  VirtualDevice place = device.Place();
  place.memory_scope = plan_.flow().classes.Of(tensor).memory_scope;
  return place;
}

bool TensorPlaces::MayBe(uint32_t tensor, const ListedDevice& device) const {
  const auto& possible = DevicesFor(ClassOf(tensor));
  return std::find(possible.begin(), possible.end(), &device) != possible.end();
}

FunctionOnDevices::FunctionOnDevices(const DevicePlan& plan, const PlannedProgram& program, const NamedFunction& function,
                                     const PlanNames& names)
    : made_at(function.graph().size()), uses_at(function.graph().size()), plan_(plan), function_(function) {
  const TensorFlow& flow = plan.flow();
  const auto node_of = [&](const Expr& before) {
    const auto written = program.written.find(before.get());
    return written == program.written.end() ? DataflowGraph::kNone : graph().Find(written->second);
  };
  std::vector<size_t> first(flow.makers.size());
  for (uint32_t maker = 0; maker < flow.makers.size(); ++maker) {
    const TensorMaker& made = flow.makers[maker];
    if (made.is_constant || plan.IsWithinOnePlace(made.expr.get()) || names.Function(made.function).name() != function.name()) continue;
    const PostDfsIndex node = node_of(made.expr);
    if (node == DataflowGraph::kNone) continue;
    first[maker] = tensors.size();
    const std::span<const TensorLeaf> leaves = flow.Of(made.expr.get());
    for (uint32_t field = 0; field < leaves.size(); ++field) {
      made_at[node].push_back(tensors.size());
      tensors.push_back({maker, field, leaves[field].tensor, node});
    }
  }
  for (const TensorUse& use : flow.uses) {
    if (plan.IsWithinOnePlace(use.user.get()) || names.Function(use.function).name() != function.name()) continue;
    const TensorLeaf made = plan.MakerOf(use.maker, use.field);
    const PostDfsIndex user = node_of(use.user);
    if (flow.makers[made.maker].is_constant || user == DataflowGraph::kNone) continue;
    uses_at[user].push_back({first[made.maker] + made.field, use.place});
  }
}

bool FunctionOnDevices::NeedsKernel(PostDfsIndex node) const {
  const OpDef* op = CalledOp(graph()[node].expr);
  return op && !op->makes_shape_value && !op->is_identity;
}

std::vector<size_t> FunctionOnDevices::ClassesAt(PostDfsIndex node, const TensorPlaces& places) const {
  std::vector<size_t> classes;
  const auto add = [&](uint32_t tensor) {
    const size_t device_class = places.ClassOf(tensor);
    if (std::find(classes.begin(), classes.end(), device_class) == classes.end()) classes.push_back(device_class);
  };
  for (const size_t made : made_at[node]) add(tensors[made].tensor);
  for (const Use& use : uses_at[node]) {
    if (use.place != TensorUse::kOnHost) add(use.place);
  }
  return classes;
}

std::vector<size_t> CountCandidates(const FunctionOnDevices& function, const TensorPlaces& places, const DevicePlan& plan,
                                    const std::vector<DeviceBackend>& backends) {
  const Placement placement(function, places, plan);
  std::vector<size_t> counts(backends.size(), 0);
  for (const CandidatePartition& candidate : function.candidates) {
    for (size_t b = 0; b < backends.size(); ++b) {
      if (backends[b].compiler == candidate.spec->name && placement.MayLie(candidate.sub_graph, backends[b])) ++counts[b];
    }
  }
  return counts;
}

Result<PlacedCover> CheapestPlacedCover(const FunctionOnDevices& function, const TensorPlaces& places, const DevicePlan& plan,
                                        const std::vector<DeviceBackend>& backends, const DevicePrices& prices, double penalty,
                                        const PlanNames& names) {
  Builder builder(function, places, plan, backends, prices, penalty);
  COLLAGE_TRY_STATUS(builder.Build());
  const SearchProblem& problem = builder.problem();
  const Result<SearchResult> found = SearchDijkstra(problem);
  if (!found) return Fail(Uncovered(function, builder));
  if (found->cost >= builder.Impossible()) {
    return Fail("no cover of @" + function.function().name() + " does without a copy between devices that have no price");
  }
  PlacedCover cover;
  std::vector<size_t> produced(problem.tensors.size(), 0);
  std::vector<std::set<size_t>> wanted(problem.tensors.size());
  const auto add_copy = [&](const std::string& of, size_t from, size_t to) {
    const VirtualDevice& source = builder.places()[from];
    const VirtualDevice& target = builder.places()[to];
    if (!Join(source, target).conflict) return;
    cover.copies.push_back({of, source, target, prices.OfCopy(source, target).value_or(0)});
    cover.price += cover.copies.back().price;
  };
  for (const auto& [candidate, variant] : found->choices) {
    const SearchCandidate& chosen = problem.candidates[candidate];
    const SearchVariant& as = chosen.variants[variant];
    for (size_t i = 0; i < chosen.inputs.size(); ++i) wanted[chosen.inputs[i]].insert(as.input_layouts[i]);
    for (size_t i = 0; i < chosen.outputs.size(); ++i) produced[chosen.outputs[i]] = as.output_layouts[i];
    const PostDfsIndex node = chosen.inside.First();
    if (!chosen.is_partition && function.IsCopy(node)) {
      for (size_t i = 0; i < as.output_layouts.size(); ++i)
        add_copy(function.function().NameOf(node), as.input_layouts[i], as.output_layouts[i]);
    }
    if (!chosen.is_partition) continue;
    const Builder::Kernel& kernel = builder.kernels()[candidate];
    const VirtualDevice place = chosen.outputs.empty() ? backends[kernel.backend].device->Place() : builder.places()[as.output_layouts[0]];
    cover.partitions.push_back({function.candidates[kernel.candidate].sub_graph, kernel.backend, place, kernel.price});
    cover.price += kernel.price + penalty;
  }
  for (size_t i = 0; i < function.tensors.size(); ++i) {
    const FunctionOnDevices::Made& made = function.tensors[i];
    const size_t tensor = builder.first_tensor() + i;
    for (const size_t to : wanted[tensor]) add_copy(names.OfTensor(made.maker, made.field), produced[tensor], to);
  }
  return cover;
}

}  // namespace collage
