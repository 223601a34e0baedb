#pragma once

// What of this process's memory is mappings of our own, and of what: only such pages may be given back, or mapped anew.

#include <cstddef>
#include <functional>
#include <string_view>

namespace collage {

enum class MappingKind {
  kMemory,  ///< a large block of AllocateBuffer: what is given back is lost
  kFile,    ///< what is given back is read from its file again
};

/// Parts of a block may be of a file (support/backed_memory.h).
void AddMapping(const void* data, size_t bytes, MappingKind kind);
/// All that begin in that range.
void RemoveMappings(const void* data, size_t bytes);
/// Whether some mapping of that kind holds all of it.
bool IsMapped(const void* data, size_t bytes, MappingKind kind);

/// The whole pages of a range.
struct PageRange {
  std::byte* begin = nullptr;
  size_t bytes = 0;
};
PageRange WholePagesOf(const void* data, size_t bytes);

/// Gives back the whole pages of a range that a file holds; other memory is left alone. For what was read and is not needed soon.
void GiveBack(const void* data, size_t bytes);

/// Visits the whole range piece by piece, in order, and gives each back: reading it takes the memory of one piece where a file holds it.
void ReadOnce(std::string_view content, const std::function<void(std::string_view)>& visit);

/// Bytes of memory that this process has for itself: what it shares with files is not counted.
size_t PrivateMemory();

}  // namespace collage
