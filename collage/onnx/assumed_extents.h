#pragma once

// Types behind a cut, where only a run tells extents. The nodes are read twice, each time with other numbers in the place of what is not
// known: an extent that differs between both is one of these, or made of them, and what agrees in both does not depend on them. So no type
// rule is written for extents that are not known.

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/onnx/graph_reader.h"
#include "collage/op/row_independence.h"

namespace collage::onnx_io {

/// What both readings say of a value.
struct AssumedValue {
  enum class Kind {
    kUnknown,   ///< not even a type
    kConstant,  ///< the same constant in both
    kShape,     ///< constants of one type with other elements: made of extents
    kWhole,     ///< of one type
    kRows,      ///< the leading extent differs, and nothing else of the type
    kOther,
  };
  Kind kind = Kind::kUnknown;
  size_t extent = 0;                ///< of rows: which one, among AssumedExtents::extents
  TensorType first, second;         ///< types in both readings, unless unknown
  std::optional<size_t> node = {};  ///< that gives it
  bool varies = true;               ///< of constants: whether they are made of extents that are not known

  [[nodiscard]] bool IsConstant() const { return kind == Kind::kConstant || kind == Kind::kShape; }
};

class AssumedExtents {
 public:
  /// `inputs`: types of values that no node gives, by name; initializers have their own.
  AssumedExtents(const OnnxGraph& graph, const std::map<std::string, TensorType>& inputs);

  /// Null where nothing is known, not even that it is unknown.
  [[nodiscard]] const AssumedValue* Find(const std::string& name) const;
  /// Which extent the rows have that a node computes independently of each other; nothing where it does anything else.
  [[nodiscard]] std::optional<size_t> RowsOf(size_t node) const { return rows_[node]; }
  /// Floating point operations for each of them.
  [[nodiscard]] double WorkOf(size_t node) const { return work_[node]; }
  /// As they are assumed in either reading.
  [[nodiscard]] const std::vector<std::pair<int64_t, int64_t>>& extents() const { return extents_; }

 private:
  struct Use {
    RowUse use = RowUse::kNeither;
    size_t extent = 0;
  };
  struct Reading {
    explicit Reading(const OnnxGraph& graph) : reader(graph, model, nullptr) {}
    ModelReading model;
    GraphReader reader;
    std::unordered_map<const ExprNode*, Use> uses;
  };

  void ReadNode(size_t index);
  bool ReadInBoth(size_t index);
  void MarkNode(size_t index);
  [[nodiscard]] std::vector<Expr> NewExpressions(const Reading& reading, const OnnxNode& node) const;
  [[nodiscard]] Use UseOf(const Reading& reading, const Expr& expr, bool is_first) const;
  bool MarkNew(const std::vector<Expr>& first, const std::vector<Expr>& second);
  AssumedValue Classify(const Expr& first, const Expr& second);
  void Assume(const std::string& name, const TensorType& first, const TensorType& second, std::optional<size_t> node);
  void SetUnknown(size_t index);
  bool AssumeResults(size_t index);
  size_t ExtentOf(std::pair<int64_t, int64_t> pair);
  std::pair<int64_t, int64_t> NewExtent(const std::string& key);
  [[nodiscard]] Use UseOf(const AssumedValue& value) const;

  const OnnxGraph& graph_;
  Reading first_;
  Reading second_;
  std::unordered_map<std::string, AssumedValue> values_;
  std::vector<std::optional<size_t>> rows_;
  std::vector<double> work_;
  std::vector<std::pair<int64_t, int64_t>> extents_;
  std::map<std::string, std::pair<int64_t, int64_t>> by_key_;
  int64_t last_ = 0;  // number that stands for an extent
};

}  // namespace collage::onnx_io
