#include "collage/support/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace collage {

Result<FileLock> FileLock::Wait(const std::filesystem::path& path) {
  constexpr mode_t kForAll = 0666;  // less the umask
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForAll);
  if (file < 0) return Fail(path.string() + ": cannot be opened: " + std::strerror(errno));
  FileLock lock(file);
  int status = 0;
  do {
    status = ::flock(file, LOCK_EX);
  } while (status != 0 && errno == EINTR);
  if (status != 0) return Fail(path.string() + ": cannot be locked: " + std::strerror(errno));
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace collage
