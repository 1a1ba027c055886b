// Package loadgen drives an HTTP/1.1 server that answers OpenAI-shaped calls
// and measures it from the client's side.
//
// It reads and writes HTTP by hand over plain TCP, so that it takes little of the machine
// that it shares with what it measures. Every response is checked. It sends only to loopback
// addresses.
package loadgen

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Spec specifies what to send and how.
type Spec struct {
	URL     string
	Headers map[string]string
	Body    []byte // Nonce, where it occurs, is replaced in every request
	Kind    string // chat, stream or embeddings: how a response is checked
	Chunks  int    // content chunks that a stream must contain
	// Keys take turns in the place of the header value that is Keys[0]; all are as long.
	Keys []string

	Conns    int
	Rate     float64 // requests a second; 0: closed loop
	Duration time.Duration
	Requests int // stop after so many; 0: no such limit
}

// Nonce is the placeholder in Body for a value that differs in each request.
const Nonce = "nonce-0000000000000000"

// Marker is in each content chunk that the mock upstream streams.
const Marker = "mocktoken"

// Stat holds a distribution in microseconds.
type Stat struct {
	N                        int
	Mean, P50, P95, P99, Max float64
}

func (s Stat) String() string {
	return fmt.Sprintf("p50 %.0f p95 %.0f p99 %.0f max %.0f µs", s.P50, s.P95, s.P99, s.Max)
}

// Result is the result of one run.
type Result struct {
	Requests int
	Errors   int
	FirstErr string `json:",omitempty"`
	Seconds  float64
	RPS      float64
	Latency  Stat  // until the last byte; open loop: from the intended start (see Run)
	TTFB     Stat  // until the first byte of the body
	Gap      Stat  // streams: between two reads that brought events
	Late     int   // open loop: requests that began late because every connection was busy
	Bytes    int64 // of bodies
	NoUsage  int   // streams that ended well but had no usage
	NoFinish int   // streams without a finish_reason
	MinParts int   // streams: the fewest content chunks that one had
}

type shard struct {
	lat, ttfb, gap []int64
	n, errs, late  int
	noUsage        int
	noFinish       int
	bytes          int64
	minParts       int
	firstErr       error
}

// Run sends the load and returns the measurements.
//
// In an open loop each request has an intended start. When no connection was free at that
// time, latency counts from the intended start, so that a stall is not hidden (no
// coordinated omission). When a connection was idle and waiting, latency counts from the
// send: the time between the two comes from this client's timer, not from the server.
func Run(s Spec) (Result, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return Result{}, err
	}
	if ip := net.ParseIP(u.Hostname()); (ip == nil || !ip.IsLoopback()) && u.Hostname() != "localhost" {
		return Result{}, fmt.Errorf("%s is not on this machine: the load goes to loopback only", u.Host)
	}
	if s.Conns < 1 || (s.Duration <= 0 && s.Requests <= 0) {
		return Result{}, errors.New("needs connections, and a duration or a number of requests")
	}
	head := requestHead(u, s.Headers, len(s.Body))

	var next atomic.Int64
	start := time.Now()
	deadline := start.Add(s.Duration)
	if s.Duration <= 0 {
		deadline = start.Add(10 * time.Minute)
	}
	shards := make([]shard, s.Conns)
	var wg sync.WaitGroup
	for i := range shards {
		wg.Go(func() {
			w := worker{spec: &s, addr: u.Host, sh: &shards[i]}
			w.req = append(slices.Clone(head), s.Body...)
			w.nonce = bytes.Index(w.req, []byte(Nonce))
			if len(s.Keys) > 1 {
				w.key = bytes.Index(head, []byte(s.Keys[0]))
			}
			w.sh.minParts = 1 << 30
			defer w.close()
			w.loop(&next, start, deadline)
		})
	}
	wg.Wait()
	return gather(shards, time.Since(start)), nil
}

// loop sends one request after the other until the time or the number of requests is used
// up.
func (w *worker) loop(next *atomic.Int64, start, deadline time.Time) {
	for {
		k := next.Add(1) - 1
		if w.spec.Requests > 0 && k >= int64(w.spec.Requests) {
			return
		}
		from := time.Now()
		if w.spec.Rate > 0 {
			due := start.Add(time.Duration(float64(k) / w.spec.Rate * float64(time.Second)))
			if due.After(deadline) {
				return
			}
			if wait := time.Until(due); wait > 0 {
				time.Sleep(wait)
				from = time.Now()
			} else {
				if wait < -time.Millisecond {
					w.sh.late++
				}
				from = due
			}
		} else if !from.Before(deadline) {
			return
		}
		w.do(k, from)
	}
}

