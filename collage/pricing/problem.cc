#include "collage/pricing/problem.h"

#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "collage/dataflow/evaluation_order.h"
#include "collage/support/check.h"

namespace collage {
namespace {

class Builder {
 public:
  Builder(const DataflowGraph& graph, const Expr& body, std::span<const Form> forms) : graph_(graph), body_(body), forms_(forms) {}

  Result<FunctionProblem> Build(const std::vector<PricedCandidate>& candidates, size_t backend_count, ConversionPrice conversion) {
    COLLAGE_TRY_STATUS(AddNodes());
    LayoutOf(0, Layout());
    for (const PricedCandidate& candidate : candidates) result_.problem.candidates.push_back(ToSearchCandidate(candidate));
    result_.problem.layout_count = result_.layouts.size();
    result_.problem.backend_count = backend_count;
    SetConversion(std::move(conversion));
    return std::move(result_);
  }

 private:
  Status AddNodes() {
    // The nodes of a form stand right before what they are in place of, so that few covers are open.
    std::map<PostDfsIndex, std::vector<const FormRoot*>> before;
    std::unordered_map<PostDfsIndex, std::vector<PostDfsIndex>> also_before;  // what a form's nodes read, with its earlier roots
    IndexSet added;
    for (const Form& form : forms_) {
      for (const FormRoot& root : form.roots) {
        before[root.gate].push_back(&root);
        added |= root.added;
        std::vector<PostDfsIndex>& others = also_before[root.gate];
        if (&root != &form.roots.front()) others.push_back((&root - 1)->gate);
        root.added.ForEach([&](PostDfsIndex node) {
          for (const PostDfsIndex input : graph_[node].inputs) {
            if (!root.added.Contains(input)) others.push_back(input);
          }
        });
      }
      for (const auto& [given, wanted] : form.tensors) same_.emplace(given, wanted);
    }
    for (const PostDfsIndex index : EvaluationOrder(graph_, graph_.IndexOf(body_), also_before)) {
      if (!CalledOp(graph_[index].expr) || added.Contains(index)) continue;
      if (graph_[index].block != 0) return Fail("operators inside of an if or of a function literal cannot be placed yet");
      if (const auto roots = before.find(index); roots != before.end()) {
        for (const FormRoot* root : roots->second) root->added.ForEach([&](PostDfsIndex node) { AddNode(node); });
      }
      AddNode(index);
    }
    result_.problem.node_count = result_.nodes.size();
    for (size_t node = 0; node < result_.nodes.size(); ++node) {
      for (const Expr& argument : graph_[result_.nodes[node]].expr->As<Call>()->args) {
        if (argument->As<Constant>()) continue;
        for (const TensorSource& source : ResolveTensors(graph_, graph_.IndexOf(argument))) AddUse(source, node);
      }
    }
    for (const TensorSource& source : ResolveTensors(graph_, graph_.IndexOf(body_))) {
      if (graph_[source.node].expr->As<Constant>()) continue;
      result_.problem.tensors[TensorOf(source)].is_result = true;
    }
    for (const Form& form : forms_) {
      const FormRoot& first = form.roots.front();
      Alternative alternative{{}, node_of_.at(first.node)};
      for (const FormRoot& root : form.roots) {
        replaced_by_.emplace(node_of_.at(root.node), InSearch(root.covered));
        alternative.added |= InSearch(root.added);
      }
      by_gate_[node_of_.at(first.gate)].push_back(std::move(alternative));
    }
    return {};
  }

  void AddNode(PostDfsIndex node) {
    node_of_.emplace(node, result_.nodes.size());
    result_.nodes.push_back(node);
  }

  [[nodiscard]] IndexSet InSearch(const IndexSet& nodes) const {
    IndexSet numbered;
    nodes.ForEach([&](PostDfsIndex node) { numbered.Add(node_of_.at(node)); });
    return numbered;
  }

  /// The calls of a form in search nodes.
  struct Alternative {
    IndexSet added;
    size_t root;  ///< the first: the one that stands for the gate
  };

  /// What a candidate decides against as well: see BuildProblem.
  [[nodiscard]] IndexSet WithDeclined(const IndexSet& own) const {
    if (forms_.empty()) return own;
    IndexSet computed_or_replaced = own;
    own.ForEach([&](size_t node) {
      if (const auto replaced = replaced_by_.find(node); replaced != replaced_by_.end()) computed_or_replaced |= replaced->second;
    });
    IndexSet inside = computed_or_replaced;
    computed_or_replaced.ForEach([&](size_t node) {
      const auto forms = by_gate_.find(node);
      for (size_t i = 0; forms != by_gate_.end() && i < forms->second.size(); ++i) {
        const Alternative& alternative = forms->second[i];
        if (!own.Contains(alternative.root)) inside |= alternative.added;
      }
    });
    return inside;
  }

