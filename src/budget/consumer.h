// base/consumer.h under the names that users of this folder have for it.
#pragma once

#include "base/consumer.h"

namespace hangar::budget {

using hangar::Consumer;
using hangar::Tenant;
using hangar::unnamed_consumer;

}  // namespace hangar::budget
