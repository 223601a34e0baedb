#include "collage/cache/fact.h"

#include <algorithm>

namespace collage {
namespace {

const char* NameOf(ColumnType type, const ColumnTypeNames& types) {
  return type == ColumnType::kText ? types.text : type == ColumnType::kBlob ? types.blob : types.integer;
}

/// A key of `named` columns on a machine, then values, then when they were stored.
std::vector<FactColumn> Columns(std::vector<FactColumn> named, std::vector<FactColumn> values) {
  named.insert(named.end(), {{"device", EntryPart::kDevice}, {"threads", EntryPart::kThreads}, {"protocol", EntryPart::kProtocol}});
  named.insert(named.end(), values.begin(), values.end());
  named.push_back({"stored_at", EntryPart::kStoredAt});
  return named;
}

std::vector<FactTable> MakeTables() {
  using Part = EntryPart;
  const FactColumn backend{"backend", Part::kBackend};
  const FactColumn version{"backend_version", Part::kBackendVersion};
  const FactColumn variant{"variant", Part::kVariant};
  const FactColumn function{"function_hash", Part::kHash};
  const FactColumn samples{"samples", Part::kSamples};
  const FactColumn reason{"invalid_reason", Part::kInvalidReason};
  return {
      {Fact::kKernel, "kernel",
       Columns({function, backend, version, variant}, {samples, reason, {"anchors", Part::kAnchors}, {"verified", Part::kVerified}})},
      {Fact::kKernelInProgram, "kernel_in_program",
       Columns({function, {"model_hash", Part::kContext}, backend, version, variant},
               {{"rounds", Part::kSamples}, {"anchors_and_rounds", Part::kAnchors}})},
      {Fact::kRace, "race",
       Columns({{"program_hash", Part::kHash}, {"field_hash", Part::kContext}, {"plan", Part::kVariant}},
               {{"rounds", Part::kSamples}, {"failure", Part::kInvalidReason}})},
      {Fact::kDrift, "drift", Columns({{"field_hash", Part::kHash}}, {{"factor", Part::kSamples}})},
      {Fact::kVerdict, "verdict",
       Columns({{"program_hash", Part::kHash}, {"content_hash", Part::kContext}},
               {{"difference", Part::kSamples}, {"objection", Part::kInvalidReason}}),
       /*may_be_zero=*/true},
      {Fact::kDecision, "decision", Columns({{"problem_hash", Part::kHash}}, {{"seconds", Part::kSamples}}), /*may_be_zero=*/true},
      {Fact::kJoins, "joins", Columns({{"problem_hash", Part::kHash}}, {{"numbers", Part::kSamples}}), /*may_be_zero=*/true},
      {Fact::kKnown, "known", Columns({{"problem_hash", Part::kHash}}, {{"numbers", Part::kSamples}}), /*may_be_zero=*/true},
      {Fact::kTransition, "transition",
       Columns({{"backends_hash", Part::kHash}, {"backend", Part::kBackend}, {"after", Part::kVariant}}, {samples, reason})},
      {Fact::kTuning, "tuning", Columns({function, backend, version, variant}, {{"positions", Part::kSamples}})},
  };
}

}  // namespace

ColumnType TypeOf(EntryPart part) {
  switch (part) {
    case EntryPart::kBackend:
    case EntryPart::kBackendVersion:
    case EntryPart::kVariant:
    case EntryPart::kDevice:
    case EntryPart::kInvalidReason:
      return ColumnType::kText;
    case EntryPart::kSamples:
    case EntryPart::kAnchors:
      return ColumnType::kBlob;
    default:
      return ColumnType::kInteger;
  }
}

bool FactTable::Has(EntryPart part) const {
  return std::any_of(columns.begin(), columns.end(), [&](const FactColumn& column) { return column.part == part; });
}

std::string FactTable::Columns(bool only_key) const {
  std::string text;
  for (const FactColumn& column : columns) {
    if (!only_key || IsOfKey(column.part)) text += (text.empty() ? "" : ", ") + std::string(column.name);
  }
  return text;
}

std::string FactTable::Creation(const ColumnTypeNames& types) const {
  std::string text = "CREATE TABLE IF NOT EXISTS " + std::string(name) + "(";
  for (const FactColumn& column : columns) text += std::string(column.name) + " " + NameOf(TypeOf(column.part), types) + " NOT NULL, ";
  return text + "PRIMARY KEY(" + Columns(/*only_key=*/true) + "))";
}

std::string FactTable::WhereKey() const {
  std::string text;
  int parameter = 0;
  for (const FactColumn& column : columns) {
    if (!IsOfKey(column.part)) continue;
    text += (text.empty() ? " WHERE " : " AND ") + std::string(column.name) + "=$" + std::to_string(++parameter);
  }
  return text;
}

std::span<const FactTable> FactTables() {
  static const std::vector<FactTable> tables = MakeTables();
  return tables;
}

const FactTable& TableOf(Fact fact) { return FactTables()[static_cast<size_t>(fact)]; }

const FactTable* FindFactTable(const std::string& name) {
  const std::span<const FactTable> tables = FactTables();
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const FactTable& table) { return table.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

}  // namespace collage
