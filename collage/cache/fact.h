#pragma once

// Which kinds of facts a cache keeps, and the table of each.

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace collage {

enum class Fact {
  kKernel,           ///< what a kernel takes alone, or why it is invalid
  kKernelInProgram,  ///< what it takes inside whole programs, by round
  kRace,             ///< what a plan takes beside others, by round
  kDrift,            ///< how many times slower the machine was in the race than when prices were taken
  kVerdict,          ///< how far a program, with its weights, is from the reference executor
  kDecision,         ///< of how many seconds a decision was taken
  kJoins,            ///< what was added to the candidates of a problem before a decision was taken
  kKnown,            ///< of which kernels how much was known when a decision was taken
  kTransition,       ///< what a trivial kernel takes right after one of another backend
  kTuning            ///< which schedule was found for a kernel
};

/// The parts of an entry; up to kProtocol they are its key.
enum class EntryPart {
  kHash,
  kContext,
  kBackend,
  kBackendVersion,
  kVariant,
  kDevice,
  kThreads,
  kProtocol,
  kSamples,
  kInvalidReason,
  kAnchors,
  kVerified,
  kStoredAt
};
[[nodiscard]] constexpr bool IsOfKey(EntryPart part) { return part <= EntryPart::kProtocol; }

/// What a database keeps of a part; lists of numbers are blobs of doubles.
enum class ColumnType { kInteger, kText, kBlob };
/// What a database calls them.
struct ColumnTypeNames {
  const char* integer;
  const char* text;
  const char* blob;
};
[[nodiscard]] ColumnType TypeOf(EntryPart part);

struct FactColumn {
  const char* name;
  EntryPart part;
};

/// A table: its columns in their order, those of the key first.
struct FactTable {
  Fact fact;
  const char* name;
  std::vector<FactColumn> columns;
  bool may_be_zero = false;  ///< whether a sample may

  [[nodiscard]] bool Has(EntryPart part) const;
  /// "function_hash, backend, ...": all columns, or those of the key.
  [[nodiscard]] std::string Columns(bool only_key = false) const;
  /// The statement that creates it where it is missing.
  [[nodiscard]] std::string Creation(const ColumnTypeNames& types) const;
  /// " WHERE function_hash=$1 AND ...", parameters in the order of the key's columns.
  [[nodiscard]] std::string WhereKey() const;
};

[[nodiscard]] std::span<const FactTable> FactTables();
[[nodiscard]] const FactTable& TableOf(Fact fact);
/// Nothing where no table has that name.
[[nodiscard]] const FactTable* FindFactTable(const std::string& name);

}  // namespace collage
