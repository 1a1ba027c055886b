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
	"bytes"
	"flag"
	"fmt"
	"log"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// answer writes the response to one request; it reports whether the connection stays open.
func (u *upstream) answer(c net.Conn, q *request) bool {
	k := u.ready.Load()
	write := func(b []byte) bool { _, err := c.Write(b); return err == nil }
	path, query, _ := strings.Cut(q.path, "?")
	if !q.post {
		if b := u.read(k, path, query, q.anthropic); b != nil {
			return write(b)
		}
	}
	if u.recordLast.Load() {
		u.mu.Lock()
		u.last = append(append(u.last[:0], q.head...), q.body...)
		u.mu.Unlock()
	}
	if k.latency > 0 {
		time.Sleep(k.latency)
	}
	var whole []byte
	var parts [][]byte
	kind := kindUnknown
	switch {
	case !q.post:
	case strings.HasSuffix(path, "/chat/completions"):
		kind, whole, parts = kindChat, k.chat, k.chatChunks
	case strings.HasSuffix(path, "/messages"):
		kind, whole, parts = kindMessage, k.message, k.messageChunks
	case strings.HasSuffix(path, "/embeddings"):
		kind, whole = kindEmbeddings, k.embeddings
	}
	u.hits[kind].Add(1)
	switch {
	case kind == kindUnknown:
		return write(notFound)
	case parts == nil || !wantsStream(q.body):
		return write(whole)
	}
	next := time.Now()
	for i, p := range parts {
		if i > 0 && k.delay > 0 {
			next = next.Add(k.delay)
			time.Sleep(time.Until(next))
		}
		if !write(p) {
			return false
		}
	}
	return true
}

// read answers a GET; nil for an unknown path.
func (u *upstream) read(k *prepared, path, query string, anthropic bool) []byte {
	switch {
	case path == "/__ctl":
		return u.control(k, query)
	case path == "/__stats":
		return plain(fmt.Sprintf(`{"chat":%d,"embeddings":%d,"messages":%d,"unknown":%d}`,
			u.hits[kindChat].Load(), u.hits[kindEmbeddings].Load(), u.hits[kindMessage].Load(), u.hits[kindUnknown].Load()))
	case path == "/__last":
		u.mu.Lock()
		defer u.mu.Unlock()
		return plain(string(u.last))
	case strings.HasSuffix(path, "/models") && anthropic:
		return k.claudeModels
	case strings.HasSuffix(path, "/models"):
		return k.openAIModels
	}
	return nil
}

// control sets the values that the query names. It leaves the others, and those that it
// cannot read, as they are.
func (u *upstream) control(k *prepared, query string) []byte {
	v, err := url.ParseQuery(query)
	if err != nil {
		return notFound
	}
	latency, delay, chunks := k.latency, k.delay, k.chunks
	if d, err := time.ParseDuration(v.Get("latency")); err == nil {
		latency = d
	}
	if d, err := time.ParseDuration(v.Get("delay")); err == nil {
		delay = d
	}
	if n, err := strconv.Atoi(v.Get("chunks")); err == nil {
		chunks = n
	}
	if v.Get("drop") == "1" {
		u.secure.drop()
	}
	if value := v.Get("keep"); value != "" {
		u.recordLast.Store(value == "1")
	}
	u.ready.Store(prepare(latency, delay, chunks))
	return plain(fmt.Sprintf(`{"latency":%q,"delay":%q,"chunks":%d}`, latency, delay, chunks))
}

var notFound = []byte("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 37\r\n\r\n" + `{"error":{"message":"no such route"}}`)

// wantsStream looks for "stream": true at the outer level of a request. The long text of a
// prompt is in the middle, so only both ends are searched.
func wantsStream(b []byte) bool {
	const end = 2048
	if len(b) > 2*end {
		return streams(b[:end]) || streams(b[len(b)-end:])
	}
	return streams(b)
}

func streams(b []byte) bool {
	for {
		i := bytes.Index(b, []byte(`"stream"`))
		if i < 0 {
			return false
		}
		b = bytes.TrimLeft(b[i+8:], " \t\r\n")
		if len(b) == 0 || b[0] != ':' {
			continue
		}
		return bytes.HasPrefix(bytes.TrimLeft(b[1:], " \t\r\n"), []byte("true"))
	}
}

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

	secure     secured
	recordLast atomic.Bool
	mu         sync.Mutex
	last       []byte
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
	u.recordLast.Store(true)
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

