package k8s

import (
	"errors"
	"fmt"
)

// State is the host's one-word verdict on a call.
type State uint32

// What a call can end in. The numbers are part of the contract.
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

// Error is a call that the host refused or could not answer.
type Error struct {
	State   State
	Message string // the host's own words
}

// Error returns the host's message, or the state in words where the host sent none.
func (err *Error) Error() string {
	if err.Message != "" {
		return err.Message
	}
	if err.State == StateFeatureNotGranted {
		return notGranted
	}
	return err.State.String()
}

// notGranted is the text that flights print today when their Airway does not set clusterAccess.
const notGranted = "access to the cluster has not been granted for this flight invocation"

// IsErrFeatureNotGranted reports whether the flight runs without access to the cluster: its Airway does
// not set clusterAccess, or the program is not running in a host at all.
func IsErrFeatureNotGranted(err error) bool { return hasState(err, StateFeatureNotGranted) }

// IsErrNotFound reports whether the object does not exist. A kind that the cluster does not know is
// another error: waiting for the object would be waiting for a typing mistake to come true.
func IsErrNotFound(err error) bool { return hasState(err, StateNotFound) }

// IsErrUnauthenticated reports whether the cluster does not accept the host's credentials.
func IsErrUnauthenticated(err error) bool { return hasState(err, StateUnauthenticated) }

// IsErrForbidden reports whether the object is outside of what the flight may see: neither owned by its
// release nor covered by the Airway's resourceAccessMatchers.
func IsErrForbidden(err error) bool { return hasState(err, StateForbidden) }

func hasState(err error, state State) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.State == state
}
