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

std::string InsertText(const FactTable& table, const std::string& otherwise) {
  std::string parameters;
  for (size_t i = 1; i <= table.columns.size(); ++i) parameters += (i == 1 ? "?" : ", ?") + std::to_string(i);
  return "INSERT OR " + otherwise + " INTO " + table.name + "(" + table.Columns() + ") VALUES(" + parameters + ")";
}

CacheEntry ReadEntry(const CacheQuery& row, const FactTable& table) {
  CacheEntry entry;
  entry.key.fact = table.fact;
  int column = 0;
  for (const FactColumn& named : table.columns) VisitPart(entry, named.part, ReadFrom{row, column++});
  return entry;
}

Status CheckColumns(const CacheQuery& row, const FactTable& table) {
  int column = 0;
  for (const FactColumn& named : table.columns) {
    const int at = column++;
    const std::string field = std::string("field '") + named.name + "': ";
    const ColumnType type = TypeOf(named.part);
    const int wanted = type == ColumnType::kText ? SQLITE_TEXT : type == ColumnType::kBlob ? SQLITE_BLOB : SQLITE_INTEGER;
    if (row.Type(at) != wanted) return Fail(field + "is of the wrong type");
    if (named.part == EntryPart::kThreads && row.Integer(at) != static_cast<int>(row.Integer(at))) return Fail(field + "is too large");
    if (type == ColumnType::kBlob && row.ByteCount(at) % sizeof(double) != 0)
      return Fail(field + "has " + std::to_string(row.ByteCount(at)) + " bytes, no whole number of doubles");
    if (named.part == EntryPart::kVerified && row.Integer(at) != 0 && row.Integer(at) != 1) return Fail(field + "is neither 0 nor 1");
  }
  return {};
}

}  // namespace collage
