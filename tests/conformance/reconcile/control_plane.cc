// The control plane that the tests of this program share.
#include "testing/shared_control_plane.h"

namespace hangar::testing {
namespace {

const SharedControlPlane kShared({.controller_manager = false, .proxy = true});

}  // namespace
}  // namespace hangar::testing
