// The package's other module in C++: what opens placement to Python (collage.pattern, collage.rules, collage.forms, backends,
// estimators). It is made of
// Collage's C++ libraries, the compiler's among them, and imported only where it is needed.

#include "collage/support/log.h"
#include "python/placement/values.h"

NB_MODULE(_placement, module) {
  using namespace collage_python;
  collage::InitialiseLogging();
  BindValues(module);
  BindPatterns(module);
  BindRules(module);
  BindForms(module);
  BindBackends(module);
  BindCompiling(module);
  BindConformance(module);
}
