package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Targets of realtime sessions.
const (
	idleSessions  = 1000
	maxIdleMiB    = 60
	maxFrame      = 10 * time.Microsecond // of CPU, for a frame of 1 KB in either direction
	frameSessions = 8
	framesOfOne   = 5000 // in each direction
)

// sockets measures what realtime sessions cost: a thousand idle sessions, and frames of 1
// KB in each direction.
func sockets(ctx context.Context, w io.Writer) (misses []string, err error) {
	dir, err := os.MkdirTemp("", "gateway-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin, err := build(ctx, dir, map[string]string{"gateway": "gateway/local"})
	if err != nil {
		return nil, err
	}
	up := new(talker)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: up, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // ends with Close
	defer server.Close()
	gateway, err := start(readyLine, gatewayEnv, bin["gateway"], "-addr", "127.0.0.1:0", "-data", filepath.Join(dir, "data"), "-mock=false")
	if err != nil {
		return nil, err
	}
	defer gateway.stop()
	if err := warmUp(gateway, l.Addr().String(), up); err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second)
	base := residentMiB(gateway.pid())
	var open []*websocket.Conn
	defer func() {
		for _, ws := range open {
			_ = ws.Close()
		}
	}()
	for range idleSessions {
		ws, err := session(gateway, l.Addr().String())
		if err != nil {
			return nil, err
		}
		open = append(open, ws)
	}
	time.Sleep(5 * time.Second) // the gateway checks and pings them in this time
	idle := residentMiB(gateway.pid()) - base
	fmt.Fprintf(w, "%d idle sessions: %.1f MiB above %.1f MiB\n", idleSessions, idle, base)
	if idle > maxIdleMiB {
		misses = append(misses, fmt.Sprintf("%d idle sessions take %.1f MiB, at most %d are allowed", idleSessions, idle, maxIdleMiB))
	}
	waiting := cpuOf(gateway.pid())
	time.Sleep(3 * time.Second)
	fmt.Fprintf(w, "they use %.1f ms of CPU a second\n", float64((cpuOf(gateway.pid())-waiting).Milliseconds())/3)
	for _, ws := range open {
		_ = ws.Close()
	}
	open = nil
	time.Sleep(2 * time.Second)
	for _, way := range []string{"to the provider", "to the client"} {
		each, err := frames(gateway, l.Addr().String(), up, way == "to the client")
		if err != nil {
			return misses, err
		}
		fmt.Fprintf(w, "a frame of 1 KB %s: %.2f us of CPU\n", way, float64(each.Nanoseconds())/1000)
		if each > maxFrame {
			misses = append(misses, fmt.Sprintf("a frame %s takes %s, at most %s are allowed", way, each, maxFrame))
		}
	}
	return misses, nil
}

// session opens a session through the gateway.
func session(gateway *process, upstream string) (*websocket.Conn, error) {
	h := http.Header{}
	for name, value := range gatewayHeaders("http://" + upstream)(false) {
		h.Set(name, value)
	}
	ws, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(gateway.base, "http")+"/v1/realtime?model="+url.QueryEscape("gpt-realtime"), h)
	if err != nil {
		if resp != nil {
			b, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
			err = fmt.Errorf("%w: %d %s", err, resp.StatusCode, b)
		}
		return nil, err
	}
	_, _, err = ws.ReadMessage() // session.created
	return ws, err
}

// warmUp opens and closes a few sessions.
func warmUp(gateway *process, upstream string, up *talker) error {
	_, err := frames(gateway, upstream, up, false)
	return err
}

// frames returns the CPU time that the gateway needs for a frame.
func frames(gateway *process, upstream string, up *talker, down bool) (time.Duration, error) {
	var all []*websocket.Conn
	for range frameSessions {
		ws, err := session(gateway, upstream)
		if err != nil {
			return 0, err
		}
		defer ws.Close()
		all = append(all, ws)
	}
	up.got.Store(0)
	before := cpuOf(gateway.pid())
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for _, ws := range all {
		wg.Go(func() {
			if err := exchange(ws, down); err != nil {
				failed.Store(&err)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	if !down {
		for end := time.Now().Add(time.Minute); up.got.Load() < frameSessions*framesOfOne; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return 0, fmt.Errorf("%d frames arrived", up.got.Load())
			}
		}
	}
	return (cpuOf(gateway.pid()) - before) / (frameSessions * framesOfOne), nil
}

var sound = `"` + strings.Repeat("A", 960) + `"}`

// exchange sends the frames of one session, or makes the provider send them.
func exchange(ws *websocket.Conn, down bool) error {
	if !down {
		frame := []byte(`{"type":"input_audio_buffer.append","audio":` + sound)
		for range framesOfOne {
			if err := ws.WriteMessage(websocket.TextMessage, frame); err != nil {
				return err
			}
		}
		return nil
	}
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"response.create"}`)); err != nil {
		return err
	}
	for range framesOfOne + 2 { // including the start of the response and its end
		if _, _, err := ws.ReadMessage(); err != nil {
			return err
		}
	}
	return nil
}

// talker is a provider of realtime sessions: it counts audio, and sends audio on request.
type talker struct{ got atomic.Int64 }

// ServeHTTP implements http.Handler.
func (t *talker) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := up.Upgrade(w, req, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	send := func(event string) bool { return ws.WriteMessage(websocket.TextMessage, []byte(event)) == nil }
	send(`{"type":"session.created","session":{"model":"gpt-realtime"}}`)
	for {
		_, body, err := ws.ReadMessage()
		if err != nil {
			return
		}
		if strings.HasPrefix(string(body[:min(len(body), 30)]), `{"type":"input_audio`) {
			t.got.Add(1)
			continue
		}
		send(`{"type":"response.created","response":{"id":"r"}}`)
		frame := `{"type":"response.output_audio.delta","response_id":"r","delta":` + sound
		for range framesOfOne {
			if !send(frame) {
				return
			}
		}
		send(`{"type":"response.done","response":{"id":"r","status":"completed","usage":{"input_tokens":10,"output_tokens":10}}}`)
	}
}
