package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver accepts and stores OTLP requests.
type receiver struct {
	url    string
	server *http.Server
	mu     sync.Mutex
	kept   []Request
}

func listen() (*receiver, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + ln.Addr().String()}
	r.server = &http.Server{Handler: r}
	go func() { _ = r.server.Serve(ln) }() // ends with close
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

func (r *receiver) requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kept)
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	defer w.WriteHeader(http.StatusOK)
	var in io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			log.Printf("%s: %v", q.URL.Path, err)
			return
		}
		in = z
	}
	raw, err := io.ReadAll(in)
	if err != nil || !strings.HasSuffix(q.URL.Path, "/v1/traces") {
		return // other signals, and other protocols of a sender
	}
	body, err := trim(raw, q.Header.Get("Content-Type"))
	if err != nil {
		log.Printf("%s: %v", q.URL.Path, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, Request{"/v1/traces", body})
}

// kept are the resource attributes that remain.
var kept = []string{"service.name", "telemetry.sdk.name", "telemetry.sdk.language", "telemetry.sdk.version"}

// dropped are attributes that are removed: they have addresses and paths of this machine.
var dropped = []string{"exception.stacktrace", "server.port", "http.request.header.host"}

// trim removes data of this machine from a request.
func trim(raw []byte, contentType string) (json.RawMessage, error) {
	if !strings.Contains(contentType, "json") {
		var d tracepb.TracesData
		if err := proto.Unmarshal(raw, &d); err != nil {
			return nil, err
		}
		for _, rs := range d.ResourceSpans {
			if rs.Resource != nil {
				rs.Resource.Attributes = slices.DeleteFunc(rs.Resource.Attributes, func(a *commonpb.KeyValue) bool { return !slices.Contains(kept, a.Key) })
			}
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					for _, e := range s.Events {
						e.Attributes = slices.DeleteFunc(e.Attributes, func(a *commonpb.KeyValue) bool { return slices.Contains(dropped, a.Key) })
					}
				}
			}
		}
		out, err := proto.Marshal(&d)
		if err != nil {
			return nil, err
		}
		return json.Marshal(base64.StdEncoding.EncodeToString(out))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	resources, _ := o["resourceSpans"].([]any)
	for _, one := range resources {
		rs, _ := one.(map[string]any)
		if res, ok := rs["resource"].(map[string]any); ok {
			res["attributes"] = except(res["attributes"], func(key string) bool { return !slices.Contains(kept, key) })
		}
		clean(rs["scopeSpans"])
	}
	return json.Marshal(o)
}

// clean removes dropped attributes below v.
func clean(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			clean(one)
		}
	case map[string]any:
		if list, ok := v["attributes"]; ok {
			v["attributes"] = except(list, func(key string) bool { return slices.Contains(dropped, key) })
		}
		for _, one := range v {
			clean(one)
		}
	}
}

func except(list any, drop func(key string) bool) any {
	all, _ := list.([]any)
	return slices.DeleteFunc(all, func(one any) bool {
		pair, _ := one.(map[string]any)
		key, _ := pair["key"].(string)
		return drop(key)
	})
}
