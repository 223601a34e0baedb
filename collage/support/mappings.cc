#include "collage/support/mappings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>

namespace collage {
namespace {

struct Table {
  std::mutex mutex;
  std::map<const std::byte*, size_t> sizes[2];  // by beginning, of each kind
};

/// Never destroyed: buffers may outlive every static object.
Table& Mappings() {
  static auto* table = new Table;
  return *table;
}

size_t PageBytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

void AddMapping(const void* data, size_t bytes, MappingKind kind) {
  const std::scoped_lock lock(Mappings().mutex);
  Mappings().sizes[static_cast<size_t>(kind)][static_cast<const std::byte*>(data)] = bytes;
}

void RemoveMappings(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  const std::scoped_lock lock(Mappings().mutex);
  for (auto& sizes : Mappings().sizes) sizes.erase(sizes.lower_bound(begin), sizes.lower_bound(begin + bytes));
}

bool IsMapped(const void* data, size_t bytes, MappingKind kind) {
  const auto* begin = static_cast<const std::byte*>(data);
  const std::scoped_lock lock(Mappings().mutex);
  const auto& sizes = Mappings().sizes[static_cast<size_t>(kind)];
  auto behind = sizes.upper_bound(begin);
  if (behind == sizes.begin()) return false;
  const auto& [start, size] = *--behind;
  return begin + bytes <= start + size;
}

PageRange WholePagesOf(const void* data, size_t bytes) {
  const size_t page = PageBytes();
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + bytes) / page * page;
  if (begin >= end) return {};
  return {const_cast<std::byte*>(static_cast<const std::byte*>(data)) + (begin - address), end - begin};
}

void GiveBack(const void* data, size_t bytes) {
  const PageRange pages = WholePagesOf(data, bytes);
  if (pages.bytes > 0 && IsMapped(pages.begin, pages.bytes, MappingKind::kFile)) ::madvise(pages.begin, pages.bytes, MADV_DONTNEED);
}

void ReadOnce(std::string_view content, const std::function<void(std::string_view)>& visit) {
  // Some milliseconds of reading: a call into the kernel for each is nothing beside it.
  constexpr size_t kPiece = size_t{16} << 20;
  while (!content.empty()) {
    const std::string_view piece = content.substr(0, kPiece);
    visit(piece);
    GiveBack(piece.data(), piece.size());
    content.remove_prefix(piece.size());
  }
}

size_t PrivateMemory() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0;
  size_t resident = 0;
  size_t shared = 0;
  file >> all >> resident >> shared;
  return (resident - shared) * PageBytes();
}

}  // namespace collage
