#include "collage/onnx/row_regions.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "collage/ir/visit.h"
#include "collage/onnx/assumed_extents.h"

namespace collage::onnx_io {
namespace {

using Kind = AssumedValue::Kind;

// Operations for one row. The reference kernels do a few in a nanosecond, so that with fewer a block of rows takes them less than
// starting a program takes, some microseconds.
constexpr double kLeastWork = 1000;

/// Nodes by number, of the graph as it came.
struct Region {
  size_t extent;
  std::vector<size_t> nodes;       // ascending
  std::vector<size_t> arithmetic;  // ascending; what computes the constants that they read, of extents: a program has these anyway
  double work = 0;
};

class Finder {
 public:
  Finder(const OnnxGraph& graph, const std::map<std::string, TensorType>& inputs, const std::vector<int64_t>& row_counts)
      : graph_(graph), row_counts_(row_counts), extents_(graph, inputs) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::string& name : graph.nodes[i].outputs) {
        if (!name.empty()) giver_.emplace(name, i);
      }
    }
  }

  RowRegions Run() {
    for (size_t extent = 0; extent < extents_.extents().size(); ++extent) AddRegionsOf(extent);
    while (true) {
      RowRegions found = Arrange();
      const size_t before = regions_.size();
      if (found.graph.nodes.empty()) {
        DropLeast();
        continue;
      }
      for (size_t i = regions_.size(); i-- > 0;) {
        std::optional<RegionFunctions> functions = FunctionsOf(regions_[i], found.regions[i]);
        if (functions)
          found.functions[i] = std::move(*functions);
        else
          regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (regions_.size() == before) return InOrder(std::move(found));
    }
  }

 private:
  /// With the regions as their nodes stand.
  static RowRegions InOrder(RowRegions found) {
    std::vector<size_t> order(found.regions.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return found.regions[a].begin < found.regions[b].begin; });
    RowRegions sorted{std::move(found.graph), {}, {}};
    for (const size_t i : order) {
      sorted.regions.push_back(std::move(found.regions[i]));
      sorted.functions.push_back(std::move(found.functions[i]));
    }
    return sorted;
  }

  /// What computes a constant of extents, and the names of values, not constant, that this reads.
  struct Arithmetic {
    std::set<size_t> nodes;
    std::set<std::string> reads;
  };

  void AddArithmetic(const std::string& name, Arithmetic& all) const {
    std::vector<std::string> pending{name};
    while (!pending.empty()) {
      const std::string next = std::move(pending.back());
      pending.pop_back();
      const AssumedValue* value = extents_.Find(next);
      const bool is_computed = value != nullptr && value->IsConstant() && value->node;
      if (!is_computed) {
        if (value == nullptr || !value->IsConstant()) all.reads.insert(next);
        continue;
      }
      if (!all.nodes.insert(*value->node).second) continue;
      for (const std::string& input : NamesRead(graph_.nodes[*value->node])) {
        if (!input.empty()) pending.push_back(input);
      }
    }
  }

  [[nodiscard]] Arithmetic ArithmeticOf(size_t node) const {
    Arithmetic all;
    for (const std::string& name : graph_.nodes[node].inputs) {
      if (!name.empty()) AddArithmetic(name, all);
    }
    return all;
  }

  /// Nodes of one extent in groups that no path leaves and enters again: each path counts how often it has come back.
  void AddRegionsOf(size_t extent) {
    const size_t count = graph_.nodes.size();
    const auto is_inside = [&](size_t node) { return extents_.RowsOf(node) == extent; };
    std::vector<int> depth(count, -1);  // of the last node inside on the way here
    std::vector<size_t> group(count);
    std::iota(group.begin(), group.end(), size_t{0});
    const auto find = [&](size_t node) {
      while (group[node] != node) node = group[node] = group[group[node]];
      return node;
    };
    for (size_t i = 0; i < count; ++i) {
      const bool inside = is_inside(i);
      std::vector<size_t> before;
      const auto reads = [&](const std::string& name) {
        if (const auto found = giver_.find(name); found != giver_.end() && found->second < i) before.push_back(found->second);
      };
      if (inside) {
        for (const std::string& name : ArithmeticOf(i).reads) reads(name);
      } else {
        for (const std::string& name : NamesRead(graph_.nodes[i])) reads(name);
      }
      depth[i] = inside ? 0 : -1;
      for (const size_t other : before)
        depth[i] = std::max(depth[i], depth[other] + (inside && !is_inside(other) && depth[other] >= 0 ? 1 : 0));
      for (const size_t other : before) {
        if (inside && is_inside(other) && depth[other] == depth[i]) group[find(i)] = find(other);
      }
    }
    std::map<size_t, Region> regions;
    for (size_t i = 0; i < count; ++i) {
      if (!is_inside(i)) continue;
      Region& region = regions.try_emplace(find(i), Region{extent, {}, {}}).first->second;
      region.nodes.push_back(i);
      region.work += extents_.WorkOf(i);
    }
    for (auto& [root, region] : regions) {
      if (region.work < kLeastWork) continue;
      std::set<size_t> arithmetic;
      for (const size_t node : region.nodes) arithmetic.merge(ArithmeticOf(node).nodes);
      region.arithmetic.assign(arithmetic.begin(), arithmetic.end());
      regions_.push_back(std::move(region));
    }
  }

  void DropLeast() {
    regions_.erase(std::min_element(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) { return a.work < b.work; }));
  }

  /// A name that the graph does not have.
  std::string FreshName(const std::string& name, size_t region) {
    std::string fresh = name + "/rows_" + std::to_string(region);
    while (giver_.contains(fresh) || extents_.Find(fresh) != nullptr) fresh += "_";
    return fresh;
  }

  /// The nodes of a region. Arithmetic is repeated under names of its own, since what is around may want it, too.
  std::vector<OnnxNode> NodesOf(const Region& region, size_t number) {
    std::vector<size_t> order;
    std::merge(region.nodes.begin(), region.nodes.end(), region.arithmetic.begin(), region.arithmetic.end(), std::back_inserter(order));
    std::unordered_map<std::string, std::string> renamed;
    std::vector<OnnxNode> nodes;
    for (const size_t i : order) {
      OnnxNode node = graph_.nodes[i];
      for (std::string& name : node.inputs) {
        if (const auto found = renamed.find(name); found != renamed.end()) name = found->second;
      }
      if (std::binary_search(region.arithmetic.begin(), region.arithmetic.end(), i)) {
        for (std::string& name : node.outputs) {
          if (!name.empty()) name = renamed[name] = FreshName(name, number);
        }
      }
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  /// A part of the graph that runs at once: a region, or a node.
  struct Unit {
    std::optional<size_t> region;
    std::vector<OnnxNode> nodes;
  };

  std::vector<Unit> Units() {
    std::vector<bool> is_taken(graph_.nodes.size(), false);
    std::vector<bool> is_arithmetic(graph_.nodes.size(), false);
    std::map<size_t, Unit> units;  // by the last node, so that what they read mostly stands before
    for (size_t i = 0; i < regions_.size(); ++i) {
      for (const size_t node : regions_[i].nodes) is_taken[node] = true;
      for (const size_t node : regions_[i].arithmetic) is_arithmetic[node] = true;
      units[regions_[i].nodes.back()] = {i, NodesOf(regions_[i], i)};
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_taken[i]) units[i] = {std::nullopt, {graph_.nodes[i]}};
    }
    // Arithmetic that only regions wanted.
    std::unordered_set<std::string> wanted(graph_.outputs.begin(), graph_.outputs.end());
    const auto want = [&](const Unit& unit) {
      for (const OnnxNode& node : unit.nodes) {
        for (std::string& name : NamesRead(node)) wanted.insert(std::move(name));
      }
    };
    for (const auto& [last, unit] : units) {
      if (unit.region || !is_arithmetic[last]) want(unit);
    }
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      if (!is_arithmetic[i] || is_taken[i]) continue;
      const std::vector<std::string>& outputs = graph_.nodes[i].outputs;
      if (std::any_of(outputs.begin(), outputs.end(), [&](const std::string& name) { return wanted.contains(name); }))
        want(units[i]);
      else
        units.erase(i);
    }
    std::vector<Unit> list;
    for (auto& [last, unit] : units) list.push_back(std::move(unit));
    return list;
  }

  /// Without nodes where regions wait for each other.
  RowRegions Arrange() {
    std::vector<Unit> units = Units();
    std::unordered_map<std::string, size_t> giver;
    for (size_t i = 0; i < units.size(); ++i) {
      for (const OnnxNode& node : units[i].nodes) {
        for (const std::string& name : node.outputs) giver.emplace(name, i);
      }
    }
    std::vector<std::set<size_t>> waiting(units.size());
    std::vector<std::set<size_t>> after(units.size());
    std::vector<std::set<std::string>> wanted(regions_.size());  // of what a region gives
    const auto want = [&](const std::string& name) {
      const auto found = giver.find(name);
      if (found != giver.end() && units[found->second].region) wanted[*units[found->second].region].insert(name);
    };
    for (size_t i = 0; i < units.size(); ++i) {
      for (const OnnxNode& node : units[i].nodes) {
        for (const std::string& name : NamesRead(node)) {
          const auto found = giver.find(name);
          if (found == giver.end() || found->second == i) continue;
          waiting[i].insert(found->second);
          after[found->second].insert(i);
          want(name);
        }
      }
    }
    for (const std::string& name : graph_.outputs) want(name);
    RowRegions result;
    result.graph = graph_;
    result.graph.nodes.clear();
    result.regions.resize(regions_.size());
    result.functions.resize(regions_.size());
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < units.size(); ++i) {
      if (waiting[i].empty()) ready.push(i);
    }
    size_t done = 0;
    for (; !ready.empty(); ++done) {
      const size_t next = ready.top();
      ready.pop();
      Unit& unit = units[next];
      const size_t begin = result.graph.nodes.size();
      for (OnnxNode& node : unit.nodes) result.graph.nodes.push_back(std::move(node));
      if (unit.region) {
        Remainder::Region& region = result.regions[*unit.region];
        region.begin = begin;
        region.end = result.graph.nodes.size();
        region.outputs.assign(wanted[*unit.region].begin(), wanted[*unit.region].end());
      }
      for (const size_t other : after[next]) {
        waiting[other].erase(next);
        if (waiting[other].empty()) ready.push(other);
      }
    }
    if (done < units.size()) result.graph.nodes.clear();
    return result;
  }

  /// The type of a value where the region has so many rows; other extents that are not known are none of it.
  [[nodiscard]] TensorType TypeFor(const AssumedValue& value, const Region& region, int64_t rows) const {
    TensorType type = value.first;
    for (size_t i = 0; i < type.shape.size(); ++i) {
      if (std::pair(value.first.shape[i], value.second.shape[i]) == extents_.extents()[region.extent]) type.shape[i] = rows;
    }
    return type;
  }

  struct ReadRegion {
    Expr function;
    std::vector<std::string> inputs;
    std::vector<bool> has_rows;
  };

  /// The region read with so many rows. Nothing where that is no program whose rows are independent.
  std::optional<ReadRegion> Read(const Region& region, const std::vector<std::string>& outputs, int64_t rows) const {
    ModelReading model;
    GraphReader reader(graph_, model, nullptr);
    if (!reader.DefineInitializers()) return std::nullopt;
    std::vector<size_t> order;
    std::merge(region.nodes.begin(), region.nodes.end(), region.arithmetic.begin(), region.arithmetic.end(), std::back_inserter(order));
    std::unordered_map<const ExprNode*, std::pair<std::string, bool>> variables;
    for (const size_t node : order) {
      for (const std::string& name : graph_.nodes[node].inputs) {
        const AssumedValue* value = extents_.Find(name);
        if (name.empty() || value == nullptr || reader.Find(name) != nullptr) continue;
        if (value->node && std::binary_search(order.begin(), order.end(), *value->node)) continue;
        if (value->kind == Kind::kUnknown) return std::nullopt;
        const Expr variable = MakeVar(name, TypeFor(*value, region, rows));
        variables[variable.get()] = {name, value->kind == Kind::kRows && value->extent == region.extent};
        if (!reader.Define(name, variable)) return std::nullopt;
      }
      if (!reader.ReadNode(node)) return std::nullopt;
    }
    std::vector<Expr> results;
    for (const std::string& name : outputs) {
      const Expr value = reader.Find(name);
      const AssumedValue* assumed = extents_.Find(name);
      if (value == nullptr || !(value->type() == Type(TypeFor(*assumed, region, rows)))) return std::nullopt;
      results.push_back(value);
    }
    const Expr body = results.size() == 1 ? results[0] : MakeTuple(std::move(results));
    ReadRegion read;
    std::vector<Expr> parameters;
    std::vector<RowUse> uses;
    PostOrder(body, [&](const Expr& expr) {
      const auto found = variables.find(expr.get());
      if (found == variables.end()) return;
      parameters.push_back(expr);
      read.inputs.push_back(found->second.first);
      read.has_rows.push_back(found->second.second);
      uses.push_back(found->second.second ? RowUse::kRows : RowUse::kWhole);
    });
    Result<Expr> function = MakeFunction(std::move(parameters), body);
    if (!function || RowUseOfResult(*function, uses, rows) != RowUse::kRows) return std::nullopt;
    read.function = std::move(*function);
    return read;
  }

  std::optional<RegionFunctions> FunctionsOf(const Region& region, Remainder::Region& result) const {
    if (result.outputs.empty()) return std::nullopt;
    RegionFunctions functions{region.work, {}};
    for (const int64_t rows : row_counts_) {
      std::optional<ReadRegion> read = Read(region, result.outputs, rows);
      if (!read) return std::nullopt;
      if (functions.functions.empty()) {
        result.inputs = read->inputs;
        result.has_rows = read->has_rows;
      } else if (result.inputs != read->inputs) {
        return std::nullopt;
      }
      functions.functions.emplace_back(rows, std::move(read->function));
    }
    return functions;
  }

  const OnnxGraph& graph_;
  const std::vector<int64_t>& row_counts_;
  AssumedExtents extents_;
  std::unordered_map<std::string, size_t> giver_;
  std::vector<Region> regions_;
};

}  // namespace

RowRegions FindRowRegions(const OnnxGraph& graph, const std::map<std::string, TensorType>& inputs, const std::vector<int64_t>& row_counts) {
  return Finder(graph, inputs, row_counts).Run();
}

}  // namespace collage::onnx_io
