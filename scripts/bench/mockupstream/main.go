// Command mockupstream is a very fast model provider for benchmarks.
//
// It speaks OpenAI chat completions, embeddings and models and Anthropic
// messages, plain and streamed. It reads HTTP/1.1 by hand and writes prepared
// bytes, so that it costs a few microseconds a request and is not what a
// benchmark measures. It checks nothing: the strict one is local/mockprovider.
//
// It prints "listening on ADDR". While it runs,
// GET /__ctl?latency=60ms&chunks=100&delay=5ms sets how it answers, /__stats
// counts what it has answered and /__last shows the last model request.
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
	flag.Parse()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", ln.Addr())
	log.Fatal(newUpstream(*latency, *delay, *chunks).serve(ln))
}

// upstream answers from what is prepared.
type upstream struct {
	ready atomic.Pointer[prepared]
	hits  [4]atomic.Int64 // by kind

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
	u := &upstream{}
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
