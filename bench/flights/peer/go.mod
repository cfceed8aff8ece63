module hangar.dev/bench/flights/peer

go 1.26.0

require github.com/tetratelabs/wazero v1.6.0
