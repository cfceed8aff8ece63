module hangar.dev/tests/guests/go_faults

go 1.24
