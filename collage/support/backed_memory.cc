#include "collage/support/backed_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "collage/support/mappings.h"

namespace collage {
namespace {

int OpenNameless(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string name = (folder / "collage.XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

Status WriteAt(int file, const std::byte* data, size_t bytes, size_t offset) {
  while (bytes > 0) {
    const ssize_t written = ::pwrite(file, data, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Fail(std::string("cannot be written: ") + std::strerror(errno));
    data += written;
    bytes -= static_cast<size_t>(written);
    offset += static_cast<size_t>(written);
  }
  return {};
}

}  // namespace

Result<BackedMemory> BackedMemory::Create(const std::filesystem::path& folder) {
  struct statfs system {};
  const auto failed = [&](const std::string& why) { return Fail(folder.string() + ": " + why); };
  if (::statfs(folder.c_str(), &system) != 0) return failed(std::strerror(errno));
  if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) return failed("its files are memory");
  const int file = OpenNameless(folder);
  if (file < 0) return failed(std::string("no file can be made there: ") + std::strerror(errno));
  return BackedMemory(file);
}

BackedMemory::BackedMemory(BackedMemory&& other) noexcept : file_(std::exchange(other.file_, -1)), used_(other.used_) {}

BackedMemory::~BackedMemory() {
  if (file_ >= 0) ::close(file_);  // pages that are mapped keep it
}

Status BackedMemory::Take(const void* data, size_t bytes) {
  const PageRange pages = WholePagesOf(data, bytes);
  if (pages.bytes == 0 || !IsMapped(data, bytes, MappingKind::kMemory) || IsMapped(pages.begin, pages.bytes, MappingKind::kFile)) return {};
  COLLAGE_TRY_STATUS(WriteAt(file_, pages.begin, pages.bytes, used_));
  // Who writes there nevertheless is to fail, and not to lose what was written.
  if (::mmap(pages.begin, pages.bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, file_, static_cast<off_t>(used_)) == MAP_FAILED)
    return Fail(std::string("cannot be mapped: ") + std::strerror(errno));
  AddMapping(pages.begin, pages.bytes, MappingKind::kFile);
  used_ += pages.bytes;
  return {};
}

Status BackedMemory::Finish() const {
  return ::fdatasync(file_) == 0 ? Status{} : Fail(std::string("cannot be written: ") + std::strerror(errno));
}

}  // namespace collage
