#include <algorithm>

#include "collage/op/table.h"
#include "collage/partition/cover.h"
#include "collage/query/device_search_problem.h"
#include "collage/query/prices.h"
#include "collage/query/queries.h"
#include "collage/query/search_problem.h"
#include "collage/query/sub_graph_json.h"

namespace collage {
namespace {

struct Question {
  std::vector<SpecPointer> specs;  ///< one a compiler
  std::vector<DeviceBackend> backends;
  DevicePrices prices;
  double penalty = 0;
  bool choose = false;
};

Result<Question> Read(const JsonReader& query, const DeviceConfiguration& configuration) {
  Question question;
  const JsonReader devices = COLLAGE_TRY(query.At("devices"));
  question.choose = COLLAGE_TRY(devices.BoolOr("choose", false));
  std::optional<JsonReader> copies;
  if (devices.Has("copies")) copies = COLLAGE_TRY(devices.At("copies"));
  question.prices = COLLAGE_TRY(DevicePrices::Read(COLLAGE_TRY(query.At("prices")), copies, configuration));
  question.penalty = COLLAGE_TRY(query.NumberOr("transition_penalty", 0));
  if (question.penalty < 0) return COLLAGE_TRY(query.At("transition_penalty")).Expected("a number that is not negative");
  std::optional<JsonReader> rules;
  if (query.Has("rules")) rules = COLLAGE_TRY(query.At("rules"));
  const bool add_maximal = COLLAGE_TRY(query.BoolOr("maximal_regions", false));
  for (const ListedDevice& device : configuration.devices()) {
    for (const Target& target : device.targets) {
      const std::string compiler = target.CompilerName();
      const auto known =
          std::find_if(question.specs.begin(), question.specs.end(), [&](const SpecPointer& spec) { return spec->name == compiler; });
      SpecPointer spec = known == question.specs.end() ? nullptr : *known;
      if (!spec) question.specs.push_back(spec = COLLAGE_TRY(SpecFor(compiler, query, rules, add_maximal)));
      // A spec of its own for each device: what lies on different ones is never joined.
      question.backends.push_back({&device, target, compiler, std::make_shared<const PartitionSpec>(*spec)});
    }
  }
  return question;
}

class Search {
 public:
  Search(const QueryProgram& program, const DevicePlan& plan, const Question& question)
      : plan_(plan), question_(question), names_(program, plan), places_(plan, question.choose) {}

  Status SetUp(const QueryProgram& program) {
    stripped_ = COLLAGE_TRY(RemoveStatements(plan_, Operators()));
    named_ = NamedAfterPlan(program, stripped_, names_, plan_);
    for (const auto& function : named_) {
      functions_.push_back(std::make_unique<FunctionOnDevices>(plan_, stripped_, *function, names_));
      functions_.back()->candidates = AllCandidates(function->graph(), question_.specs);
    }
    return {};
  }

  [[nodiscard]] Json Counts() const {
    Json counts = Json::object();
    for (const SpecPointer& spec : question_.specs) counts[spec->name] = 0;
    for (const auto& function : functions_) {
      const std::vector<size_t> found = CountCandidates(*function, places_, plan_, question_.backends);
      for (size_t i = 0; i < found.size(); ++i) {
        Json& count = counts[question_.backends[i].compiler];
        count = count.get<size_t>() + found[i];
      }
    }
    return counts;
  }

  /// A class that several nodes share (what calls of one function take, say) is tried on each device; all others are the search's.
  Result<std::vector<PlacedCover>> Run() {
    const std::vector<size_t> shared = SharedClasses();
    std::vector<std::vector<const ListedDevice*>> choices;
    double count = 1;
    for (const size_t device_class : shared) {
      choices.push_back(places_.DevicesFor(device_class));
      count *= static_cast<double>(choices.back().size());
    }
    constexpr double kMostTrials = 4096;
    if (count > kMostTrials) return Fail("the functions' parameters and results leave more choices of devices than can be tried");
    std::optional<std::vector<PlacedCover>> best;
    Result<std::vector<PlacedCover>> last = Fail("there is no device to choose");
    std::vector<size_t> at(shared.size(), 0);
    for (auto trial = static_cast<size_t>(count); trial > 0; --trial) {
      for (size_t i = 0; i < shared.size(); ++i) places_.Fix(shared[i], {choices[i][at[i]]});
      last = CoverAll();
      if (last && (!best || PriceOf(*last) < PriceOf(*best))) best = *last;
      for (size_t i = 0; i < shared.size() && ++at[i] == choices[i].size(); ++i) at[i] = 0;
    }
    if (best) return *std::move(best);
    return last;
  }

  static double PriceOf(const std::vector<PlacedCover>& covers) {
    double price = 0;
    for (const PlacedCover& cover : covers) price += cover.price;
    return price;
  }

  [[nodiscard]] Json ToJson(const std::vector<PlacedCover>& covers) const {
    Json partitions = Json::array();
    Json copies = Json::array();
    Json joined = Json::array();
    Json left_native = Json::array();
    for (size_t i = 0; i < covers.size(); ++i) {
      for (const PlacedCandidate& one : covers[i].partitions) {
        partitions.push_back(Entry(*named_[i], one.backend, one.place, one.sub_graph, one.price));
      }
      for (const PricedCopy& copy : covers[i].copies) {
        copies.push_back({{"of", copy.of}, {"from", copy.from.ToString()}, {"to", copy.to.ToString()}, {"price", PriceToJson(copy.price)}});
      }
      Join(*functions_[i], covers[i], joined, left_native);
    }
    return {{"count", partitions.size()},
            {"partitions", std::move(partitions)},
            {"copies", std::move(copies)},
            {"joined", std::move(joined)},
            {"left_native", std::move(left_native)}};
  }

