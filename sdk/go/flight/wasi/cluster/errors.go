package cluster

import (
	"cmp"
	"errors"
	"fmt"
)

// State is the host's one-word verdict on a call.
type State uint32

// The possible results of a call. The numbers are part of the contract.
const (
	StateOK                State = 0
	StateFeatureNotGranted State = 1
	StateError             State = 2
	StateNotFound          State = 3
	StateUnauthenticated   State = 4
	StateForbidden         State = 5
)

// String returns the state in words.
func (state State) String() string {
	switch state {
	case StateOK:
		return "ok"
	case StateFeatureNotGranted:
		return "feature not granted"
	case StateError:
		return "error"
	case StateNotFound:
		return "not found"
	case StateUnauthenticated:
		return "unauthenticated"
	case StateForbidden:
		return "forbidden"
	}
	return fmt.Sprintf("unknown state %d", uint32(state))
}

// ErrorClusterAccessNotGranted is the error of every call of a flight without access to the cluster: its
// Airway does not set clusterAccess, or the program is not running in a host at all.
var ErrorClusterAccessNotGranted = errors.New("access to the cluster has not been granted for this flight invocation")

// ErrorNotFound means that the object does not exist, in the host's words.
type ErrorNotFound string

func (err ErrorNotFound) Error() string { return string(err) }

// Is reports whether the target is of this type, whatever its text.
func (ErrorNotFound) Is(target error) bool { return is[ErrorNotFound](target) }

// ErrorUnauthenticated means that the cluster does not accept the host's credentials.
type ErrorUnauthenticated string

func (err ErrorUnauthenticated) Error() string { return string(err) }

// Is reports whether the target is of this type, whatever its text.
func (ErrorUnauthenticated) Is(target error) bool { return is[ErrorUnauthenticated](target) }

// ErrorForbidden means that the flight may not see the object.
type ErrorForbidden string

func (err ErrorForbidden) Error() string { return string(err) }

// Is reports whether the target is of this type, whatever its text.
func (ErrorForbidden) Is(target error) bool { return is[ErrorForbidden](target) }

// IsErrFeatureNotGranted reports whether the flight runs without access to the cluster, as
// errors.Is(err, ErrorClusterAccessNotGranted) does.
func IsErrFeatureNotGranted(err error) bool { return errors.Is(err, ErrorClusterAccessNotGranted) }

// IsErrNotFound reports whether the object does not exist. An unknown kind is another error: a flight
// that waited for such an object would wait for a typing mistake.
func IsErrNotFound(err error) bool { return errors.Is(err, ErrorNotFound("")) }

// IsErrUnauthenticated reports whether the cluster does not accept the host's credentials.
func IsErrUnauthenticated(err error) bool { return errors.Is(err, ErrorUnauthenticated("")) }

// IsErrForbidden reports whether the flight may not see the object: it is neither owned by the flight's
// release nor covered by the Airway's resourceAccessMatchers.
func IsErrForbidden(err error) bool { return errors.Is(err, ErrorForbidden("")) }

func is[E error](target error) bool {
	_, ok := target.(E)
	return ok
}

// errorOf returns the error of a call that ended in any state but StateOK. If the host sent no text, the
// state's own is used.
func errorOf(state State, message string) error {
	message = cmp.Or(message, state.String())
	switch state {
	case StateFeatureNotGranted:
		return ErrorClusterAccessNotGranted
	case StateNotFound:
		return ErrorNotFound(message)
	case StateUnauthenticated:
		return ErrorUnauthenticated(message)
	case StateForbidden:
		return ErrorForbidden(message)
	}
	return errors.New(message)
}
