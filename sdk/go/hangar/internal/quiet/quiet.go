// Package quiet turns off what would wake a program although it has nothing to do. It imports little, so that
// it is initialised before the packages that would begin with it.
package quiet
