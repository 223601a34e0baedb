#pragma once

#include <collage.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace collage_python {

namespace nb = nanobind;

/// Raises the exception of that kind (python/collage/_errors.py); nothing for null. The error is freed.
void RaiseIfAny(collage_error* error);
/// An error of the caller's, found here.
[[noreturn]] void RaiseArgument(const std::string& message);

/// An input or output as it crosses the border: dense, row-major, its elements as DLPack names them. Types that NumPy lacks (bfloat16,
/// float8, int4) come as unsigned integers of their size.
struct Endpoint {
  std::string name;
  std::string type;
  std::vector<size_t> shape;
  size_t bytes = 0;
  uint8_t code = 0;
  uint8_t bits = 0;
  nb::object key;             ///< the name as a Python string
  nb::object declared_shape;  ///< list of extents, None where only a run tells; None where not even the rank is known
};

/// The shapes of one profile.
struct Shapes {
  std::vector<Endpoint> inputs;
  std::vector<Endpoint> outputs;
};

/// A loaded program and sessions of it for as many threads as have run at the same time so far.
class Program {
 public:
  /// Takes over what collage_program_load gives.
  explicit Program(collage_program* program);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// New NumPy arrays, one for each name; all of the outputs for None.
  nb::list Run(nb::handle output_names, const nb::dict& feeds);
  /// Into arrays of the caller: all of the outputs by name.
  void RunInto(const nb::dict& feeds, const nb::dict& results);

  /// [(name, type, shape)] of the first profile
  [[nodiscard]] nb::list Inputs() const { return Describe(profiles_[0].inputs); }
  [[nodiscard]] nb::list Outputs() const { return Describe(profiles_[0].outputs); }
  /// The inputs of each profile.
  [[nodiscard]] nb::list Profiles() const;
  [[nodiscard]] const char* Report() const { return collage_program_report(program_); }
  [[nodiscard]] int Threads() const { return collage_program_threads(program_); }
  /// Runs once and gives [(kind, name, backend, microseconds)] of its steps.
  nb::list Profile(const nb::dict& feeds);

 private:
  class Lease;
  struct Buffers;
  static nb::list Describe(const std::vector<Endpoint>& endpoints);
  /// The number of the profile that takes these arrays.
  [[nodiscard]] size_t ProfileFor(const nb::dict& feeds) const;
  void Gather(const nb::dict& feeds, Buffers& buffers) const;
  /// Binds new arrays to the outputs, where their shapes are known before a run.
  std::vector<nb::object> NewOutputs(Buffers& buffers) const;
  void Execute(collage_session* session, const Buffers& buffers) const;

  collage_program* program_;
  bool is_sized_by_run_;  ///< outputs have shapes only after a run
  std::vector<Shapes> profiles_;
  std::mutex mutex_;
  std::vector<collage_session*> idle_;
};

}  // namespace collage_python
