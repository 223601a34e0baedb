#include "collage/onnx/loop_form.h"

#include <algorithm>
#include <unordered_map>

namespace collage::onnx_io {
namespace {

using Step = PartitionedModel::Step;

/// Which parameter of which header a tensor is, where it is one.
struct Origin {
  size_t header;
  size_t parameter;
};
using Origins = std::vector<std::optional<Origin>>;

class FormFinder {
 public:
  FormFinder(const PartitionedModel& model, const ControlGraph& graph, size_t entry) : model_(model), graph_(graph) {
    form_.headers = graph.HeadersOf(entry);
    for (size_t i = 0; i < form_.headers.size(); ++i) {
      number_of_[form_.headers[i]] = i;
      if (form_.headers[i] == entry) form_.first = i;
    }
  }

  LoopForm Find() {
    for (size_t header = 0; header < form_.headers.size(); ++header) Follow(header);
    FindConstantArguments();
    PlaceParameters();
    PlaceResults();
    FindNatural();
    return std::move(form_);
  }

 private:
  /// A call of a header from inside of the circle.
  struct Again {
    size_t header;
    Origins arguments;
  };
  /// What is known of a parameter over all calls.
  struct Argument {
    bool is_called = false;           // with any argument
    std::optional<size_t> entered{};  // the argument of the call that enters, which it always is; nothing: it changes
  };

  [[nodiscard]] const PartitionedModel::Function& FunctionOf(size_t header) const { return model_.functions[form_.headers[header]]; }

  static Origins Pick(const std::vector<size_t>& tensors, const Origins& parameters) {
    Origins picked;
    for (const size_t tensor : tensors) picked.push_back(tensor < parameters.size() ? parameters[tensor] : std::nullopt);
    return picked;
  }

  /// All paths from a header to the next one, or to an end.
  void Follow(size_t header) {
    std::vector<std::pair<size_t, Origins>> open{{form_.headers[header], {}}};
    for (size_t i = 0; i < FunctionOf(header).parameters; ++i) open[0].second.push_back(Origin{header, i});
    while (!open.empty()) {
      const auto [function, parameters] = std::move(open.back());
      open.pop_back();
      const Step* tail = graph_.TailOf(function);
      if (tail == nullptr) {
        ends_.push_back(Pick(model_.functions[function].results, parameters));
        continue;
      }
      for (const auto& [callee, inputs] : CalleesOf(*tail)) {
        Origins arguments = Pick(*inputs, parameters);
        if (!graph_.AreOfOneCircle(function, callee)) {
          ends_.push_back(Pick(model_.functions[callee].results, arguments));
        } else if (graph_.IsHeader(callee)) {
          again_.push_back({number_of_.at(callee), std::move(arguments)});
        } else {
          open.emplace_back(callee, std::move(arguments));
        }
      }
    }
  }

  void FindConstantArguments() {
    for (size_t header = 0; header < form_.headers.size(); ++header) arguments_.emplace_back(FunctionOf(header).parameters);
    for (size_t i = 0; i < arguments_[form_.first].size(); ++i) arguments_[form_.first][i] = {true, i};
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (const Again& again : again_) {
        for (size_t i = 0; i < again.arguments.size(); ++i) {
          if (Meet(again.arguments[i], arguments_[again.header][i])) has_changed = true;
        }
      }
    }
  }

  bool Meet(const std::optional<Origin>& origin, Argument& argument) const {
    Argument given{true, std::nullopt};
    if (origin) given = arguments_[origin->header][origin->parameter];
    if (!given.is_called || (argument.is_called && (!argument.entered || argument.entered == given.entered))) return false;
    argument = argument.is_called ? Argument{true, std::nullopt} : given;
    return true;
  }

  void PlaceParameters() {
    for (size_t header = 0; header < form_.headers.size(); ++header) {
      form_.parameters.emplace_back();
      for (size_t i = 0; i < arguments_[header].size(); ++i) {
        const std::optional<size_t>& entered = arguments_[header][i].entered;
        form_.parameters.back().push_back(entered ? LoopForm::Slot{false, *entered} : LoopForm::Slot{true, form_.states.size()});
        if (!entered) form_.states.push_back({header, i, FunctionOf(header).types[i]});
      }
    }
  }

  std::optional<LoopForm::Slot> SlotOf(const std::optional<Origin>& origin) const {
    return origin ? std::optional(form_.parameters[origin->header][origin->parameter]) : std::nullopt;
  }

  void PlaceResults() {
    form_.results.resize(FunctionOf(form_.first).results.size());
    for (size_t i = 0; i < form_.results.size(); ++i) {
      const bool is_one = !ends_.empty() && std::all_of(ends_.begin(), ends_.end(), [&](const Origins& end) {
        return end[i] && SlotOf(end[i]) == SlotOf(ends_[0][i]);
      });
      if (is_one) form_.results[i] = SlotOf(ends_[0][i]);
    }
  }

  void FindNatural() {
    const PartitionedModel::Function& function = FunctionOf(form_.first);
    if (form_.headers.size() > 1 || ends_.size() != 1 || function.steps.size() != 1 || function.steps[0].kind != Step::Kind::kBranch)
      return;
    const Step& step = function.steps[0];
    const bool then_goes_on = graph_.AreOfOneCircle(form_.headers[0], step.callee);
    const bool else_goes_on = graph_.AreOfOneCircle(form_.headers[0], step.otherwise);
    if (then_goes_on == else_goes_on || step.condition >= function.parameters) return;
    const LoopForm::Slot condition = form_.parameters[0][step.condition];
    const bool all_found = std::all_of(form_.results.begin(), form_.results.end(), [](const auto& result) { return result.has_value(); });
    if (condition.is_state && all_found) form_.natural = {condition.index, then_goes_on};
  }

  const PartitionedModel& model_;
  const ControlGraph& graph_;
  LoopForm form_;
  std::unordered_map<size_t, size_t> number_of_;  // of headers
  std::vector<Again> again_;
  std::vector<Origins> ends_;                     // what is given there
  std::vector<std::vector<Argument>> arguments_;  // of each header
};

}  // namespace

LoopForm FindLoopForm(const PartitionedModel& model, const ControlGraph& graph, size_t entry) {
  return FormFinder(model, graph, entry).Find();
}

}  // namespace collage::onnx_io
