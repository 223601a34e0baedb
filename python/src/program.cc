#include "python/src/program.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace collage_python {
namespace {

using Array = nb::ndarray<nb::ro, nb::device::cpu>;
using WritableArray = nb::ndarray<nb::device::cpu>;

// What the library uses where it is, instead of copying it.
constexpr size_t kAlignment = 64;

uint8_t CodeOf(const std::string& type) {
  using Code = nb::dlpack::dtype_code;
  if (type == "bool") return static_cast<uint8_t>(Code::Bool);
  if (type == "float16" || type == "float32" || type == "float64") return static_cast<uint8_t>(Code::Float);
  const bool is_signed = type == "int8" || type == "int16" || type == "int32" || type == "int64";
  return static_cast<uint8_t>(is_signed ? Code::Int : Code::UInt);
}

/// Of an element, as it is in memory: a byte at least. From its name, since there may be no elements.
uint8_t BitsOf(const std::string& type) {
  if (type == "string") return 64;
  const size_t digits = type.find_first_of("0123456789");
  return digits == std::string::npos ? 8 : static_cast<uint8_t>(std::max(8, std::stoi(type.substr(digits))));
}

std::vector<Endpoint> ReadEndpoints(const collage_program* program, size_t profile, size_t count,
                                    collage_tensor_info (*read)(const collage_program*, size_t, size_t) noexcept) {
  std::vector<Endpoint> endpoints;
  for (size_t i = 0; i < count; ++i) {
    const collage_tensor_info info = read(program, profile, i);
    Endpoint endpoint{info.name, info.type, {}, info.bytes, CodeOf(info.type), BitsOf(info.type), {}, nb::none()};
    if (info.shape) {
      nb::list shape;
      for (size_t d = 0; d < info.rank; ++d) {
        if (info.shape[d] == COLLAGE_UNKNOWN_EXTENT) {
          shape.append(nb::none());
        } else {
          shape.append(info.shape[d]);
          endpoint.shape.push_back(static_cast<size_t>(info.shape[d]));
        }
      }
      endpoint.declared_shape = shape;
    }
    PyObject* key = PyUnicode_FromString(info.name);
    PyUnicode_InternInPlace(&key);
    endpoint.key = nb::steal(key);
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

std::string TypeOf(const Endpoint& endpoint) {
  std::string text = endpoint.type + " (";
  for (size_t i = 0; i < endpoint.shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(endpoint.shape[i]);
  return text + ")";
}

std::string NamesOf(const std::vector<Endpoint>& endpoints) {
  std::string names;
  for (const Endpoint& endpoint : endpoints) names += (names.empty() ? "'" : ", '") + endpoint.name + "'";
  return names;
}

template <class A>
bool HasType(const A& array, const Endpoint& endpoint) {
  const nb::dlpack::dtype type = array.dtype();
  if (type.code != endpoint.code || type.lanes != 1 || type.bits != endpoint.bits) return false;
  if (array.ndim() != endpoint.shape.size()) return false;
  for (size_t i = 0; i < array.ndim(); ++i) {
    if (array.shape(i) != endpoint.shape[i]) return false;
  }
  return true;
}

template <class A>
bool IsDense(const A& array) {
  int64_t stride = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride) return false;
    stride *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

std::string Found(nb::handle value) {
  nb::object shape = nb::getattr(value, "shape", nb::none());
  nb::object type = nb::getattr(value, "dtype", nb::none());
  if (shape.is_none() || type.is_none())
    return "is of type " + std::string(Py_TYPE(value.ptr())->tp_name) + ", which is no array of the host";
  return std::string("is ") + nb::str(type).c_str() + " " + nb::str(shape).c_str();
}

/// What ONNX Runtime takes as well: numbers and lists of them, and arrays of the other byte order, as an array. None for all else, and for
/// what NumPy makes no such array of.
nb::object Converted(nb::handle value, const Endpoint& endpoint) {
  const nb::object numpy = nb::module_::import_("numpy");
  if (!nb::hasattr(numpy, endpoint.type.c_str())) return nb::none();
  PyObject* const given = value.ptr();
  const bool is_list = PyList_Check(given) || PyTuple_Check(given) || PyLong_Check(given) || PyFloat_Check(given);
  const nb::object type = nb::getattr(value, "dtype", nb::none());
  const bool is_swapped = !type.is_none() && nb::hasattr(type, "isnative") && !nb::cast<bool>(type.attr("isnative"));
  if (!is_list && !(is_swapped && type.attr("newbyteorder")("=").equal(numpy.attr("dtype")(endpoint.type)))) return nb::none();
  try {
    return numpy.attr("asarray")(value, numpy.attr("dtype")(endpoint.type));
  } catch (const nb::python_error&) {
    return nb::none();
  }
}

/// The array behind a value; one that is not dense is copied, as NumPy's users expect.
Array InputArray(nb::handle given, const Endpoint& endpoint) {
  Array array;
  nb::object value = nb::borrow(given);
  if (!nb::try_cast(value, array)) {
    if (nb::object converted = Converted(value, endpoint); !converted.is_none()) value = std::move(converted);
  }
  if (nb::try_cast(value, array) && HasType(array, endpoint)) {
    if (IsDense(array)) return array;
    const nb::object copy = nb::module_::import_("numpy").attr("ascontiguousarray")(value);
    if (nb::try_cast(copy, array)) return array;
  }
  RaiseArgument("input '" + endpoint.name + "' " + Found(value) + ", expected " + TypeOf(endpoint));
}

void Free(void* memory) noexcept { std::free(memory); }

nb::object NewArray(const Endpoint& endpoint, void*& data) {
  data = std::aligned_alloc(kAlignment, (endpoint.bytes / kAlignment + 1) * kAlignment);
  if (!data) throw std::bad_alloc();
  const nb::capsule owner(data, Free);
  const nb::dlpack::dtype type{endpoint.code, endpoint.bits, 1};
  return nb::cast(nb::ndarray<nb::numpy>(data, endpoint.shape.size(), endpoint.shape.data(), owner, nullptr, type));
}

/// What came out of a run, under the declared element type.
nb::object CopyOf(const collage_result& result, const Endpoint& declared) {
  Endpoint endpoint = declared;
  endpoint.shape.assign(result.info.shape, result.info.shape + result.info.rank);
  endpoint.bytes = result.info.bytes;
  void* data = nullptr;
  nb::object array = NewArray(endpoint, data);
  if (endpoint.bytes > 0) std::memcpy(data, result.data, endpoint.bytes);
  return array;
}

}  // namespace

void RaiseIfAny(collage_error* error) {
  if (!error) return;
  const std::string message = collage_error_message(error);
  const int kind = collage_error_kind_of(error);
  collage_error_free(error);
  const nb::object type = nb::module_::import_("collage._errors").attr("BY_KIND")[nb::int_(kind)];
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

void RaiseArgument(const std::string& message) {
  const nb::object type = nb::module_::import_("collage._errors").attr("ArgumentError");
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

/// A session that nobody else runs.
class Program::Lease {
 public:
  explicit Lease(Program& program) : program_(program) {
    {
      const std::lock_guard lock(program.mutex_);
      if (!program.idle_.empty()) {
        session_ = program.idle_.back();
        program.idle_.pop_back();
        return;
      }
    }
    collage_error* error = nullptr;
    {
      const nb::gil_scoped_release release;
      error = collage_session_create(program.program_, &session_);
    }
    RaiseIfAny(error);
  }
  ~Lease() {
    const std::lock_guard lock(program_.mutex_);
    program_.idle_.push_back(session_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  [[nodiscard]] collage_session* get() const { return session_; }

 private:
  Program& program_;
  collage_session* session_ = nullptr;
};

struct Program::Buffers {
  size_t profile = 0;
  std::vector<Array> arrays;  // keep what is read alive
  std::vector<collage_input> inputs;
  std::vector<collage_output> outputs;
};

Program::Program(collage_program* program) : program_(program), is_sized_by_run_(collage_program_is_sized_by_run(program) != 0) {
  for (size_t i = 0; i < collage_program_profile_count(program); ++i) {
    profiles_.push_back({ReadEndpoints(program, i, collage_program_input_count(program), collage_program_input),
                         ReadEndpoints(program, i, collage_program_output_count(program), collage_program_output)});
  }
}

Program::~Program() {
  // Kernels of Python take the lock when they go, in whichever thread holds what guards them.
  const nb::gil_scoped_release release;
  for (collage_session* session : idle_) collage_session_free(session);
  collage_program_free(program_);
}

nb::list Program::Describe(const std::vector<Endpoint>& endpoints) {
  nb::list described;
  for (const Endpoint& endpoint : endpoints) {
    described.append(nb::make_tuple(endpoint.key, endpoint.type, endpoint.declared_shape));
  }
  return described;
}

nb::list Program::Profiles() const {
  nb::list profiles;
  for (const Shapes& profile : profiles_) profiles.append(Describe(profile.inputs));
  return profiles;
}

size_t Program::ProfileFor(const nb::dict& feeds) const {
  if (profiles_.size() == 1) return 0;
  const auto takes = [&](const Endpoint& input) {
    PyObject* value = PyDict_GetItemWithError(feeds.ptr(), input.key.ptr());
    Array array;
    return value && nb::try_cast(nb::handle(value), array) && HasType(array, input);
  };
  std::string known;
  for (size_t i = 0; i < profiles_.size(); ++i) {
    const std::vector<Endpoint>& inputs = profiles_[i].inputs;
    if (std::all_of(inputs.begin(), inputs.end(), takes)) return i;
    std::string types;
    for (const Endpoint& input : inputs) types += (types.empty() ? "" : ", ") + input.name + " " + TypeOf(input);
    known += (known.empty() ? "[" : ", [") + types + "]";
  }
  RaiseArgument("no profile takes these inputs; there are " + known);
}

void Program::Gather(const nb::dict& feeds, Buffers& buffers) const {
  buffers.profile = ProfileFor(feeds);
  const std::vector<Endpoint>& inputs = profiles_[buffers.profile].inputs;
  buffers.arrays.reserve(inputs.size());
  buffers.inputs.reserve(inputs.size());
  for (const Endpoint& input : inputs) {
    PyObject* value = PyDict_GetItemWithError(feeds.ptr(), input.key.ptr());
    if (!value) RaiseArgument("input '" + input.name + "' (" + TypeOf(input) + ") is missing");
    buffers.arrays.push_back(InputArray(value, input));
    buffers.inputs.push_back({buffers.arrays.back().data(), input.bytes});
  }
  if (feeds.size() == inputs.size()) return;
  for (const auto& [name, value] : feeds) {
    bool is_known = false;
    for (const Endpoint& input : inputs) is_known = is_known || input.key.equal(name);
    if (!is_known) RaiseArgument(std::string("there is no input '") + nb::str(name).c_str() + "'; there are " + NamesOf(inputs));
  }
}

std::vector<nb::object> Program::NewOutputs(Buffers& buffers) const {
  std::vector<nb::object> arrays;
  if (is_sized_by_run_) return arrays;
  const std::vector<Endpoint>& outputs = profiles_[buffers.profile].outputs;
  arrays.reserve(outputs.size());
  buffers.outputs.reserve(outputs.size());
  for (const Endpoint& output : outputs) {
    void* data = nullptr;
    arrays.push_back(NewArray(output, data));
    buffers.outputs.push_back({data, output.bytes});
  }
  return arrays;
}

void Program::Execute(collage_session* session, const Buffers& buffers) const {
  RaiseIfAny(collage_session_select_profile(session, buffers.profile));
  collage_error* error = nullptr;
  {
    const nb::gil_scoped_release release;
    error = is_sized_by_run_ ? collage_session_evaluate(session, buffers.inputs.data(), buffers.inputs.size())
                             : collage_session_run(session, buffers.inputs.data(), buffers.inputs.size(), buffers.outputs.data(),
                                                   buffers.outputs.size());
  }
  RaiseIfAny(error);
}

nb::list Program::Run(nb::handle output_names, const nb::dict& feeds) {
  Buffers buffers;
  Gather(feeds, buffers);
  const std::vector<Endpoint>& outputs = profiles_[buffers.profile].outputs;
  std::vector<size_t> wanted;
  if (PyUnicode_Check(output_names.ptr())) RaiseArgument("output_names is a list of names, not one name");
  if (output_names.is_none() || nb::len(output_names) == 0) {
    for (size_t i = 0; i < outputs.size(); ++i) wanted.push_back(i);
  } else {
    for (const nb::handle name : output_names) {
      size_t index = 0;
      while (index < outputs.size() && !outputs[index].key.equal(name)) ++index;
      if (index == outputs.size())
        RaiseArgument(std::string("there is no output '") + nb::str(name).c_str() + "'; there are " + NamesOf(outputs));
      wanted.push_back(index);
    }
  }
  std::vector<nb::object> arrays = NewOutputs(buffers);
  const Lease lease(*this);
  Execute(lease.get(), buffers);
  if (is_sized_by_run_) {
    for (size_t i = 0; i < outputs.size(); ++i) arrays.push_back(CopyOf(collage_session_result(lease.get(), i), outputs[i]));
  }
  nb::list results;
  for (const size_t index : wanted) results.append(arrays[index]);
  return results;
}

void Program::RunInto(const nb::dict& feeds, const nb::dict& results) {
  if (is_sized_by_run_) RaiseArgument("run_into: the shapes of this program's outputs depend on data; use run");
  Buffers buffers;
  Gather(feeds, buffers);
  const std::vector<Endpoint>& outputs = profiles_[buffers.profile].outputs;
  std::vector<WritableArray> arrays(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    PyObject* value = PyDict_GetItemWithError(results.ptr(), outputs[i].key.ptr());
    if (!value) RaiseArgument("output '" + outputs[i].name + "' (" + TypeOf(outputs[i]) + ") is missing");
    if (!nb::try_cast(nb::handle(value), arrays[i]) || !HasType(arrays[i], outputs[i]) || !IsDense(arrays[i])) {
      RaiseArgument("output '" + outputs[i].name + "' " + Found(value) + ", expected a writable, dense " + TypeOf(outputs[i]));
    }
    buffers.outputs.push_back({arrays[i].data(), outputs[i].bytes});
  }
  for (const auto& [name, value] : results) {
    const bool is_known = std::any_of(outputs.begin(), outputs.end(), [&](const Endpoint& output) { return output.key.equal(name); });
    if (!is_known) RaiseArgument(std::string("there is no output '") + nb::str(name).c_str() + "'; there are " + NamesOf(outputs));
  }
  const Lease lease(*this);
  Execute(lease.get(), buffers);
}

nb::list Program::Profile(const nb::dict& feeds) {
  Buffers buffers;
  Gather(feeds, buffers);
  const std::vector<nb::object> arrays = NewOutputs(buffers);
  const Lease lease(*this);
  collage_session_set_profiling(lease.get(), 1);
  Execute(lease.get(), buffers);
  collage_session_set_profiling(lease.get(), 0);
  nb::list steps;
  for (size_t i = 0; i < collage_session_step_count(lease.get()); ++i) {
    const collage_step step = collage_session_step(lease.get(), i);
    steps.append(nb::make_tuple(step.kind, step.name, step.backend, step.microseconds));
  }
  return steps;
}

}  // namespace collage_python
