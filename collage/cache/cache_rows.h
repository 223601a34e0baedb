#pragma once

// Entries as rows of their tables.

#include <string>

#include "collage/cache/cache_database.h"
#include "collage/cache/cache_entry.h"
#include "collage/cache/fact.h"

namespace collage {

/// Binds the columns of the key to the parameters from 1 on.
void BindKey(CacheQuery& query, const FactTable& table, const CacheEntry& entry);
/// Binds all columns to the parameters from 1 on.
void BindEntry(CacheQuery& query, const FactTable& table, const CacheEntry& entry);
/// "INSERT INTO ...", with a parameter for each column. A row with the same key is replaced, or kept.
enum class SameKey { kReplace, kKeep };
std::string InsertText(const FactTable& table, SameKey same_key);

/// A row whose first columns are those of the key.
CacheEntry ReadKey(const CacheQuery& row, const FactTable& table);
/// A row of all columns in their order.
CacheEntry ReadEntry(const CacheQuery& row, const FactTable& table);
/// What ReadEntry would hide: SQLite keeps values of any type in any column. Errors name the column.
Status CheckColumns(const CacheQuery& row, const FactTable& table);

}  // namespace collage
