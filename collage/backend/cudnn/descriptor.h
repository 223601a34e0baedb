#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "collage/backend/cudnn/library.h"

namespace collage::cudnn {

/// How the library calls the type of an attribute's values.
template <class Value>
inline constexpr bool kIsAttribute = false;
template <class Value>
inline constexpr cudnnBackendAttributeType_t kAttributeType{};
#define COLLAGE_CUDNN_ATTRIBUTE(Value, type)        \
  template <>                                       \
  inline constexpr bool kIsAttribute<Value> = true; \
  template <>                                       \
  inline constexpr cudnnBackendAttributeType_t kAttributeType<Value> = type;
COLLAGE_CUDNN_ATTRIBUTE(bool, CUDNN_TYPE_BOOLEAN)
COLLAGE_CUDNN_ATTRIBUTE(int64_t, CUDNN_TYPE_INT64)
COLLAGE_CUDNN_ATTRIBUTE(float, CUDNN_TYPE_FLOAT)
COLLAGE_CUDNN_ATTRIBUTE(double, CUDNN_TYPE_DOUBLE)
COLLAGE_CUDNN_ATTRIBUTE(void*, CUDNN_TYPE_VOID_PTR)
COLLAGE_CUDNN_ATTRIBUTE(cudnnHandle_t, CUDNN_TYPE_HANDLE)
COLLAGE_CUDNN_ATTRIBUTE(cudnnDataType_t, CUDNN_TYPE_DATA_TYPE)
COLLAGE_CUDNN_ATTRIBUTE(cudnnFraction_t, CUDNN_TYPE_FRACTION)
COLLAGE_CUDNN_ATTRIBUTE(cudnnConvolutionMode_t, CUDNN_TYPE_CONVOLUTION_MODE)
COLLAGE_CUDNN_ATTRIBUTE(cudnnPointwiseMode_t, CUDNN_TYPE_POINTWISE_MODE)
COLLAGE_CUDNN_ATTRIBUTE(cudnnResampleMode_t, CUDNN_TYPE_RESAMPLE_MODE)
COLLAGE_CUDNN_ATTRIBUTE(cudnnPaddingMode_t, CUDNN_TYPE_PADDING_MODE)
COLLAGE_CUDNN_ATTRIBUTE(cudnnNanPropagation_t, CUDNN_TYPE_NAN_PROPOGATION)
COLLAGE_CUDNN_ATTRIBUTE(cudnnBackendHeurMode_t, CUDNN_TYPE_HEUR_MODE)
COLLAGE_CUDNN_ATTRIBUTE(cudnnBackendKnobType_t, CUDNN_TYPE_KNOB_TYPE)
COLLAGE_CUDNN_ATTRIBUTE(cudnnBackendNumericalNote_t, CUDNN_TYPE_NUMERICAL_NOTE)
#undef COLLAGE_CUDNN_ATTRIBUTE

/// One of the library's objects, of which a graph and its plans are made.
class Descriptor {
 public:
  /// Without attributes, to be filled by the library. Errors are the library's.
  static Result<Descriptor> Create(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Descriptor();

  [[nodiscard]] cudnnBackendDescriptor_t raw() const { return raw_; }

  /// The values of an attribute, `most` at most.
  template <class Value>
  [[nodiscard]] Result<std::vector<Value>> Get(cudnnBackendAttributeName_t name, size_t most) const {
    static_assert(kIsAttribute<Value>);
    std::vector<Value> values(most);
    int64_t count = 0;
    COLLAGE_CUDNN_CALL(cudnnBackendGetAttribute, raw_, name, kAttributeType<Value>, static_cast<int64_t>(most), &count, values.data());
    values.resize(std::min(most, static_cast<size_t>(count)));
    return values;
  }
  /// How many descriptors an attribute has; of some the library does not say so.
  [[nodiscard]] Result<size_t> Count(cudnnBackendAttributeName_t name) const;
  /// The first descriptors that an attribute has, `most` at most. They may be fewer than Count says.
  [[nodiscard]] Result<std::vector<Descriptor>> GetAll(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                                       size_t most) const;
  /// The one that an attribute has.
  [[nodiscard]] Result<Descriptor> GetOne(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;

 private:
  explicit Descriptor(cudnnBackendDescriptor_t raw) : raw_(raw) {}

  cudnnBackendDescriptor_t raw_;
};

/// Sets the attributes of a descriptor one after another. The first error is that of them all.
class DescriptorBuilder {
 public:
  explicit DescriptorBuilder(cudnnBackendDescriptorType_t type) : descriptor_(Descriptor::Create(type)) {}

  template <class Value>
  requires kIsAttribute<Value> DescriptorBuilder& Set(cudnnBackendAttributeName_t name, Value value) {
    return SetValues(name, kAttributeType<Value>, 1, &value);
  }
  template <class Value>
  requires kIsAttribute<Value> DescriptorBuilder& Set(cudnnBackendAttributeName_t name, const std::vector<Value>& values) {
    return SetValues(name, kAttributeType<Value>, values.size(), values.data());
  }
  /// Parts must stay as long as what is built of them.
  DescriptorBuilder& Set(cudnnBackendAttributeName_t name, const Descriptor& part);
  DescriptorBuilder& Set(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>& parts);

  /// No attribute can be set afterwards. Errors are the library's.
  Result<Descriptor> Finalised();

 private:
  DescriptorBuilder& SetValues(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count, const void* values);

  Result<Descriptor> descriptor_;
};

}  // namespace collage::cudnn
