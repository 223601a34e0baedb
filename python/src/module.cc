// The package's one module in C++: what is written in Python (python/collage) is made of it. It knows Collage by collage.h only.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <optional>

#include "python/src/program.h"
#include "python/src/watched.h"

namespace collage_python {
namespace {

nb::object Loaded(collage_error* error, collage_program* program) {
  RaiseIfAny(error);
  return nb::cast(new Program(program), nb::rv_policy::take_ownership);
}

nb::object Load(const std::string& path, const std::string& options) {
  collage_program* program = nullptr;
  collage_error* error = nullptr;
  {
    const nb::gil_scoped_release release;
    error = collage_program_load(path.c_str(), options.c_str(), &program);
  }
  return Loaded(error, program);
}

nb::object LoadBytes(const nb::bytes& content, const std::string& options) {
  collage_program* program = nullptr;
  collage_error* error = nullptr;
  {
    const nb::gil_scoped_release release;
    error = collage_program_load_memory(content.data(), content.size(), options.c_str(), &program);
  }
  return Loaded(error, program);
}

int OnProgress(void* user, const char* stage, uint64_t done, uint64_t total, const char* detail) {
  const nb::gil_scoped_acquire acquire;
  return static_cast<Watched*>(user)->Wish(stage, done, total, detail);
}

/// Instead of the error that follows from it.
void RaiseWhatWasRaised(Watched& watched, collage_error* error) {
  if (!watched.raised) return;
  collage_error_free(error);
  throw nb::python_error(std::move(*watched.raised));
}

void Compile(const std::string& model, const std::string& output, const std::string& options, nb::object progress) {
  Watched watched{std::move(progress)};
  collage_error* error = nullptr;
  {
    const nb::gil_scoped_release release;
    error = collage_compile(model.c_str(), output.c_str(), options.c_str(), OnProgress, &watched);
  }
  RaiseWhatWasRaised(watched, error);
  RaiseIfAny(error);
}

nb::object LoadOrCompile(const std::string& path, const std::string& options, nb::object progress) {
  Watched watched{std::move(progress)};
  collage_program* program = nullptr;
  size_t profile = 0;  // a run finds it by its inputs
  collage_error* error = nullptr;
  {
    const nb::gil_scoped_release release;
    error = collage_program_load_or_compile(path.c_str(), options.c_str(), OnProgress, &watched, &program, &profile);
  }
  RaiseWhatWasRaised(watched, error);
  return Loaded(error, program);
}

uint64_t StringNumber(const nb::bytes& text) {
  uint64_t number = 0;
  RaiseIfAny(collage_string_number(text.c_str(), text.size(), &number));
  return number;
}

nb::bytes StringText(uint64_t number) {
  size_t bytes = 0;
  const char* text = collage_string_text(number, &bytes);
  return nb::bytes(text, bytes);
}

}  // namespace
}  // namespace collage_python

NB_MODULE(_collage, module) {
  using namespace collage_python;
  module.def("load", &Load, nb::arg("path"), nb::arg("options"));
  module.def("load_bytes", &LoadBytes, nb::arg("content"), nb::arg("options"));
  module.def("compile", &Compile, nb::arg("model"), nb::arg("output"), nb::arg("options"), nb::arg("progress").none());
  module.def("load_or_compile", &LoadOrCompile, nb::arg("path"), nb::arg("options"), nb::arg("progress").none());
  module.def("string_number", &StringNumber, nb::arg("text"));
  module.def("string_text", &StringText, nb::arg("number"));
  nb::class_<Program>(module, "Program")
      .def("run", &Program::Run, nb::arg("output_names").none(), nb::arg("feeds"))
      .def("run_into", &Program::RunInto, nb::arg("feeds"), nb::arg("results"))
      .def("profile", &Program::Profile, nb::arg("feeds"))
      .def_prop_ro("inputs", &Program::Inputs)
      .def_prop_ro("outputs", &Program::Outputs)
      .def_prop_ro("profiles", &Program::Profiles)
      .def_prop_ro("report", &Program::Report)
      .def_prop_ro("threads", &Program::Threads);
}
