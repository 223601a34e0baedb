#include "collage/cache/cache_rows.h"

#include <cstdint>

namespace collage {
namespace {

void BindPart(CacheQuery& query, int parameter, EntryPart part, const CacheEntry& entry) {
  switch (part) {
    case EntryPart::kHash:
      return query.Bind(parameter, static_cast<int64_t>(entry.key.function_hash));
    case EntryPart::kContext:
      return query.Bind(parameter, static_cast<int64_t>(entry.key.context));
    case EntryPart::kBackend:
      return query.Bind(parameter, entry.key.backend);
    case EntryPart::kBackendVersion:
      return query.Bind(parameter, entry.key.backend_version);
    case EntryPart::kVariant:
      return query.Bind(parameter, entry.key.variant);
    case EntryPart::kDevice:
      return query.Bind(parameter, entry.key.device);
    case EntryPart::kThreads:
      return query.Bind(parameter, int64_t{entry.key.threads});
    case EntryPart::kProtocol:
      return query.Bind(parameter, entry.protocol);
    case EntryPart::kSamples:
      return query.Bind(parameter, entry.measurement.samples);
    case EntryPart::kInvalidReason:
      return query.Bind(parameter, entry.measurement.invalid_reason);
    case EntryPart::kAnchors:
      return query.Bind(parameter, entry.measurement.anchors);
    case EntryPart::kVerified:
      return query.Bind(parameter, int64_t{entry.verified});
    case EntryPart::kStoredAt:
      return query.Bind(parameter, entry.stored_at);
  }
}

void ReadPart(const CacheQuery& row, int column, EntryPart part, CacheEntry& entry) {
  switch (part) {
    case EntryPart::kHash:
      entry.key.function_hash = static_cast<uint64_t>(row.Integer(column));
      break;
    case EntryPart::kContext:
      entry.key.context = static_cast<uint64_t>(row.Integer(column));
      break;
    case EntryPart::kBackend:
      entry.key.backend = row.Text(column);
      break;
    case EntryPart::kBackendVersion:
      entry.key.backend_version = row.Text(column);
      break;
    case EntryPart::kVariant:
      entry.key.variant = row.Text(column);
      break;
    case EntryPart::kDevice:
      entry.key.device = row.Text(column);
      break;
    case EntryPart::kThreads:
      entry.key.threads = static_cast<int>(row.Integer(column));
      break;
    case EntryPart::kProtocol:
      entry.protocol = row.Integer(column);
      break;
    case EntryPart::kSamples:
      entry.measurement.samples = row.Doubles(column);
      break;
    case EntryPart::kInvalidReason:
      entry.measurement.invalid_reason = row.Text(column);
      break;
    case EntryPart::kAnchors:
      entry.measurement.anchors = row.Doubles(column);
      break;
    case EntryPart::kVerified:
      entry.verified = row.Integer(column) == 1;
      break;
    case EntryPart::kStoredAt:
      entry.stored_at = row.Integer(column);
      break;
  }
}

int TypeOf(EntryPart part) {
  switch (part) {
    case EntryPart::kBackend:
    case EntryPart::kBackendVersion:
    case EntryPart::kVariant:
    case EntryPart::kDevice:
    case EntryPart::kInvalidReason:
      return SQLITE_TEXT;
    case EntryPart::kSamples:
    case EntryPart::kAnchors:
      return SQLITE_BLOB;
    default:
      return SQLITE_INTEGER;
  }
}

}  // namespace

void BindKey(CacheQuery& query, const FactTable& table, const CacheEntry& entry) {
  int parameter = 0;
  for (const FactColumn& column : table.columns) {
    if (IsOfKey(column.part)) BindPart(query, ++parameter, column.part, entry);
  }
}

void BindEntry(CacheQuery& query, const FactTable& table, const CacheEntry& entry) {
  int parameter = 0;
  for (const FactColumn& column : table.columns) BindPart(query, ++parameter, column.part, entry);
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
  for (const FactColumn& named : table.columns) ReadPart(row, column++, named.part, entry);
  return entry;
}

Status CheckColumns(const CacheQuery& row, const FactTable& table) {
  int column = 0;
  for (const FactColumn& named : table.columns) {
    const int at = column++;
    const std::string field = std::string("field '") + named.name + "': ";
    if (row.Type(at) != TypeOf(named.part)) return Fail(field + "is of the wrong type");
    if (named.part == EntryPart::kThreads && row.Integer(at) != static_cast<int>(row.Integer(at))) return Fail(field + "is too large");
    if (TypeOf(named.part) == SQLITE_BLOB && row.ByteCount(at) % sizeof(double) != 0)
      return Fail(field + "has " + std::to_string(row.ByteCount(at)) + " bytes, no whole number of doubles");
    if (named.part == EntryPart::kVerified && row.Integer(at) != 0 && row.Integer(at) != 1) return Fail(field + "is neither 0 nor 1");
  }
  return {};
}

}  // namespace collage
