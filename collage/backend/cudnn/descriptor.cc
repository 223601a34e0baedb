#include "collage/backend/cudnn/descriptor.h"

namespace collage::cudnn {

Result<Descriptor> Descriptor::Create(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t raw = nullptr;
  COLLAGE_CUDNN_CALL(cudnnBackendCreateDescriptor, type, &raw);
  return Descriptor(raw);
}

Descriptor::~Descriptor() {
  if (raw_) (void)Library::Use().cudnnBackendDestroyDescriptor(raw_);
}

Result<size_t> Descriptor::Count(cudnnBackendAttributeName_t name) const {
  int64_t count = 0;
  COLLAGE_CUDNN_CALL(cudnnBackendGetAttribute, raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr);
  return static_cast<size_t>(count);
}

Result<std::vector<Descriptor>> Descriptor::GetAll(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type, size_t most) const {
  std::vector<Descriptor> parts;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (size_t i = 0; i < most; ++i) {
    parts.push_back(COLLAGE_TRY(Create(type)));
    raw.push_back(parts.back().raw());
  }
  int64_t filled = 0;
  if (most > 0) {
    COLLAGE_CUDNN_CALL(cudnnBackendGetAttribute, raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(most), &filled,
                       raw.data());
  }
  while (parts.size() > static_cast<size_t>(filled)) parts.pop_back();
  return parts;
}

Result<Descriptor> Descriptor::GetOne(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  Descriptor part = COLLAGE_TRY(Create(type));
  cudnnBackendDescriptor_t raw = part.raw();
  int64_t filled = 0;
  COLLAGE_CUDNN_CALL(cudnnBackendGetAttribute, raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &filled, &raw);
  return part;
}

DescriptorBuilder& DescriptorBuilder::Set(cudnnBackendAttributeName_t name, const Descriptor& part) {
  const cudnnBackendDescriptor_t raw = part.raw();
  return SetValues(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}

DescriptorBuilder& DescriptorBuilder::Set(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>& parts) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor* part : parts) raw.push_back(part->raw());
  return SetValues(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
}

DescriptorBuilder& DescriptorBuilder::SetValues(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                                                const void* values) {
  if (!descriptor_) return *this;
  const cudnnStatus_t status = Library::Use().cudnnBackendSetAttribute(descriptor_->raw(), name, type, static_cast<int64_t>(count), values);
  if (status != CUDNN_STATUS_SUCCESS) descriptor_ = FailOf("cudnnBackendSetAttribute", status);
  return *this;
}

Result<Descriptor> DescriptorBuilder::Finalised() {
  if (!descriptor_) return Fail(descriptor_.error());
  COLLAGE_CUDNN_CALL(cudnnBackendFinalize, descriptor_->raw());
  return std::move(descriptor_);
}

}  // namespace collage::cudnn
