package hangar

import (
	_ "unsafe" // For go:linkname.

	"hangar.dev/sdk/go/hangar/guest"
)

//go:linkname mainMain main.main
func mainMain()

func init() { guest.Main = mainMain }