 private:
  Result<std::vector<PlacedCover>> CoverAll() const {
    std::vector<PlacedCover> covers;
    for (const auto& function : functions_) {
      covers.push_back(
          COLLAGE_TRY(CheapestPlacedCover(*function, places_, plan_, question_.backends, question_.prices, question_.penalty, names_)));
    }
    return covers;
  }

  [[nodiscard]] std::vector<size_t> SharedClasses() const {
    std::unordered_map<size_t, size_t> nodes;
    std::vector<size_t> order;
    for (const auto& function : functions_) {
      for (PostDfsIndex node = 0; node < function->graph().size(); ++node) {
        std::vector<size_t> open;
        for (const size_t device_class : function->ClassesAt(node, places_)) {
          if (places_.DevicesFor(device_class).size() > 1) open.push_back(device_class);
        }
        for (const size_t device_class : open) {
          if (nodes[device_class] == 0) order.push_back(device_class);
          // A node that would have to choose for two classes at once leaves both to the trials.
          nodes[device_class] += open.size() > 1 ? 2 : 1;
        }
      }
    }
    std::erase_if(order, [&](size_t device_class) { return nodes[device_class] < 2; });
    return order;
  }

  [[nodiscard]] Json Entry(const NamedFunction& function, size_t backend, const VirtualDevice& place, const SubGraph& sub_graph,
                           double price) const {
    return function.Tagged({{"backend", question_.backends[backend].compiler},
                            {"device", place.ToString()},
                            {"members", function.NamesOf(sub_graph.inside())},
                            {"price", PriceToJson(price)}});
  }

  [[nodiscard]] size_t BackendOfSpec(const SpecPointer& spec) const {
    size_t at = 0;
    while (question_.backends[at].spec != spec) ++at;
    return at;
  }

  /// Phase 4 of one function: external partitions of one target of one device, joined where that is not slower.
  void Join(const FunctionOnDevices& function, const PlacedCover& placed, Json& joined, Json& left_native) const {
    const DataflowGraph& graph = function.graph();
    Cover cover;
    std::map<PostDfsIndex, VirtualDevice> place_of;
    for (const PlacedCandidate& one : placed.partitions) {
      const DeviceBackend& backend = question_.backends[one.backend];
      if (backend.compiler == "native") continue;
      SubGraph sub_graph = one.sub_graph;
      if (BackendOf(sub_graph) != backend.compiler) {
        sub_graph = sub_graph.WithAttributes(graph, {{"Primitive", AttributeValue(1)}, {"Compiler", backend.compiler}});
      }
      place_of.emplace(sub_graph.inside().First(), one.place);
      cover.push_back({{std::move(sub_graph), backend.spec}, {}});
    }
    const auto price = [&](const CandidatePartition& partition) {
      const DeviceBackend& backend = question_.backends[BackendOfSpec(partition.spec)];
      return question_.prices.OfPartition(backend.compiler, *backend.device, partition.sub_graph.operator_count()).value_or(0) +
             question_.penalty;
    };
    constexpr double kRounding = 1e-9;  // sums of prices are taken in different orders
    cover = JoinAdjacent(
        graph, std::move(cover), [&](const CandidatePartition& both, const CandidatePartition& a, const CandidatePartition& b) {
          const double apart = price(a) + price(b);
          return a.spec == b.spec && both.sub_graph.IsValid(graph, {.allow_taps = true}) && price(both) <= apart + kRounding * apart &&
                 place_of.at(a.sub_graph.inside().First()) == place_of.at(b.sub_graph.inside().First());
        });
    IndexSet external;
    for (const ChosenPartition& partition : cover) {
      const SubGraph& sub_graph = partition.candidate.sub_graph;
      external |= sub_graph.inside();
      joined.push_back(Entry(function.function(), BackendOfSpec(partition.candidate.spec), place_of.at(sub_graph.inside().First()),
                             sub_graph, price(partition.candidate) - question_.penalty));
    }
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      const OpDef* op = CalledOp(graph[node].expr);
      if (!op || op->is_identity || external.Contains(node) || function.function().NameOf(node).empty()) continue;
      left_native.push_back(function.function().NameOf(node));
    }
  }

  const DevicePlan& plan_;
  const Question& question_;
  PlanNames names_;
  TensorPlaces places_;
  PlannedProgram stripped_;
  std::vector<std::unique_ptr<NamedFunction>> named_;
  std::vector<std::unique_ptr<FunctionOnDevices>> functions_;
};

}  // namespace

Result<Json> AnswerDeviceSearch(const QueryProgram& program, const JsonReader& query) {
  const JsonReader devices = COLLAGE_TRY(query.At("devices"));
  if (query.Has("targets"))
    return COLLAGE_TRY(query.At("targets")).Wrong("stands beside \"devices\", expected the targets in \"devices\" alone");
  const DeviceConfiguration configuration = COLLAGE_TRY(DevicesFrom(devices));
  const Question question = COLLAGE_TRY(Read(query, configuration));
  const DevicePlan plan = COLLAGE_TRY(question.choose ? DevicePlan::CreateOpen(program.module(), configuration)
                                                      : DevicePlan::Create(program.module(), configuration));
  const PlanNames names(program, plan);
  if (!plan.errors().empty()) return ErrorsToJson(plan, names);
  Search search(program, plan, question);
  COLLAGE_TRY_STATUS(search.SetUp(program));
  Json counts = search.Counts();
  const std::vector<PlacedCover> covers = COLLAGE_TRY(search.Run());
  return Json{{"candidate_counts", std::move(counts)}, {"price", PriceToJson(Search::PriceOf(covers))}, {"optimum", search.ToJson(covers)}};
}

}  // namespace collage
