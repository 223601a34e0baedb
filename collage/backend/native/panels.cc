#include "collage/backend/native/panels.h"

#include <algorithm>
#include <string>

#include "collage/backend/native/generated.h"
#include "collage/backend/native/library_kernels.h"
#include "collage/backend/native/panel_plan.h"
#include "collage/backend/native/panel_recipe.h"
#include "collage/backend/native/variants.h"

namespace collage::native {
namespace {

/// A variant, and how it was made.
struct Choice {
  Variant variant;
  int64_t height = 0;
  std::string library_variant;
};

// The library's version is a part of the name, which keys what was measured.
Result<std::vector<Choice>> ListChoices(const PanelPlan& plan, const Device& device) {
  const LibraryKernels library = COLLAGE_TRY(LibraryKernels::Open(plan.call.library, plan.library, plan.library_split, device));
  const std::string called = "/" + plan.call.library + " " + library.Version() + "/";
  std::vector<Choice> choices;
  for (const int64_t height : PanelHeights(plan, device)) {
    for (const Variant& variant : COLLAGE_TRY(library.Variants(std::min(height, plan.library_split.rows)))) {
      choices.push_back({{"panels" + std::to_string(height) + called + variant.name, std::vector<Layout>(plan.parameters),
                          std::vector<Layout>(plan.rest.results.size())},
                         height,
                         variant.name});
    }
  }
  return choices;
}

std::vector<PanelArgument> ArgumentsOf(const OpSequence& sequence, const RowSplit& split, size_t first, const std::vector<size_t>& ports) {
  std::vector<PanelArgument> arguments;
  for (size_t i = 0; i < ports.size(); ++i) arguments.push_back({ports[i], BytesOfRow(sequence, split, sequence.parameters[first + i])});
  return arguments;
}

Result<std::string> GenerateRest(const PanelPlan& plan, const Device& device, int64_t rows) {
  Device one_thread = device;
  one_thread.threads = 1;
  const Expr expr = COLLAGE_TRY(OfRows(plan.rest, plan.rest_split, rows));
  const Function& function = *expr->As<Function>();
  const Variant variant = ListVariants(COLLAGE_TRY(ToOpSequence(function)), one_thread).front();
  const std::unique_ptr<Kernel> kernel = COLLAGE_TRY(CompileGenerated(function, one_thread, variant));
  return kernel->Serialize();
}

}  // namespace

Verdict SupportsPanels(const Function& function) {
  const Result<PanelPlan> plan = PlanPanels(function);
  return plan ? Verdict::Accept() : Verdict::Reject(plan.error().message);
}

std::vector<Variant> ListPanelVariants(const Function& function, const Device& device) {
  const Result<PanelPlan> plan = PlanPanels(function);
  if (!plan) return {};
  const Result<std::vector<Choice>> choices = ListChoices(*plan, device);
  std::vector<Variant> variants;
  if (choices)
    std::transform(choices->begin(), choices->end(), std::back_inserter(variants), [](const Choice& one) { return one.variant; });
  return variants;
}

Result<std::unique_ptr<Kernel>> CompilePanels(const Function& function, const Device& device, const Variant& variant) {
  const PanelPlan plan = COLLAGE_TRY(PlanPanels(function));
  const std::vector<Choice> choices = COLLAGE_TRY(ListChoices(plan, device));
  const auto choice = std::find_if(choices.begin(), choices.end(), [&](const Choice& one) { return one.variant.name == variant.name; });
  if (choice == choices.end()) return Fail("native: variant " + variant.name + " is not one of this function");
  auto recipe = std::make_shared<PanelRecipe>();
  for (const Expr& parameter : function.parameters) recipe->inputs.push_back({*parameter->type().AsTensor(), Layout()});
  for (const size_t result : plan.rest.results) recipe->outputs.push_back({plan.rest.values[result].type, Layout()});
  recipe->rows_of_panel = choice->height;
  recipe->library = plan.call.library;
  recipe->library_variant = choice->library_variant;
  recipe->library_function = plan.call.function;
  recipe->library_arguments = ArgumentsOf(plan.library, plan.library_split, 0, plan.call.inputs);
  recipe->rest_arguments = ArgumentsOf(plan.rest, plan.rest_split, 1, plan.call.rest_inputs);
  const int64_t rows = plan.library_split.rows;
  if (rows >= choice->height) recipe->rest = COLLAGE_TRY(GenerateRest(plan, device, choice->height));
  if (rows % choice->height != 0) recipe->last_rest = COLLAGE_TRY(GenerateRest(plan, device, rows % choice->height));
  return MakeKernel(std::move(recipe), device);
}

}  // namespace collage::native
