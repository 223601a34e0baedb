#include "collage/cache/cache_rows.h"

#include <cstdint>

namespace collage {
namespace {

struct BindTo {
  CacheQuery& query;
  int parameter;
  void operator()(const std::string& text) const { query.Bind(parameter, text); }
  void operator()(const std::vector<double>& numbers) const { query.Bind(parameter, numbers); }
  template <class Integer>
  void operator()(Integer value) const {
    query.Bind(parameter, static_cast<int64_t>(value));
  }
};

struct ReadFrom {
  const CacheQuery& row;
  int column;
  void operator()(std::string& text) const { text = row.Text(column); }
  void operator()(std::vector<double>& numbers) const { numbers = row.Doubles(column); }
  void operator()(bool& flag) const { flag = row.Integer(column) == 1; }
  template <class Integer>
  void operator()(Integer& value) const {
    value = static_cast<Integer>(row.Integer(column));
  }
};

}  // namespace

void BindKey(CacheQuery& query, const FactTable& table, const CacheEntry& entry) {
  int parameter = 0;
  for (const FactColumn& column : table.columns) {
    if (IsOfKey(column.part)) VisitPart(entry, column.part, BindTo{query, ++parameter});
  }
}

void BindEntry(CacheQuery& query, const FactTable& table, const CacheEntry& entry) {
  int parameter = 0;
  for (const FactColumn& column : table.columns) VisitPart(entry, column.part, BindTo{query, ++parameter});
}

std::string InsertText(const FactTable& table, SameKey same_key) {
  std::string parameters;
  std::string changes;
  int parameter = 0;
  for (const FactColumn& column : table.columns) {
    parameters += (parameter == 0 ? "$" : ", $") + std::to_string(parameter + 1);
    ++parameter;
    if (!IsOfKey(column.part)) changes += (changes.empty() ? "" : ", ") + std::string(column.name) + "=excluded." + column.name;
  }
  return std::string("INSERT INTO ") + table.name + "(" + table.Columns() + ") VALUES(" + parameters + ") ON CONFLICT(" +
         table.Columns(/*only_key=*/true) + ") DO " + (same_key == SameKey::kKeep ? "NOTHING" : "UPDATE SET " + changes);
}

namespace {

CacheEntry Read(const CacheQuery& row, const FactTable& table, bool only_key) {
  CacheEntry entry;
  entry.key.fact = table.fact;
  int column = 0;
  for (const FactColumn& named : table.columns) {
    if (!only_key || IsOfKey(named.part)) VisitPart(entry, named.part, ReadFrom{row, column++});
  }
  return entry;
}

}  // namespace

CacheEntry ReadKey(const CacheQuery& row, const FactTable& table) { return Read(row, table, /*only_key=*/true); }
CacheEntry ReadEntry(const CacheQuery& row, const FactTable& table) { return Read(row, table, /*only_key=*/false); }

Status CheckColumns(const CacheQuery& row, const FactTable& table) {
  int column = 0;
  for (const FactColumn& named : table.columns) {
    const int at = column++;
    const std::string field = std::string("field '") + named.name + "': ";
    const ColumnType type = TypeOf(named.part);
    if (row.Type(at) != type) return Fail(field + "is of the wrong type");
    if (named.part == EntryPart::kThreads && row.Integer(at) != static_cast<int>(row.Integer(at))) return Fail(field + "is too large");
    if (type == ColumnType::kBlob && row.Bytes(at).size() % sizeof(double) != 0)
      return Fail(field + "has " + std::to_string(row.Bytes(at).size()) + " bytes, no whole number of doubles");
    if (named.part == EntryPart::kVerified && row.Integer(at) != 0 && row.Integer(at) != 1) return Fail(field + "is neither 0 nor 1");
  }
  return {};
}

}  // namespace collage