// prepared is everything that is sent, ready to write.
type prepared struct {
	latency, delay time.Duration
	chunks         int

	chat, embeddings, message  []byte
	chatChunks, messageChunks  [][]byte // one chunked-encoding frame each
	chatEvents                 []string // the events in chatChunks
	openAIModels, claudeModels []byte
}

// marker is in every content chunk, so that a client can count what arrived.
const marker = "mocktoken"

func prepare(latency, delay time.Duration, chunks int) *prepared {
	k := &prepared{latency: latency, delay: delay, chunks: chunks}

	text := strings.TrimSpace(strings.Repeat(marker+" the quick brown fox jumps. ", 16))
	k.chat = plain(`{"id":"chatcmpl-mock000000000000000000000001","object":"chat.completion","created":1750000000,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":120,"completion_tokens":96,"total_tokens":216,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_mock"}`)
	k.message = plain(`{"id":"msg_mock0000000000000000000001","type":"message","role":"assistant","model":"claude-3-5-sonnet-20241022","content":[{"type":"text","text":"` + text + `"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":96}}`)

	var v strings.Builder
	for i := range 1536 {
		if i > 0 {
			v.WriteByte(',')
		}
		v.WriteString(strconv.FormatFloat(float64((i*7919)%20011)/20011-0.5, 'f', 8, 64))
	}
	k.embeddings = plain(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[` + v.String() + `]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":8,"total_tokens":8}}`)

	k.openAIModels = plain(`{"object":"list","data":[{"id":"gpt-4o-mini","object":"model","created":1715367049,"owned_by":"system"},{"id":"gpt-4o","object":"model","created":1715367049,"owned_by":"system"},{"id":"text-embedding-3-small","object":"model","created":1705948997,"owned_by":"system"}]}`)
	k.claudeModels = plain(`{"data":[{"type":"model","id":"claude-3-5-sonnet-20241022","display_name":"Claude 3.5 Sonnet","created_at":"2024-10-22T00:00:00Z"}],"has_more":false,"first_id":"claude-3-5-sonnet-20241022","last_id":"claude-3-5-sonnet-20241022"}`)

	k.chatEvents = chatEvents(chunks)
	k.chatChunks = frames(k.chatEvents)
	k.messageChunks = frames(messageEvents(chunks))
	return k
}

// chatEvents are the events of an OpenAI stream.
func chatEvents(chunks int) []string {
	pre := `{"id":"chatcmpl-mock000000000000000000000001","object":"chat.completion.chunk","created":1750000000,"model":"gpt-4o-mini","service_tier":"default","system_fingerprint":"fp_mock","choices":`
	oai := []string{"data: " + pre + `[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"}
	for i := range chunks {
		oai = append(oai, "data: "+pre+`[{"index":0,"delta":{"content":" `+marker+strconv.Itoa(i%10)+`"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n")
	}
	return append(oai,
		"data: "+pre+`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}`+"\n\n",
		"data: "+pre+`[],"usage":{"prompt_tokens":120,"completion_tokens":`+strconv.Itoa(chunks)+`,"total_tokens":`+strconv.Itoa(120+chunks)+`,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`+"\n\n",
		"data: [DONE]\n\n")
}

// messageEvents are those of an Anthropic stream.
func messageEvents(chunks int) []string {
	ev := func(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
	ant := []string{
		ev("message_start", `{"type":"message_start","message":{"id":"msg_mock0000000000000000000001","type":"message","role":"assistant","model":"claude-3-5-sonnet-20241022","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`) +
			ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
	}
	for i := range chunks {
		ant = append(ant, ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" `+marker+strconv.Itoa(i%10)+`"}}`))
	}
	return append(ant, ev("content_block_stop", `{"type":"content_block_stop","index":0}`)+
		ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":`+strconv.Itoa(chunks)+`}}`)+
		ev("message_stop", `{"type":"message_stop"}`))
}

func plain(body string) []byte {
	return []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: req_mock\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nX-Request-Id: req_mock\r\nTransfer-Encoding: chunked\r\n\r\n"

// frames makes each event a frame of the chunked encoding; the first also contains the
// head, the last the end.
func frames(events []string) [][]byte {
	out := make([][]byte, len(events))
	for i, e := range events {
		f := fmt.Sprintf("%x\r\n%s\r\n", len(e), e)
		if i == 0 {
			f = streamHead + f
		}
		if i == len(events)-1 {
			f += "0\r\n\r\n"
		}
		out[i] = []byte(f)
	}
	return out
}
