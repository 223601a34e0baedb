#include "collage/backend/shared_code.h"

#include "collage/support/hash.h"

namespace collage::artifact {
namespace {

template <class Codes>
void ForgetUnused(Codes& codes) {
  std::erase_if(codes, [](const auto& one) { return one.second.expired(); });
}

}  // namespace

std::shared_ptr<const LinkedCode> SharedCodes::Find(const std::string& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second.lock();
}

Result<std::shared_ptr<const LinkedCode>> SharedCodes::Add(const std::string& key, std::string object) {
  std::shared_ptr<const LinkedCode> code = COLLAGE_TRY(Link(std::move(object)));
  const std::lock_guard<std::mutex> lock(mutex_);
  ForgetUnused(by_key_);
  by_key_[key] = code;
  return code;
}

Result<std::shared_ptr<const LinkedCode>> SharedCodes::Link(std::string object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t hash = HashBytes(object);
  if (const auto found = by_object_.find(hash); found != by_object_.end()) {
    if (auto code = found->second.lock(); code && code->object() == object) return code;
  }
  std::unique_ptr<MachineCode> linked = COLLAGE_TRY(MachineCode::Link(object, resolve_));
  const auto code = std::make_shared<const LinkedCode>(std::move(object), std::move(linked));
  ForgetUnused(by_object_);
  by_object_[hash] = code;
  return code;
}

}  // namespace collage::artifact
