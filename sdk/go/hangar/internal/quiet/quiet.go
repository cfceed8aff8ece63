// Package quiet turns off everything that would wake an idle program. It imports little, so that it is
// initialised before the packages whose timers it stops.
package quiet
