#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "collage/provider/api.h"
#include "collage/support/result.h"

namespace collage::provider {

/// ONNX Runtime, which has loaded this library.
class Ort {
 public:
  Ort(const Api& api, const EpApi& ep) : api(api), ep(ep) {}

  /// The error of a call as ONNX Runtime says it; takes the status over.
  [[nodiscard]] Status Check(OrtStatus* status) const {
    if (!status) return {};
    const std::string message = api.GetErrorMessage(status);
    api.ReleaseStatus(status);
    return Fail("ONNX Runtime: " + message);
  }

  /// What `get` writes.
  template <class Value, class Object>
  [[nodiscard]] Result<Value> Get(OrtStatus* (*get)(const Object*, Value*), const Object* object) const {
    Value value{};
    COLLAGE_TRY_STATUS(Check(get(object, &value)));
    return value;
  }

  /// A list, of which `count` says how long it is and `get` what is in it. Null stands for an input or output that is left out.
  template <class Value, class Object>
  [[nodiscard]] Result<std::vector<Value>> List(OrtStatus* (*count)(const Object*, size_t*),
                                                OrtStatus* (*get)(const Object*, Value*, size_t), const Object* object) const {
    std::vector<Value> values(COLLAGE_TRY(Get<size_t>(count, object)));
    if (!values.empty()) COLLAGE_TRY_STATUS(Check(get(object, values.data(), values.size())));
    return values;
  }

  [[nodiscard]] Result<std::string> Name(const OrtValueInfo* value) const {
    return COLLAGE_TRY(Get<const char*>(api.GetValueInfoName, value));
  }

  const Api& api;
  const EpApi& ep;
};

/// A session's log. What cannot be written is lost: there is nobody to tell.
class Log {
 public:
  Log(const Ort& ort, const OrtLogger* logger) : ort_(ort), logger_(logger) {}
  void Information(const std::string& message) const { Write(kLogInformation, message); }
  void Warning(const std::string& message) const { Write(kLogWarning, message); }

 private:
  void Write(int severity, const std::string& message) const {
    if (OrtStatus* status = ort_.api.Logger_LogMessage(logger_, severity, message.c_str(), "collage/provider", 0, "Collage"))
      ort_.api.ReleaseStatus(status);
  }

  const Ort& ort_;
  const OrtLogger* logger_;
};

}  // namespace collage::provider
