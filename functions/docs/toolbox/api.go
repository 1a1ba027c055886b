package toolbox

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// API is the administration that tools call. r has a path below the base URL.
type API interface {
	// Call makes a call on behalf of the caller of another one: with that caller's credential
	// and, where possible, address. At most most bytes of the response are read; large reports
	// that there were more.
	Call(by, r *http.Request, most int) (a Response, err error)
}

// Response is what the API says.
type Response struct {
	Status int
	Media  string
	Body   []byte
	Large  bool
}

// basePath is what the API's addresses begin with.
const basePath = "/v1"

// LocalAPI calls a handler in this process.
type LocalAPI struct{ Handler func() http.Handler }

// dropped are headers of an MCP call that do not concern the call that a tool makes.
var dropped = []string{"Content-Length", "Content-Type", "Content-Encoding", "Accept", "Accept-Encoding", "Cookie", "Origin", "If-None-Match", "If-Match", "Transfer-Encoding", "Connection"}

// Call implements API.
func (i LocalAPI) Call(by, r *http.Request, most int) (Response, error) {
	h := i.Handler()
	if h == nil {
		return Response{}, fault.Unavailable(nil)
	}
	r.URL.Path, r.URL.RawPath = basePath+r.URL.Path, basePath+r.URL.EscapedPath()
	r.RemoteAddr, r.Host, r.RequestURI = by.RemoteAddr, by.Host, r.URL.RequestURI()
	for name, values := range by.Header {
		if !slices.Contains(dropped, name) && !strings.HasPrefix(name, "Mcp-") {
			r.Header[name] = values
		}
	}
	w := &limitedResponse{most: most, header: http.Header{}}
	h.ServeHTTP(w, r)
	return w.respond(), nil
}

// limitedResponse is a response that stores at most the wanted number of bytes.
type limitedResponse struct {
	most   int
	header http.Header
	status int
	body   bytes.Buffer
	large  bool
}

// Header implements http.ResponseWriter.
func (k *limitedResponse) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *limitedResponse) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
}

// Write implements http.ResponseWriter.
func (k *limitedResponse) Write(p []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	room := k.most - k.body.Len()
	if len(p) > room {
		k.large = true
	}
	k.body.Write(p[:min(len(p), room)])
	return len(p), nil
}

func (k *limitedResponse) respond() Response {
	k.WriteHeader(http.StatusOK)
	return Response{k.status, k.header.Get("Content-Type"), k.body.Bytes(), k.large}
}

// RemoteAPI calls the gateway at its own address, for processes that serve only a part of it. The
// audit log then contains the address of the process as the caller's.
type RemoteAPI struct {
	Base      string // with /v1; "": there is none
	Transport http.RoundTripper
}

// carried are the headers that go with a call.
var carried = []string{"Authorization", "X-Gateway-Api-Key", "User-Agent"}

// Call implements API.
func (o RemoteAPI) Call(by, r *http.Request, most int) (Response, error) {
	base, err := url.Parse(strings.TrimRight(o.Base, "/"))
	if err != nil || base.Host == "" {
		return Response{}, fault.New(fault.ServiceUnavailable, "", "Tools cannot be called here: GATEWAY_PUBLIC_URL is not set")
	}
	u := *r.URL
	u.Scheme, u.Host = base.Scheme, base.Host
	u.Path, u.RawPath = base.Path+r.URL.Path, base.EscapedPath()+r.URL.EscapedPath()
	out := r.Clone(context.WithoutCancel(by.Context()))
	out.URL, out.Host = &u, ""
	for _, name := range carried {
		if v := by.Header[name]; v != nil {
			out.Header[name] = v
		}
	}
	client := &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(out)
	if err != nil {
		return Response{}, fault.Unavailable(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil {
		return Response{}, fault.Unavailable(err)
	}
	return Response{resp.StatusCode, resp.Header.Get("Content-Type"), raw[:min(len(raw), most)], len(raw) > most}, nil
}