func requestHead(u *url.URL, headers map[string]string, n int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: */*\r\nUser-Agent: bench\r\nContent-Length: %d\r\n", u.RequestURI(), u.Host, n)
	keys := make([]string, 0, len(headers))
	for k := range headers {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(&b, "%s: %s\r\n", k, headers[k])
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func gather(shards []shard, elapsed time.Duration) Result {
	r := Result{Seconds: elapsed.Seconds(), MinParts: 1 << 30}
	var lat, ttfb, gap []int64
	for i := range shards {
		sh := &shards[i]
		lat, ttfb, gap = append(lat, sh.lat...), append(ttfb, sh.ttfb...), append(gap, sh.gap...)
		r.Requests += sh.n
		r.Errors += sh.errs
		r.Late += sh.late
		r.Bytes += sh.bytes
		r.NoUsage += sh.noUsage
		r.NoFinish += sh.noFinish
		r.MinParts = min(r.MinParts, sh.minParts)
		if r.FirstErr == "" && sh.firstErr != nil {
			r.FirstErr = sh.firstErr.Error()
		}
	}
	if r.MinParts == 1<<30 {
		r.MinParts = 0
	}
	r.RPS = float64(r.Requests) / r.Seconds
	r.Latency, r.TTFB, r.Gap = stat(lat), stat(ttfb), stat(gap)
	return r
}

func stat(v []int64) Stat {
	if len(v) == 0 {
		return Stat{}
	}
	slices.Sort(v)
	var sum float64
	for _, x := range v {
		sum += float64(x)
	}
	at := func(q float64) float64 { return float64(v[min(len(v)-1, int(q*float64(len(v))))]) / 1e3 }
	return Stat{N: len(v), Mean: sum / float64(len(v)) / 1e3, P50: at(.5), P95: at(.95), P99: at(.99), Max: float64(v[len(v)-1]) / 1e3}
}

// Body returns a chat request of size bytes of JSON, or the smallest possible size if that is
// more.
func Body(model string, size int, stream bool) []byte {
	end := `},{"role":"user","content":"Say something. ` + Nonce + `"}],"temperature":0.7,"max_tokens":256,"user":"bench-user-1"`
	if stream {
		end += `,"stream":true,"stream_options":{"include_usage":true}`
	}
	end += "}"
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":%q,"messages":[{"role":"system","content":"You are a helpful assistant. Answer in one paragraph."`, model)
	words := prose{}
	for i := 0; ; i++ {
		turn := fmt.Sprintf(`},{"role":%q,"content":""`, [...]string{"user", "assistant"}[i%2])
		room := size - b.Len() - len(end) - len(turn)
		if room < 1 {
			break
		}
		n := min(2000, room)
		b.WriteString(turn[:len(turn)-1] + words.take(n) + `"`)
	}
	b.WriteString(end)
	return []byte(b.String())
}

// prose makes text that does not repeat itself and is the same in every run. Compression
// must not help the measured server more than it would with text of people.
type prose struct{ state uint32 }

var vocabulary = strings.Fields(`the committee met on Tuesday to weigh a draft budget which it was they said first step and
nobody had hoped for more than three of them would stay until evening because rain was falling over harbour streets while
lamps burned behind every window where clerks copied letters about grain salt timber wool prices tolls debts wages ships
winter roads bridges schools wells fever harvest taxes guards festivals music silence weather patience laughter memory`)

// take returns n bytes of the inside of a JSON string.
func (p *prose) take(n int) string {
	var b strings.Builder
	for {
		p.state = p.state*1664525 + 1013904223
		word := vocabulary[p.state>>16%uint32(len(vocabulary))]
		switch p.state >> 24 {
		case 1, 2, 3, 4, 5, 6, 7:
			word = `\"` + word + `\"`
		case 8, 9, 10, 11:
			word += `,\n`
		}
		if b.Len()+len(word)+1 > n {
			return b.String() + strings.Repeat("x", n-b.Len())
		}
		b.WriteString(word + " ")
	}
}

// EmbeddingBody makes an embeddings request.
func EmbeddingBody(model string) []byte {
	return fmt.Appendf(nil, `{"model":%q,"input":"The quick brown fox. %s","encoding_format":"float"}`, model, Nonce)
}
