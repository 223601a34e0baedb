#pragma once

// Names of tuned variants. A variant whose schedule was tuned is called after the template that it was made from and what differs from
// it: "default/aBcd16b@tile_rows=6,tasks=1".

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collage/backend/backend.h"

namespace collage {

/// A value for each parameter, by position among its values; all zero is the template itself.
using TuningChoice = std::vector<size_t>;

/// The variant made from `base` with these values; `base` itself where all are the template's own.
Variant TunedVariant(const Variant& base, const std::vector<TuningParameter>& parameters, const TuningChoice& choice);

/// The template's part of a variant's name.
std::string_view TemplateName(std::string_view variant_name);

/// What a variant's name says to differ from the template. Malformed parts are left out.
std::map<std::string, int> TunedValues(std::string_view variant_name);

/// The variant of that name, tuned ones included: its template must be one of Backend::Variants and its values of Backend::Tuning.
/// Errors list the names of the templates.
Result<Variant> FindVariant(const Backend& backend, const Function& function, const Device& device, const std::string& name);

}  // namespace collage
