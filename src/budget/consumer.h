// Makes the types of base/consumer.h available in this namespace.
#pragma once

#include "base/consumer.h"

namespace hangar::budget {

using hangar::Consumer;
using hangar::Tenant;
using hangar::unnamed_consumer;

}  // namespace hangar::budget
