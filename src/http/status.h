// Names of status codes (RFC 9110) that the code compares with.
#pragma once

namespace hangar::http {

inline constexpr int kOk = 200;
inline constexpr int kCreated = 201;
inline constexpr int kAccepted = 202;
inline constexpr int kNotModified = 304;
inline constexpr int kUnauthorized = 401;

}  // namespace hangar::http
