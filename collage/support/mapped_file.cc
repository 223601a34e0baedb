#include "collage/support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "collage/support/mappings.h"

namespace collage {
namespace {

struct Mapping {
  void* data;
  size_t bytes;
  Mapping(void* mapped, size_t size) : data(mapped), bytes(size) { AddMapping(data, bytes, MappingKind::kFile); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    RemoveMappings(data, bytes);
    ::munmap(data, bytes);
  }
};

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_;
};

}  // namespace

Result<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  const auto failed = [&](const char* what) { return Fail(path.string() + ": cannot be " + what + ": " + std::strerror(errno)); };
  const Descriptor file(path);
  struct stat status {};
  if (file.get() < 0) return failed("opened");
  if (::fstat(file.get(), &status) != 0) return failed("read");
  if (!S_ISREG(status.st_mode)) return Fail(path.string() + ": is not a regular file");
  MappedFile mapped;
  const auto bytes = static_cast<size_t>(status.st_size);
  if (bytes == 0) return mapped;
  void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return failed("mapped");
  mapped.owner_ = std::make_shared<Mapping>(data, bytes);
  mapped.content_ = {static_cast<const char*>(data), bytes};
  return mapped;
}

}  // namespace collage