  void AddUse(const TensorSource& source, size_t node) {
    if (graph_[source.node].expr->As<Constant>()) return;
    SearchTensor& tensor = result_.problem.tensors[TensorOf(source)];
    COLLAGE_CHECK(tensor.producer == SearchTensor::kOutside || tensor.producer < node, "a tensor is used before it is made");
    std::vector<size_t>& consumers = tensor.consumers;
    if (consumers.empty() || consumers.back() != node) consumers.push_back(node);
  }

  size_t TensorOf(TensorSource source) {
    // What a form gives is what it replaces.
    if (const auto replaced = same_.find(source); replaced != same_.end()) source = replaced->second;
    const auto [at, is_new] = tensor_of_.emplace(source, result_.tensors.size());
    if (is_new) {
      result_.tensors.push_back(source);
      result_.tensor_types.push_back(FlattenTensors(graph_[source.node].expr->type()).at(source.field));
      const auto producer = node_of_.find(source.node);
      result_.problem.tensors.push_back({producer == node_of_.end() ? SearchTensor::kOutside : producer->second, {}, false});
    }
    return at->second;
  }

  size_t LayoutOf(size_t device, const Layout& layout) {
    const auto [at, is_new] = layouts_.emplace(std::pair(device, layout), result_.layouts.size());
    if (is_new) {
      result_.layouts.push_back(layout);
      result_.devices.push_back(device);
    }
    return at->second;
  }

  SearchCandidate ToSearchCandidate(const PricedCandidate& candidate) {
    SearchCandidate searched;
    std::vector<size_t> inside;
    candidate.candidate.sub_graph.inside().ForEach([&](PostDfsIndex index) {
      if (const auto node = node_of_.find(index); node != node_of_.end()) inside.push_back(node->second);
    });
    const IndexSet& own = result_.own.emplace_back(inside);
    searched.inside = WithDeclined(own);
    searched.backend = candidate.backend;
    searched.is_partition = candidate.is_partition;
    for (const TensorSource& source : candidate.extracted.inputs) searched.inputs.push_back(TensorOf(source));
    for (const TensorSource& source : candidate.extracted.outputs) searched.outputs.push_back(TensorOf(source));
    for (const PricedVariant& variant : candidate.variants) {
      SearchVariant priced{variant.cost, {}, {}};
      for (const Layout& layout : variant.variant.inputs) priced.input_layouts.push_back(LayoutOf(variant.device, layout));
      for (const Layout& layout : variant.variant.outputs) priced.output_layouts.push_back(LayoutOf(variant.device, layout));
      COLLAGE_CHECK(priced.input_layouts.size() == searched.inputs.size() && priced.output_layouts.size() == searched.outputs.size(),
                    "variant " + variant.variant.name + " of " + candidate.candidate.spec->name + " does not fit its function");
      searched.variants.push_back(std::move(priced));
    }
    return searched;
  }

  void SetConversion(ConversionPrice conversion) {
    const size_t layouts = result_.layouts.size();
    auto table = std::make_shared<std::vector<Cost>>(result_.tensors.size() * layouts * layouts, Cost::Unknown());
    result_.problem.conversion = [table, layouts, types = result_.tensor_types, numbered = result_.layouts,
                                  conversion = std::move(conversion)](size_t tensor, size_t from, size_t to) {
      Cost& cost = (*table)[(tensor * layouts + from) * layouts + to];
      if (cost.IsUnknown()) {
        const auto fits = [&](const Layout& layout) { return layout.Fits(types[tensor]); };
        // A layout of another rank or type is no layout of this tensor: nobody asks for it but in bounds over all layouts.
        cost = fits(numbered[from]) && fits(numbered[to]) ? conversion(types[tensor], numbered[from], numbered[to]) : Cost();
      }
      return cost;
    };
  }

  const DataflowGraph& graph_;
  const Expr& body_;
  const std::span<const Form> forms_;
  std::unordered_map<size_t, std::vector<Alternative>> by_gate_;  // by search nodes
  std::unordered_map<size_t, IndexSet> replaced_by_;              // what a root stands for
  std::map<TensorSource, TensorSource> same_;
  FunctionProblem result_;
  std::unordered_map<PostDfsIndex, size_t> node_of_;
  std::map<TensorSource, size_t> tensor_of_;
  std::map<std::pair<size_t, Layout>, size_t> layouts_;
};

}  // namespace

Result<FunctionProblem> BuildProblem(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates, size_t backend_count,
                                     ConversionPrice conversion) {
  return Builder(graph, graph.function()->As<Function>()->body, {}).Build(candidates, backend_count, std::move(conversion));
}

Result<FunctionProblem> BuildProblem(const FormedGraph& formed, const std::vector<PricedCandidate>& candidates, size_t backend_count,
                                     ConversionPrice conversion) {
  return Builder(*formed.graph, formed.body(), formed.forms).Build(candidates, backend_count, std::move(conversion));
}

}  // namespace collage
