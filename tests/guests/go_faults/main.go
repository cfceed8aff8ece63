// One Go operator for many faults; its only argument says which. A program of the standard library alone, so that it is
// small.
//
//	spin                never waits
//	tick                a timer a million times a second
//	idle-ticker         a timer twice a second, for nothing
//	goroutines          goroutines without end, none of which ends
//	allocate            memory without end
//	print               lines without end, with pauses
//	panic               panics, in a goroutine
//	method              panics, in a method of a generic type
//	exit                exits with 7
//	deadlock            waits for something that never happens
//	sockets             dials, sends by UDP, asks a server without TLS, and listens for others; then waits
//	write               writes files, and says what came of it; then waits
//	timers              has 100,000 timers of an hour and more; then waits
//	watches             begins a watch of ConfigMaps a thousand times and cancels it, then reads one; then waits
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const server = "https://kubernetes.default.svc"

func main() {
	faults := map[string]func(){
		"spin": spin, "tick": tick, "idle-ticker": idleTicker, "goroutines": goroutines, "allocate": allocate, "print": printLines, "panic": panics,
		"method": func() { (&job[string]{"\x1b[2J"}).run() },
		"exit":   func() { os.Exit(7) }, "deadlock": func() { select {} },
		"sockets": sockets, "write": write, "timers": timers, "watches": watches,
	}
	if len(os.Args) != 2 || faults[os.Args[1]] == nil {
		fmt.Println("which fault?")
		os.Exit(1)
	}
	fmt.Println("begins", os.Args[1])
	faults[os.Args[1]]()
	for {
		time.Sleep(time.Hour)
	}
}

func spin() {
	for turns := 0; ; turns++ {
		if turns < 0 {
			fmt.Println("never")
		}
	}
}

func tick() {
	for range time.Tick(time.Microsecond) {
	}
}

func idleTicker() {
	for range time.Tick(500 * time.Millisecond) {
	}
}

func goroutines() {
	for {
		go func() { select {} }()
	}
}

func allocate() {
	var kept [][]byte
	for {
		block := make([]byte, 1<<20)
		for at := 0; at < len(block); at += 4096 {
			block[at] = byte(len(kept))
		}
		kept = append(kept, block)
	}
}

func printLines() {
	for line := 0; ; line++ {
		fmt.Printf("line %d of a program that has much to say and says it over and over again\n", line)
		if line%1000 == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func panics() {
	go func() { panic("on purpose") }()
}

type job[Reason any] struct{ reason Reason }

//go:noinline
func (j *job[Reason]) run() { panic(j.reason) }

func sockets() {
	_, err := net.DialTimeout("tcp", "192.0.2.1:80", time.Second)
	fmt.Println("dialled:", err != nil)
	// As in Go's own network for guests: only the program itself could receive it.
	connection, err := net.Dial("udp", "192.0.2.1:53")
	if err == nil {
		_, err = connection.Write([]byte("x"))
	}
	fmt.Println("sent by UDP:", err == nil)
	_, err = http.Get("http://192.0.2.1/")
	fmt.Println("asked without TLS:", err)
	// Only the program itself can connect.
	listener, err := net.Listen("tcp", ":8443")
	if err != nil {
		fmt.Println("listens:", err)
		return
	}
	go func() { _, _ = listener.Accept(); fmt.Println("somebody came") }()
	fmt.Println("listens")
}

func write() {
	for _, name := range []string{"/tmp/new", "/var/run/secrets/kubernetes.io/serviceaccount/token", "here"} {
		err := os.WriteFile(name, []byte("x"), 0o600)
		fmt.Println("written:", name, err == nil)
	}
	fmt.Println("made:", os.Mkdir("/directory", 0o700) == nil)
	fmt.Println("removed:", os.Remove("/var/run/secrets/kubernetes.io/serviceaccount/token") == nil)
}

func timers() {
	for number := range 100_000 {
		time.AfterFunc(time.Hour+time.Duration(number)*time.Second, func() { fmt.Println("rang") })
	}
	fmt.Println("set")
}

func watches() {
	path := server + "/api/v1/namespaces/" + os.Getenv("POD_NAMESPACE") + "/configmaps"
	for range 1000 {
		ctx, cancel := context.WithCancel(context.Background())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, path+"?watch=true", nil)
		if err != nil {
			panic(err)
		}
		ended := make(chan error)
		go func() {
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			ended <- err
		}()
		// Some are sent before, and some are not.
		time.Sleep(time.Millisecond)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			fmt.Println("ended otherwise:", err)
			return
		}
	}
	fmt.Println("cancelled 1000")
	response, err := http.Get(path)
	if err != nil {
		fmt.Println("asked:", err)
		return
	}
	_ = response.Body.Close()
	fmt.Println("asked:", response.StatusCode)
}
