// Command mockupstream is a very fast model provider for benchmarks.
//
// It serves OpenAI chat completions, embeddings and models, and Anthropic messages, plain
// and streamed. It reads HTTP/1.1 by hand and writes prepared bytes, so that it costs only
// a few microseconds for each request and a benchmark does not measure it instead. It
// checks nothing; local/mockprovider is the strict one.
//
// It prints "listening on ADDR". While it runs, GET
// /__ctl?latency=60ms&chunks=100&delay=5ms sets how it answers, /__stats counts what it has
// answered, and /__last shows the last model request. With -secure it also answers over
// TLS; GET /__ctl?drop=1 closes those connections.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9100", "listen address")
	latency := flag.Duration("latency", 0, "delay before the first byte of every answer")
	chunks := flag.Int("chunks", 100, "content chunks in a stream")
	delay := flag.Duration("delay", 0, "delay between two chunks of a stream (0: they are written one after the other)")
	secure := flag.String("secure", "", "folder for the addresses of HTTPS listeners and their certificate; empty: none")
	flag.Parse()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	u := newUpstream(*latency, *delay, *chunks)
	if *secure != "" {
		if err := u.serveSecure(*secure); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("listening on %s\n", ln.Addr())
	log.Fatal(u.serve(ln))
}

// upstream sends prepared responses.
type upstream struct {
	ready atomic.Pointer[prepared]
	hits  [4]atomic.Int64 // by kind

	secure   secured
	keepLast atomic.Bool
	mu       sync.Mutex
	last     []byte
}

// Kinds of requests, for counting.
const (
	kindChat = iota
	kindEmbeddings
	kindMessage
	kindUnknown
)

func newUpstream(latency, delay time.Duration, chunks int) *upstream {
	u := &upstream{secure: secured{open: make(map[net.Conn]struct{})}}
	u.ready.Store(prepare(latency, delay, chunks))
	u.keepLast.Store(true)
	return u
}

func (u *upstream) serve(ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go u.converse(c) // ends with its connection
	}
}
