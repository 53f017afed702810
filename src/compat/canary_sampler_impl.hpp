// The sampler chain against answers that are known.
#pragma once

#include <string>

namespace paceline::compat {

/// Draws from a fixed row of logits under options whose order matters. Empty where every token is
/// as it should be, else which setting gave what.
std::string sampler_fault();

}  // namespace paceline::compat
