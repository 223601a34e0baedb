#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "collage/c/objects.h"
#include "collage/c_compile/compile_job.h"
#include "collage/tensor/tensor_type.h"

namespace collage::c_abi {
namespace {

using Json = nlohmann::json;

struct Wanted {
  Json shapes = Json::object();  ///< by name of an input
  std::optional<std::string> model;
  Json compile = Json::object();  ///< options of collage_compile
  Json load = Json::object();     ///< options of collage_program_load
};

bool IsShape(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& extent) { return extent.is_number_unsigned(); });
}

Result<Wanted> ReadOptions(const char* text) {
  Wanted wanted;
  const Json json = Json::parse(text ? text : "{}", nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Fail(std::string("options are '") + text + "', expected a JSON object");
  for (const auto& [key, value] : json.items()) {
    if (key == "shapes") {
      const bool are_shapes = value.is_object() && std::all_of(value.begin(), value.end(), IsShape);
      if (!are_shapes) return Fail("option 'shapes' is " + value.dump() + ", expected an object such as {\"input\": [1, 3, 224, 224]}");
      wanted.shapes = value;
    } else if (key == "compile_on_demand") {
      if (!value.is_string()) return Fail("option 'compile_on_demand' is " + value.dump() + ", expected the path of the model");
      wanted.model = value.get<std::string>();
    } else if (key == "compile") {
      if (!value.is_object()) return Fail("option 'compile' is " + value.dump() + ", expected an object of options of collage_compile");
      for (const char* own : {"shapes", "threads", "processors", "plugins"}) {
        if (value.contains(own)) return Fail(std::string("option 'compile' has '") + own + "', which is said beside it");
      }
      wanted.compile = value;
    } else {
      wanted.load[key] = value;
    }
  }
  if (!wanted.model && !wanted.compile.empty()) return Fail("option 'compile' is given without 'compile_on_demand', the model");
  return wanted;
}

Shape ShapeOf(const collage_tensor_info& info) { return {info.shape, info.shape + info.rank}; }

/// The first profile whose inputs have the stated shapes. Errors name an input that is not there.
Result<std::optional<size_t>> FindProfile(const collage_program& program, const Json& shapes) {
  const size_t inputs = collage_program_input_count(&program);
  std::string names;
  for (size_t i = 0; i < inputs; ++i) names += (i > 0 ? ", '" : "'") + std::string(collage_program_input(&program, 0, i).name) + "'";
  for (const auto& [name, unused] : shapes.items()) {
    bool is_there = false;
    for (size_t i = 0; i < inputs; ++i) is_there = is_there || collage_program_input(&program, 0, i).name == name;
    if (!is_there) return Fail("option 'shapes' names '" + name + "', which is no input; there are " + names);
  }
  for (size_t profile = 0; profile < collage_program_profile_count(&program); ++profile) {
    bool fits = true;
    for (size_t i = 0; i < inputs; ++i) {
      const collage_tensor_info input = collage_program_input(&program, profile, i);
      const auto stated = shapes.find(input.name);
      fits = fits && (stated == shapes.end() || stated->get<Shape>() == ShapeOf(input));
    }
    if (fits) return profile;
  }
  return std::nullopt;
}

std::string NoProfile(const collage_program& program, const std::string& path, const Json& shapes) {
  std::string profiles;
  for (size_t profile = 0; profile < collage_program_profile_count(&program); ++profile) {
    Json of_profile = Json::object();
    for (size_t i = 0; i < collage_program_input_count(&program); ++i) {
      const collage_tensor_info input = collage_program_input(&program, profile, i);
      of_profile[input.name] = ShapeOf(input);
    }
    profiles += (profile > 0 ? ", " : "") + of_profile.dump();
  }
  return path + " has no profile of " + shapes.dump() + "; it has " + profiles + ". With the option 'compile_on_demand' one is compiled";
}

/// Compiles, or finds what was kept; `kept` gets its file.
collage_error* Compile(const collage_program& program, const std::string& path, const Wanted& wanted, collage_progress progress, void* user,
                       std::string& kept) {
  Json options = wanted.compile;
  options["shapes"] = wanted.shapes;
  options["threads"] = collage_program_threads(&program);
  for (const char* common : {"processors", "plugins"}) {
    if (wanted.load.contains(common)) options[common] = wanted.load[common];
  }
  return RunCompiler({*wanted.model, "--profile-of", path, options.dump()}, progress, user, &kept);
}

}  // namespace
}  // namespace collage::c_abi

using namespace collage::c_abi;

collage_error* collage_program_load_or_compile(const char* path, const char* options, collage_progress progress, void* user,
                                               collage_program** program, size_t* profile) noexcept {
  return Guarded([&]() -> collage_error* {
    if (!path || !program || !profile) return Refuse("collage_program_load_or_compile: path, program and profile must not be null");
    *program = nullptr;
    *profile = 0;
    const collage::Result<Wanted> wanted = ReadOptions(options);
    if (!wanted) return Refuse(wanted.error().message);
    const std::string load = wanted->load.dump();
    collage_program* loaded = nullptr;
    if (collage_error* error = collage_program_load(path, load.c_str(), &loaded)) return error;
    std::unique_ptr<collage_program, decltype(&collage_program_free)> file(loaded, collage_program_free);
    const collage::Result<std::optional<size_t>> found = FindProfile(*file, wanted->shapes);
    if (!found) return Refuse(found.error().message);
    if (!*found && !wanted->model) return Refuse(NoProfile(*file, path, wanted->shapes));
    if (*found) {
      *profile = **found;
      *program = file.release();
      return nullptr;
    }
    std::string kept;
    if (collage_error* error = Compile(*file, path, *wanted, progress, user, kept)) return error;
    return collage_program_load(kept.c_str(), load.c_str(), program);
  });
}
