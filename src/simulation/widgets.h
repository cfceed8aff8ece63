// A feature for simulations, on the shell that all features share: for each Widget as many
// ConfigMaps as its spec says, applied as the ServiceAccount of the Widget, with a status, Events
// and a finalizer. It decides little and goes through everything that features go through.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "reconcile/custom_resource.h"
#include "reconcile/platform.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::simulation {

inline constexpr std::string_view kWidgetCollection = "widgets.sim.example.com";
inline constexpr std::string_view kWidgetFinalizer = "sim.example.com/widgets";
inline constexpr std::string_view kWidgetLabel = "sim.example.com/widget";
// The ServiceAccount in each namespace that the feature acts as.
inline constexpr std::string_view kWidgetAccount = "widgets";
[[nodiscard]] kube::Resource widget_resource();
// The CustomResourceDefinition, as text.
[[nodiscard]] std::string_view widget_definition();

class Widgets {
 public:
  explicit Widgets(const reconcile::Platform& platform);

  void start();
  [[nodiscard]] io::Task<void> stop();

  [[nodiscard]] std::uint64_t run_count() const { return run_count_; }

 private:
  [[nodiscard]] reconcile::CustomResource::OutcomeTask reconcile(kube::ObjectPtr widget,
                                                                 std::stop_token stop);
  [[nodiscard]] reconcile::CustomResource::OutcomeTask finalize(kube::ObjectPtr widget,
                                                                std::stop_token stop);
  // Deletes the Widget's ConfigMaps from the number `first` on.
  [[nodiscard]] io::Task<Result<>> remove_from(kube::ObjectKey widget, std::int64_t first,
                                               std::stop_token stop);

  const reconcile::Platform& platform_;
  reconcile::CustomResource shell_;
  std::unique_ptr<kube::Cache::Subscription> children_;
  std::uint64_t run_count_ = 0;
};

}  // namespace hangar::simulation
