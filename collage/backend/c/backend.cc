#include "collage/backend/c/compiler.h"
#include "collage/backend/c/kernel.h"
#include "collage/backend/element_code/source.h"
#include "collage/backend/entry.h"

namespace collage::c_source {
namespace {

/// A compiler and its version; looked for once.
struct Compiler {
  std::filesystem::path path;
  std::string version;
};

const Result<Compiler>& SystemCompiler() {
  static const Result<Compiler> compiler = []() -> Result<Compiler> {
    std::filesystem::path path = COLLAGE_TRY(FindCompiler());
    std::string version = COLLAGE_TRY(VersionOf(path));
    return Compiler{std::move(path), std::move(version)};
  }();
  return compiler;
}

Result<std::shared_ptr<const artifact::LinkedCode>> CodeOf(const std::string& source, const Compiler& compiler) {
  if (auto code = Codes().Find(source)) return code;
  constexpr double kMostSeconds = 30;  // a loop nest takes tenths; the worker ends what takes 90
  return Codes().Add(source, COLLAGE_TRY(CompileSource(compiler.path, source, kMostSeconds)));
}

/// Functions as C source, compiled by the system's compiler.
class SourceBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "c"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("it generates code for CPUs only");
    const Result<Compiler>& compiler = SystemCompiler();
    return compiler ? Presence::Version(compiler->version) : Presence::LoadsOnly(compiler.error().message);
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kNative;
    rules.supports = [](const Expr& call) { return element_code::Supports("c", call); };
    rules.passes = {"fold_constants", "simplify_expressions", "fold_batch_norm", "eliminate_common_subexpressions", "eliminate_dead_code"};
    // It writes the same loops as the native backend, without its schedules: minutes of measuring would seldom find it faster.
    rules.only_where_named = true;
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& /*device*/) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence || !element_code::SupportsSequence(*sequence)) return {};
    return {{kVariant, std::vector<Layout>(sequence->parameters.size()), std::vector<Layout>(sequence->results.size())}};
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    if (variant.name != kVariant) return Fail("c: there is no variant '" + variant.name + "'");
    const Result<Compiler>& compiler = SystemCompiler();
    if (!compiler) return Fail(compiler.error().At("c"));
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    if (!element_code::SupportsSequence(sequence)) return Fail("c: there is no code for this function");
    KernelImage image = COLLAGE_TRY(GenerateImage(sequence));
    const Result<std::shared_ptr<const artifact::LinkedCode>> code = CodeOf(image.source, *compiler);
    if (!code) return Fail(code.error().At("c"));
    image.code = *code;
    return MakeKernel(std::move(image), device);
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Load(std::string_view artifact, const Device& device) const override {
    return MakeKernel(COLLAGE_TRY(ReadImage(artifact, Fingerprint(device))), device);
  }

 private:
  static constexpr const char* kVariant = "element";
};

}  // namespace
}  // namespace collage::c_source

COLLAGE_BACKEND(collage::c_source::SourceBackend)
