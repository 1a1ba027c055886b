package main

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
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
	if u.keepLast.Load() {
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
	if keep := v.Get("keep"); keep != "" {
		u.keepLast.Store(keep == "1")
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
