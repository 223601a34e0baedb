#include "collage/support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace collage {
namespace {

std::string Reason() { return std::strerror(errno); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int value) : value_(value) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const { return value_; }

 private:
  int value_;
};

bool WriteAll(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

Result<std::string> ReadFile(const std::filesystem::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Fail(path.string() + ": cannot be opened: " + Reason());
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return Fail(path.string() + ": cannot be read: " + Reason());
  if (!S_ISREG(status.st_mode)) return Fail(path.string() + ": is not a regular file");
  std::string content(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(path.string() + ": cannot be read: " + Reason());
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  content.resize(done);
  return content;
}

Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  std::string temporary = path.string() + ".XXXXXX";
  const FileDescriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return Fail(path.string() + ": cannot be written: " + Reason());
  mode_t mask = ::umask(0);
  ::umask(mask);
  const bool whole = WriteAll(file.get(), content) && ::fchmod(file.get(), 0666 & ~mask) == 0 && ::fsync(file.get()) == 0 &&
                     ::rename(temporary.c_str(), path.c_str()) == 0;
  if (whole) return {};
  const std::string reason = Reason();
  ::unlink(temporary.c_str());
  return Fail(path.string() + ": cannot be written: " + reason);
}

}  // namespace collage
