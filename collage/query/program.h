#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/dataflow/sub_graph.h"
#include "collage/dataflow/tensor_source.h"
#include "collage/ir/parse.h"
#include "collage/query/json_reader.h"

namespace collage {

/// One function of the module that a case asks about, its dataflow graph, and what the text calls the nodes: "%3", "%x", "@main" (the
/// function itself, and where functions of the module are called), "const:0". The value of a let that has no number of its own
/// goes by the name of its variable. Operators, scalars and whatever else the text gives no name are never listed.
class NamedFunction {
 public:
  struct Origin {
    const BindingList& bindings;
    const std::vector<TextBlock>& blocks;
    const std::unordered_map<std::string, Expr>& preferred;  ///< of several bindings of one name, the one that a query means
    const std::unordered_map<const ExprNode*, size_t>& constants;
  };
  NamedFunction(std::string name, const Expr& function, const Origin& origin);

  /// Without "@".
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool IsMain() const { return name_ == "main"; }
  [[nodiscard]] const DataflowGraph& graph() const { return graph_; }

  /// Empty for a node without a name.
  [[nodiscard]] const std::string& NameOf(PostDfsIndex node) const { return name_of_[node]; }
  /// The names of these nodes, each once, in the order of the program.
  [[nodiscard]] Json NamesOf(std::span<const PostDfsIndex> nodes) const;
  [[nodiscard]] Json NamesOf(NodeList nodes) const;
  [[nodiscard]] Json NamesOf(const IndexSet& nodes) const;
  /// What the text calls these tensors, each name once: for a field of a tuple, the projection on the side that is asked for
  /// (inside of a sub-graph or outside), or where there is none the tuple itself.
  [[nodiscard]] Json NamesOf(const std::vector<TensorSource>& tensors, const IndexSet& inside, bool projected_inside) const;

  [[nodiscard]] bool Knows(const std::string& name) const { return nodes_of_.contains(name); }
  /// The node of that name: of a let's variable and value, the value.
  [[nodiscard]] Result<PostDfsIndex> Node(const JsonReader& name) const;
  /// The nodes that a list names.
  [[nodiscard]] Result<IndexSet> Nodes(const JsonReader& list) const;

  /// Calls outside of `inside`.
  [[nodiscard]] Json CallsOutside(const IndexSet& inside) const;
  /// Adds "function" to an answer that is not about @main.
  [[nodiscard]] Json Tagged(Json answer) const;

 private:
  void Bind(const std::string& name, PostDfsIndex node);
  void NameLetValues();

  std::string name_;
  DataflowGraph graph_;
  std::vector<std::string> name_of_;
  std::unordered_map<std::string, std::vector<PostDfsIndex>> nodes_of_;
};

/// The program of a case: "program" and "constants".
class QueryProgram {
 public:
  static Result<QueryProgram> Read(const JsonReader& entry);

  [[nodiscard]] const IRModule& module() const { return text_.module; }
  /// The module with what its text calls everything.
  [[nodiscard]] const ParsedModule& text() const { return text_; }
  /// In the order of the text.
  [[nodiscard]] const std::vector<std::unique_ptr<NamedFunction>>& functions() const { return functions_; }
  /// The function whose nodes `names` (a list, or one name) are: what the field "function" of `query` says, else @main when it has
  /// them all, else the first that has.
  [[nodiscard]] Result<const NamedFunction*> FunctionOf(const JsonReader& query, const JsonReader& names) const;
  /// The one that the field "function" of `query` names, else all.
  [[nodiscard]] Result<std::vector<const NamedFunction*>> FunctionsOf(const JsonReader& query) const;

 private:
  [[nodiscard]] Result<const NamedFunction*> Named(const JsonReader& field) const;

  ParsedModule text_;
  std::vector<std::unique_ptr<NamedFunction>> functions_;
};

}  // namespace collage
