#include "collage/support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

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

struct WriteTarget {
  std::filesystem::path path;
  bool is_replaced;  // or, where it is no regular file, written to
};

Result<WriteTarget> FindWriteTarget(const std::filesystem::path& path_or_link) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path_or_link, error);
  if (std::filesystem::is_directory(status)) return Fail(path_or_link.string() + ": cannot be written: is a folder");
  if (!std::filesystem::exists(status)) return WriteTarget{path_or_link, true};
  // A link stays a link: what it names is replaced.
  std::filesystem::path path = std::filesystem::canonical(path_or_link, error);
  if (error || !std::filesystem::is_regular_file(status)) return WriteTarget{path_or_link, false};
  return WriteTarget{std::move(path), true};
}

std::filesystem::path FolderOf(const std::filesystem::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

}  // namespace

Status CheckWritable(const std::filesystem::path& path) {
  const WriteTarget target = COLLAGE_TRY(FindWriteTarget(path));
  const std::filesystem::path accessed = target.is_replaced ? FolderOf(target.path) : target.path;
  if (::access(accessed.c_str(), W_OK) != 0) return Fail(path.string() + ": cannot be written: " + Reason());
  return {};
}

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

AtomicFile::AtomicFile(std::filesystem::path path, Kind kind, std::string temporary, int file)
    : path_(std::move(path)), kind_(kind), temporary_(std::move(temporary)), file_(file) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), kind_(other.kind_), temporary_(std::move(other.temporary_)), file_(std::exchange(other.file_, -1)) {}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

tl::unexpected<Error> AtomicFile::Failed() const { return Fail(path_.string() + ": cannot be written: " + Reason()); }

Result<AtomicFile> AtomicFile::Create(const std::filesystem::path& path_or_link) {
  auto [path, is_replaced] = COLLAGE_TRY(FindWriteTarget(path_or_link));
  if (!is_replaced) {
    const int file = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (file < 0) return Fail(path.string() + ": cannot be written: " + Reason());
    return AtomicFile(std::move(path), Kind::kDevice, {}, file);
  }
  if (const int nameless = ::open(FolderOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600); nameless >= 0)
    return AtomicFile(std::move(path), Kind::kNameless, {}, nameless);
  std::string temporary = path.string() + ".XXXXXX";
  const int file = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) return Fail(path.string() + ": cannot be written: " + Reason());
  return AtomicFile(std::move(path), Kind::kNamed, std::move(temporary), file);
}

Status AtomicFile::Append(std::string_view content) {
  if (!WriteAll(file_, content)) return Failed();
  return {};
}

/// Gives the synced file its name.
bool AtomicFile::Publish() {
  if (kind_ == Kind::kDevice) return true;
  if (kind_ == Kind::kNameless) {
    const std::string link = "/proc/self/fd/" + std::to_string(file_);
    if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
    if (errno != EEXIST) return false;
    // A link cannot replace a file; a rename can.
    const std::string whole = path_.string() + "." + std::to_string(::getpid()) + ".whole";
    ::unlink(whole.c_str());
    if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, whole.c_str(), AT_SYMLINK_FOLLOW) != 0) return false;
    temporary_ = whole;
  }
  return ::rename(temporary_.c_str(), path_.c_str()) == 0;
}

Status AtomicFile::Commit() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (kind_ != Kind::kDevice && (::fchmod(file_, 0666 & ~mask) != 0 || ::fsync(file_) != 0)) return Failed();
  if (!Publish()) return Failed();
  ::close(std::exchange(file_, -1));
  return {};
}

Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file = COLLAGE_TRY(AtomicFile::Create(path));
  COLLAGE_TRY_STATUS(file.Append(content));
  return file.Commit();
}

}  // namespace collage
